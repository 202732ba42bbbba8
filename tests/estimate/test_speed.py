"""Step times: the roofline and the CPU model, by hand and by law."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.estimate.time.arithmetic import arithmetic_of, training_passes
from scrimp.estimate.time.cpu_speed import MEASURED_CPUS, OTHER_CPU, cpu_chip_of, cpu_constants
from scrimp.estimate.time.fitted import fitted_time
from scrimp.estimate.time.roofline import MicroStep, chip_of, line_share, micro_step_s, optimizer_step_s
from scrimp.estimate.time.speed import evaluation_s, interval_of, pace_of, sampling_s, step_s


def _step(**changes):
    usual = MicroStep(
        tokens=16384,
        scored_tokens=16384,
        context_tokens=2048,
        passes=training_passes(frozen_base=True, checkpointing="none"),
        frozen_base=True,
    )
    return replace(usual, **changes)


@pytest.fixture
def constants():
    """The shipped fit's."""
    return fitted_time().constants


def test_a_large_step_is_products_and_attention_and_memory(make, constants):
    work, chip = arithmetic_of(make.LLAMA_8B), chip_of(make.A100, "bf16")
    weights = 4 * (work.linear_params + work.head_params)
    attention = 3 * 2 * 32 * 4096 * 2048 / constants.attention_efficiency
    small = 16384 / (16384 + constants.small_step_tokens)
    products = 16384 * (weights + attention) / (312e12 * chip.efficiency * small)
    between = 16384 * 32 * 4096 * 3 * (constants.eager_bytes + constants.eager_adapter_bytes) / 2.039e12
    assert micro_step_s(work, _step(), chip) == pytest.approx(products + between)


def test_a_tiny_step_cannot_be_faster_than_its_launches(make, constants):
    small = replace(make.LLAMA_8B, hidden=512, heads=4, kv_heads=4, intermediate=1024, vocab=1000)
    work, chip = arithmetic_of(small), chip_of(make.A100, "bf16")
    tiny = {"tokens": 8, "scored_tokens": 8}
    assert micro_step_s(work, _step(**tiny), chip) == pytest.approx(32 * constants.frozen_floor_s * 2 / 3)
    for floor_s, changes in (
        (constants.trained_floor_s, {"frozen_base": False}),
        (constants.four_bit_floor_s, {"four_bit": "nf4"}),
    ):
        assert micro_step_s(work, _step(**tiny, **changes), chip) == pytest.approx(32 * floor_s * 2 / 3)
    fused = micro_step_s(work, _step(**tiny), chip, stack="fused")
    assert fused == pytest.approx(32 * constants.fused_floor_s * 2 / 3)


def test_four_bit_weights_cost_their_unpacking(make, constants):
    work, chip = arithmetic_of(make.LLAMA_8B), chip_of(make.A100, "bf16")
    packed, plain = (micro_step_s(work, _step(four_bit=kind), chip) for kind in ("nf4", ""))
    assert packed - plain == pytest.approx(2 * constants.unpack_nf4 * 4.5 * make.LLAMA_8B.params / 2.039e12)


def test_what_is_computed_again_costs_less_than_the_first_time(make, constants):
    work, chip = arithmetic_of(make.LLAMA_8B), chip_of(make.A100, "bf16")
    kept, again = (
        micro_step_s(work, _step(passes=training_passes(frozen_base=False, checkpointing=kind)), chip)
        for kind in ("none", "full")
    )
    assert 1.2 < again / kept < 8 / 6
    assert constants.again_share < 1


def test_attention_that_writes_its_scores_pays_for_it_by_length(make):
    work, chip = arithmetic_of(make.LLAMA_8B), chip_of(make.A100, "bf16")

    def extra_s(length):
        one = _step(context_tokens=length)
        return micro_step_s(work, replace(one, writes_scores=True), chip) - micro_step_s(work, one, chip)

    assert 0 < extra_s(1024) == pytest.approx(extra_s(4096) / 4)


def test_more_nodes_cost_a_share_each_doubling(make, constants):
    work, chip = arithmetic_of(make.LLAMA_8B), chip_of(make.A100, "bf16")
    seconds = [micro_step_s(work, _step(gpus=gpus), chip) for gpus in (8, 16, 32)]
    assert seconds[1] / seconds[0] == pytest.approx(1 + constants.node_loss)
    assert seconds[2] / seconds[1] == pytest.approx(1 + constants.node_loss)
    spread = micro_step_s(work, _step(gpus=4, nodes=2), chip)
    assert spread == pytest.approx(micro_step_s(work, _step(gpus=16), chip))


def test_known_software_differs_from_its_kind_and_unknown_software_does_not(make, constants):
    work, chip = arithmetic_of(make.LLAMA_8B), chip_of(make.A100, "bf16")
    name, ratio = max(constants.software.items(), key=lambda item: item[1])
    kind = micro_step_s(work, _step(), chip)
    assert micro_step_s(work, _step(), chip, software=name) == pytest.approx(ratio * kind)
    assert micro_step_s(work, _step(), chip, software="nobody's") == kind


@pytest.mark.parametrize("faster", ["compiled", "fused", "megatron"])
def test_eager_code_is_the_slowest(make, faster):
    work, chip = arithmetic_of(make.LLAMA_8B), chip_of(make.A100, "bf16")
    assert micro_step_s(work, _step(), chip, stack=faster) < micro_step_s(work, _step(), chip)


def test_the_optimizer_reads_and_writes_what_is_trained(make, constants):
    chip = chip_of(make.A100, "bf16")
    assert optimizer_step_s(1e9, chip) == pytest.approx(constants.optimizer_ratio * 28e9 / 2.039e12)
    assert optimizer_step_s(1e9, chip, adamw=False) < optimizer_step_s(1e9, chip)
    paces = [
        pace_of(make.LLAMA_8B, make.recipe(method=make.of_method("full"), sharding=s), make.A100, gpus=g)
        for s, g in (("none", 1), ("fsdp", 2))
    ]
    # Two micro-steps of a step, or one: the update is paid once a step.
    one, two = (step_s(paces[0], make.load(rows=100 * rows, row_tokens=4096)) for rows in (1, 2))
    assert two - one == pytest.approx(one - optimizer_step_s(make.LLAMA_8B.params, paces[0].chip), rel=1e-3)


def test_a_bridge_between_pairs_is_no_nvlink(make, constants):
    assert chip_of(make.A100, "bf16").link_bytes_per_s == constants.nvlink_bytes_per_s
    for changes in ({"name": "A100-PCIe-80GB"}, {"name": "RTXA6000", "nvlink_bytes_per_s": 112.5e9}):
        assert chip_of(replace(make.A100, **changes), "bf16").link_bytes_per_s == constants.pcie_bytes_per_s


def test_a_class_without_rows_goes_by_its_power_with_a_wide_interval(make, constants):
    new = replace(make.A100, name="new", device_class="new")
    fitted = fitted_time()
    assert chip_of(new, "bf16").efficiency == line_share(312 / 400, constants, fitted.watt_range)
    # The A100 itself lies within a third of the line.
    assert chip_of(make.A100, "bf16").efficiency == pytest.approx(chip_of(new, "bf16").efficiency, rel=0.33)
    starved = replace(new, power_w=1.0)
    assert chip_of(starved, "bf16").efficiency == line_share(fitted.watt_range[1], constants, fitted.watt_range)
    assert chip_of(starved, "bf16").efficiency < chip_of(new, "bf16").efficiency
    old = replace(new, supports_flash_attention=False)
    assert chip_of(old, "bf16").efficiency < chip_of(new, "bf16").efficiency
    unknown = replace(new, power_w=None)
    assert chip_of(unknown, "bf16").efficiency < chip_of(new, "bf16").efficiency
    amd = replace(new, device_class="amd_cdna2")
    per_class = constants.device_class["amd_cdna3 fp8"]
    assert chip_of(amd, "bf16").efficiency == pytest.approx(per_class * chip_of(new, "bf16").efficiency)
    known = interval_of(pace_of(make.LLAMA_8B, make.recipe(), make.A100, gpus=1))
    for device in (new, starved, unknown, amd):
        wide = interval_of(pace_of(make.LLAMA_8B, make.recipe(), device, gpus=1))
        assert wide.high / wide.low > known.high / known.low
        assert "no run" in wide.basis


def test_an_interval_of_a_mixture_is_wider_and_says_so(make):
    mixture = replace(make.LLAMA_8B, experts=8, experts_active=2)
    dense, sparse = (
        interval_of(pace_of(shape, make.recipe(), make.A100, gpus=1)) for shape in (make.LLAMA_8B, mixture)
    )
    assert sparse.low < dense.low
    assert sparse.high > dense.high
    assert "no mixture" in sparse.basis


def test_intervals_are_wider_where_launches_decide_and_over_several_nodes(make):
    def width(load=None, gpus=1, **changes):
        found = interval_of(pace_of(make.LLAMA_8B, make.recipe(**changes), make.A100, gpus=gpus), load)
        return found.high / found.low

    assert width(micro_batch_tokens=512) > width(micro_batch_tokens=4096)
    # Eight rows of 100 tokens cannot fill a micro-batch of 4,096.
    assert width(make.load(row_tokens=100)) == width(micro_batch_tokens=512)
    assert width(gpus=16, sharding="fsdp") > width(gpus=8, sharding="fsdp")


def test_our_own_software_was_not_among_the_rows_and_the_basis_says_so(make):
    assert "other software" in interval_of(pace_of(make.LLAMA_8B, make.recipe(), make.A100, gpus=1)).basis


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


def test_each_class_of_cpu_runs_at_its_own_pace_and_an_unmeasured_one_says_so(make):
    paces = {
        name: pace_of(make.LLAMA_8B, make.recipe(), replace(make.CPU, device_class=name), gpus=1)
        for name in (*MEASURED_CPUS, "cpu_avx2")
    }
    seconds = {name: step_s(pace, make.load()) for name, pace in paces.items()}
    assert seconds["cpu_avx2"] == seconds["cpu_avx512_bf16"] != seconds["cpu_amx_bf16"]
    intervals = {name: interval_of(pace) for name, pace in paces.items()}
    assert "no CPU of this class" in intervals["cpu_avx2"].basis
    assert all("measured on one machine" in intervals[name].basis for name in MEASURED_CPUS)
    assert intervals["cpu_amx_bf16"].high < intervals["cpu_avx2"].high == OTHER_CPU.high
    decoding = [sampling_s(pace, 64, bytes_each=0.0) for pace in paces.values()]
    assert decoding == [64 * 32 * pace.chip.constants.decode_launch_s for pace in paces.values()]


def test_on_a_cpu_a_backward_pass_moves_what_its_class_says(make):
    """Many tokens of a tiny model are all traffic: both ways 1 + backward times forward alone."""
    narrow = replace(make.LLAMA_8B, hidden=64, intermediate=64, heads=1, kv_heads=1, head_dim=8, vocab=2)
    load = make.load(row_tokens=1, eval_tokens=10**7)
    pace = pace_of(narrow, make.recipe(micro_batch_tokens=10**7), make.CPU, gpus=1)
    chip = replace(pace.chip, rate_flops=float("inf"), constants=replace(pace.chip.constants, launch_s=0.0))
    pace = replace(pace, chip=chip)
    whole_s = step_s(pace, load) / load.step_tokens
    assert whole_s / (evaluation_s(pace, load) / load.eval_tokens) == pytest.approx(1 + chip.constants.backward)


def test_fp32_moves_no_casts_on_a_cpu(make):
    bf16, fp32 = (cpu_chip_of(make.CPU, dtype) for dtype in ("bf16", "fp32"))
    constants = cpu_constants(make.CPU.device_class)
    assert (bf16.element_bytes, fp32.element_bytes) == (constants.element_bytes, constants.element_fp32)


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
