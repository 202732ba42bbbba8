"""FLOPs of a token against counts that others publish."""

from dataclasses import replace

import pytest

from scrimp.estimate.time.arithmetic import EVALUATION, arithmetic_of, training_passes


def _flops(work, passes, context_tokens):
    attention = 2 * work.layers * work.attention_width * context_tokens
    return 2 * passes.products * (work.linear_params + work.head_params) + passes.attention * attention


def test_a_frozen_llama_70b_costs_what_mlperf_counts(make):
    # NVIDIA's MLPerf configuration of Llama-2-70B LoRA: 2,598 TFLOP for one sample of 8,192 tokens.
    shape = replace(make.LLAMA_8B, hidden=8192, layers=80, heads=64, kv_heads=8, intermediate=28672, vocab=32000)
    passes = training_passes(frozen_base=True, checkpointing="none")
    assert _flops(arithmetic_of(shape), passes, 8192) * 8192 == pytest.approx(2598e12, rel=0.04)


def test_passes_over_the_weights():
    assert training_passes(frozen_base=False, checkpointing="none").products == 3
    assert training_passes(frozen_base=True, checkpointing="none").products == 2
    assert training_passes(frozen_base=True, checkpointing="full").products == 3
    assert EVALUATION.products == 1


def test_a_token_of_a_mixture_passes_its_active_experts_alone(make):
    dense = arithmetic_of(make.LLAMA_8B)
    experts = arithmetic_of(replace(make.LLAMA_8B, experts=8, experts_active=2))
    router = 32 * 4096 * 8
    mlp = 32 * 3 * 4096 * 14336
    assert experts.linear_params == dense.linear_params + mlp + router
    assert experts.stored_params > 4 * dense.stored_params


def test_selective_checkpointing_repeats_no_product_and_launches_the_most():
    none, selective, full = (
        training_passes(frozen_base=True, checkpointing=kind) for kind in ("none", "selective", "full")
    )
    assert (selective.products, selective.attention) == (none.products, none.attention)
    assert selective.weights == full.weights == none.weights + 1
    assert none.launches < full.launches < selective.launches
