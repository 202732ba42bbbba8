"""The tensor count in closed form; tests/trace holds it against traces of the models' own code."""

from dataclasses import replace

import pytest

from scrimp.estimate.memory.activations import layer_bytes, mlp_width
from scrimp.estimate.stack import Stack
from scrimp.estimate.tuning import Tuning
from scrimp.methods.linear import linears

# (adapter math, which layers, dropout) -> coefficients of hidden and intermediate width where keys and values are
# written out to the width of the queries: 8 for the norms, 8 for attention, 6 i inside the feed-forward, and inputs.
COUNTED = {
    ("base", "qv", 0.0): (18, 6),
    ("base", "all", 0.0): (20, 8),
    ("base", "qv", 0.1): (22, 6),
    ("base", "all", 0.1): (34, 9),
    ("autocast", "qv", 0.0): (20, 6),
    ("autocast", "all", 0.0): (28, 8),
    ("autocast", "qv", 0.1): (22, 6),
    ("autocast", "all", 0.1): (34, 9),
    ("fp32", "qv", 0.0): (24, 6),
    ("fp32", "all", 0.0): (40, 10),
    ("fp32", "qv", 0.1): (26, 6),
    ("fp32", "all", 0.1): (46, 11),
}
SHAPES = {"1B": (2048, 16, 32, 8, 64, 8192), "3B": (3072, 28, 24, 8, 128, 8192), "8B": (4096, 32, 32, 8, 128, 14336)}


@pytest.mark.parametrize("size", SHAPES)
@pytest.mark.parametrize(("math", "layers", "dropout"), COUNTED)
def test_the_count_in_closed_form(make, size, math, layers, dropout):
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
    rank = 8
    trainable = sum(rank * (x.in_width + x.out_width) * x.copies for x in adapted)
    tuning = Tuning(frozen_base=True, trainable_params=trainable, adapted=adapted, dropout=dropout)
    stack = Stack(name="trace", adapter_math=math, repeats_kv=True)
    of_hidden, of_intermediate = COUNTED[math, layers, dropout]
    # Two statistics of norms, one a head of attention, and what each adapter's first matrix puts out.
    small = 2 * 4 + 4 * heads + 2 * rank * len(adapted)
    expected = of_hidden * hidden + of_intermediate * intermediate + small
    counted = layer_bytes(replace(make.case(shape=shape, stack=stack), tuning=tuning)).kept_bytes
    assert counted == pytest.approx(expected)


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
