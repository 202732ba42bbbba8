"""Step times: the roofline and the CPU model, by hand and by law."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.estimate.time.arithmetic import arithmetic_of, training_passes
from scrimp.estimate.time.roofline import CONSTANTS, MicroStep, chip_of, micro_step_s
from scrimp.estimate.time.speed import evaluation_s, interval_of, pace_of, step_s


def _step(**changes):
    usual = MicroStep(
        tokens=16384,
        scored_tokens=16384,
        context_tokens=2048,
        passes=training_passes(frozen_base=True, checkpointing="none"),
        frozen_base=True,
    )
    return replace(usual, **changes)


def test_a_large_step_runs_at_the_class_efficiency(make):
    work, chip = arithmetic_of(make.LLAMA_8B), chip_of(make.A100, "bf16")
    weights = 4 * (work.linear_params + work.head_params)
    attention = 3 * 2 * 32 * 4096 * 2048 / CONSTANTS.attention_efficiency
    small = 16384 / (16384 + CONSTANTS.small_step_tokens)
    expected = 16384 * (weights + attention) / (312e12 * CONSTANTS.efficiency["dc_ampere"] * small)
    assert micro_step_s(work, _step(), chip) == pytest.approx(expected)


def test_a_tiny_step_cannot_be_faster_than_its_launches(make):
    small = replace(make.LLAMA_8B, hidden=512, heads=4, kv_heads=4, intermediate=1024, vocab=1000)
    work, chip = arithmetic_of(small), chip_of(make.A100, "bf16")
    tiny = micro_step_s(work, _step(tokens=8, scored_tokens=8), chip)
    assert tiny == pytest.approx(32 * CONSTANTS.eager_frozen_floor_s_per_layer * 2 / 3)


def test_four_bit_weights_cost_their_unpacking(make):
    work, chip = arithmetic_of(make.LLAMA_8B), chip_of(make.A100, "bf16")
    packed, plain = (micro_step_s(work, _step(four_bit=kind), chip) for kind in ("nf4", ""))
    assert packed - plain == pytest.approx(2 * CONSTANTS.unpack_nf4 * 4.5 * make.LLAMA_8B.params / 2.039e12)


def test_a_bridge_between_pairs_is_no_nvlink(make):
    assert chip_of(make.A100, "bf16").link_bytes_per_s == CONSTANTS.nvlink_bytes_per_s
    for changes in ({"name": "A100-PCIe-80GB"}, {"name": "RTXA6000", "nvlink_bytes_per_s": 112.5e9}):
        assert chip_of(replace(make.A100, **changes), "bf16").link_bytes_per_s == CONSTANTS.pcie_bytes_per_s


def test_a_class_without_rows_goes_by_its_power_with_a_wide_interval(make):
    # The measured cards themselves lie within 21% of the line.
    assert chip_of(replace(make.A100, device_class="new"), "bf16").efficiency == pytest.approx(0.62, rel=0.21)
    starved = replace(make.A100, device_class="new", power_w=100.0)
    assert chip_of(starved, "bf16").efficiency == CONSTANTS.per_watt_range[0]
    old = replace(make.A100, device_class="new", supports_flash_attention=False)
    assert chip_of(old, "bf16").efficiency < chip_of(replace(make.A100, device_class="new"), "bf16").efficiency
    unknown = replace(make.A100, device_class="new", power_w=None)
    assert chip_of(unknown, "bf16").efficiency == CONSTANTS.unmeasured
    amd = replace(make.A100, device_class="amd_cdna2")
    assert chip_of(amd, "bf16").efficiency == CONSTANTS.efficiency["amd_cdna3"]
    known = interval_of(pace_of(make.LLAMA_8B, make.recipe(), make.A100, gpus=1))
    for device in (starved, unknown, amd):
        wide = interval_of(pace_of(make.LLAMA_8B, make.recipe(), device, gpus=1))
        assert wide.low < known.low
        assert wide.high > known.high
        assert "no run" in wide.basis


def test_a_card_unlike_its_class_has_its_own_efficiency(make):
    l40s = replace(make.A100, name="L40S", device_class="dc_ada_inf")
    assert chip_of(l40s, "bf16").efficiency == CONSTANTS.by_device["L40S"] > CONSTANTS.efficiency["dc_ada_inf"]


@pytest.mark.parametrize("missing", [{"bf16_flops": None, "fp32_flops": None}, {"bandwidth_bytes_per_s": None}])
def test_a_device_without_figures_is_refused(make, missing):
    with pytest.raises(ValueError, match="established"):
        pace_of(make.LLAMA_8B, make.recipe(), replace(make.A100, **missing), gpus=1)
    with pytest.raises(ValueError, match="established"):
        pace_of(make.LLAMA_8B, make.recipe(), replace(make.CPU, fp32_flops=None), gpus=1)


def test_an_unknown_tensor_rate_falls_back_to_fp32(make):
    assert chip_of(replace(make.A100, bf16_flops=None), "bf16").peak_flops == 19.5e12


def test_rows_are_whole_three_on_two_cards_take_as_long_as_four(make):
    def seconds(rows):
        load = make.load(steps=10, rows=10 * rows, row_tokens=4096)
        return step_s(pace_of(make.LLAMA_8B, make.recipe(sharding="ddp"), make.A100, gpus=2), load)

    assert seconds(3) == pytest.approx(seconds(4))
    assert seconds(2) < seconds(3)


def test_an_evaluation_costs_a_forward_pass(make):
    pace = pace_of(make.LLAMA_8B, make.recipe(), make.A100, gpus=1)
    one_step_tokens = make.load(eval_tokens=2400)
    assert 0 < evaluation_s(pace, one_step_tokens) < step_s(pace, one_step_tokens)
    assert evaluation_s(pace, make.load(eval_tokens=0)) == 0.0


def test_bf16_without_hardware_runs_at_the_fp32_rate(make):
    slow = replace(make.CPU, bf16_flops=None, supports_bf16=False)
    paces = [pace_of(make.LLAMA_8B, make.recipe(compute_dtype=d), slow, gpus=1) for d in ("bf16", "fp32")]
    assert step_s(paces[0], make.load()) == step_s(paces[1], make.load())
    amx = pace_of(make.LLAMA_8B, make.recipe(), make.CPU, gpus=1)
    assert step_s(amx, make.load()) < step_s(paces[0], make.load())


devices = st.sampled_from(["A100", "CPU"])
options = st.fixed_dictionaries(
    {
        "checkpointing": st.sampled_from(("none", "selective", "full")),
        "loss": st.sampled_from(["selected", "full"]),
        "layout": st.sampled_from(["packed", "padded"]),
        "micro_batch_tokens": st.integers(16, 60_000),
    }
)


def _pace(make, device, **changes):
    return pace_of(make.LLAMA_8B, make.recipe(**changes), getattr(make, device), gpus=1)


@given(device=devices, values=options, more=st.integers(1, 60_000))
@settings(max_examples=100, deadline=None)
def test_a_larger_micro_batch_is_never_slower(make, device, values, more):
    load = make.load(row_tokens=700)
    larger = {**values, "micro_batch_tokens": values["micro_batch_tokens"] + more}
    assert step_s(_pace(make, device, **larger), load) <= step_s(_pace(make, device, **values), load) * (1 + 1e-12)


@given(device=devices, values=options)
@settings(max_examples=100, deadline=None)
def test_checkpointing_is_never_faster_and_a_selective_loss_never_slower(make, device, values):
    load = make.load()
    none, selective, full = (
        step_s(_pace(make, device, **{**values, "checkpointing": kind}), load) for kind in ("none", "selective", "full")
    )
    assert none <= min(selective, full)
    selected, full = (step_s(_pace(make, device, **{**values, "loss": kind}), load) for kind in ("selected", "full"))
    assert selected <= full


@given(device=devices, values=options, context=st.floats(1, 2000), more=st.floats(0, 30_000))
@settings(max_examples=100, deadline=None)
def test_attending_further_is_never_faster(make, device, values, context, more):
    pace = _pace(make, device, **values)
    near, far = make.load(context_tokens=context), make.load(context_tokens=context + more)
    assert step_s(pace, near) <= step_s(pace, far)


@given(tokens=st.floats(64, 50_000), gpus=st.integers(1, 16), more=st.integers(0, 48))
@settings(max_examples=100, deadline=None)
def test_sharding_over_more_cards_never_speeds_up_a_micro_step(make, tokens, gpus, more):
    work, chip = arithmetic_of(make.LLAMA_8B), chip_of(make.A100, "bf16")
    few, many = (
        micro_step_s(work, _step(tokens=tokens, scored_tokens=tokens, sharded_gpus=n, gpus=n), chip)
        for n in (gpus, gpus + more)
    )
    assert few <= many * (1 + 1e-12)


@given(scale=st.floats(1, 10))
@settings(max_examples=50, deadline=None)
def test_a_faster_card_is_never_slower(make, scale):
    fast = replace(make.A100, bf16_flops=make.A100.bf16_flops * scale)
    paces = [pace_of(make.LLAMA_8B, make.recipe(), device, gpus=1) for device in (make.A100, fast)]
    assert step_s(paces[1], make.load()) <= step_s(paces[0], make.load())
