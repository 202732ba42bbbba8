"""The tensor count against the traced table (bytes per token and layer, grouped heads written out, rank 8)."""

from dataclasses import replace

import pytest

from scrimp.estimate.memory.activations import layer_bytes, mlp_width
from scrimp.estimate.stack import Stack
from scrimp.estimate.tuning import Tuning
from scrimp.methods.linear import linears

# (adapter math, which layers, dropout) -> coefficients of hidden and intermediate width
TRACED = {
    ("base", "qv", 0.0): (19.6, 5.9),
    ("base", "all", 0.0): (21.6, 7.9),
    ("base", "qv", 0.1): (23.6, 5.9),
    ("base", "all", 0.1): (35.6, 8.9),
    ("autocast", "qv", 0.0): (21.6, 5.9),
    ("autocast", "all", 0.0): (29.7, 7.9),
    ("autocast", "qv", 0.1): (23.6, 5.9),
    ("autocast", "all", 0.1): (35.7, 8.9),
    ("fp32", "qv", 0.0): (25.6, 5.9),
    ("fp32", "all", 0.0): (41.7, 9.8),
    ("fp32", "qv", 0.1): (27.6, 5.9),
    ("fp32", "all", 0.1): (47.7, 10.8),
}
SHAPES = {"1B": (2048, 16, 32, 8, 64, 8192), "3B": (3072, 28, 24, 8, 128, 8192), "8B": (4096, 32, 32, 8, 128, 14336)}


@pytest.mark.parametrize("size", SHAPES)
@pytest.mark.parametrize(("math", "layers", "dropout"), TRACED)
def test_the_count_reproduces_the_traced_table(make, size, math, layers, dropout):
    hidden, depth, heads, kv_heads, head_dim, intermediate = SHAPES[size]
    shape = replace(
        make.LLAMA_8B,
        hidden=hidden,
        layers=depth,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=intermediate,
    )
    adapted = tuple(x for x in linears(shape) if layers == "all" or x.name in {"q_proj", "v_proj"})
    tuning = Tuning(frozen_base=True, trainable_params=1, adapted=adapted, dropout=dropout)
    stack = Stack(name="trace", adapter_math=math, repeats_kv=True)
    of_hidden, of_intermediate = TRACED[math, layers, dropout]
    traced = of_hidden * hidden + of_intermediate * intermediate
    counted = layer_bytes(replace(make.case(shape=shape, stack=stack), tuning=tuning)).kept_bytes
    assert counted == pytest.approx(traced, rel=0.01)


def test_training_all_weights_keeps_more_than_adapters_do(make):
    adapters = layer_bytes(make.case(method=make.of_method("lora")))
    everything = layer_bytes(make.case(method=make.of_method("full"), weight_dtype="fp32"))
    assert everything.kept_bytes > adapters.kept_bytes
    # Autocast leaves the residual stream of an fp32 model in fp32.
    assert everything.input_bytes == 2 * adapters.input_bytes


def test_fused_kernels_keep_less(make):
    eager = layer_bytes(make.case(stack=Stack(name="eager")))
    fused = layer_bytes(make.case(stack=Stack(name="liger", kernels="fused")))
    assert fused.kept_bytes < eager.kept_bytes


def test_a_mixture_counts_the_width_that_a_token_passes(make):
    shape = replace(
        make.LLAMA_8B,
        experts=64,
        experts_active=6,
        intermediate=1408,
        shared_intermediate=2816,
        dense_layers=1,
        dense_intermediate=10944,
    )
    assert mlp_width(shape) == (31 * (6 * 1408 + 2816) + 10944) / 32
    assert mlp_width(make.LLAMA_8B) == 14336


@pytest.mark.parametrize("family", ["llama", "phi3", "falcon", "phi"])
def test_adapters_are_found_under_the_names_of_every_family(make, family):
    shape = replace(make.LLAMA_8B, family=family, gated_mlp=family in {"llama", "phi3"})
    without = make.case(shape=shape)
    bare = replace(without, tuning=replace(without.tuning, adapted=()))
    assert layer_bytes(without).kept_bytes > layer_bytes(bare).kept_bytes
