"""Memory: figures that can be worked out by hand, and laws that hold for every recipe."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.core.errors import UnknownNameError
from scrimp.core.job import MethodChoice
from scrimp.core.units import GIB
from scrimp.estimate.memory.activations import layer_bytes
from scrimp.estimate.memory.forecast import card_forecast, forecast_memory
from scrimp.estimate.memory.phases import memory_phases
from scrimp.estimate.stack import TRAINER_ON_CPU, Stack
from scrimp.models.table import known_shapes

METHODS = {"lora": "bf16", "qlora": "nf4", "full": "fp32"}


def _terms(case, phase):
    found = next(item for item in memory_phases(case) if item.name == phase)
    return {term.name: term.size_bytes for term in found.terms}


def test_a_pure_bf16_fine_tune_with_foreach_adamw_peaks_in_the_optimizer_step(make):
    # Published: Llama-3-8B, 74.80 GiB allocated on one A100 with a fused linear loss, batch 4 x 4096.
    stack = Stack(name="foreach", optimizer_step="foreach", accumulates=False)
    case = make.case(
        method=make.of_method("full"),
        weight_dtype="bf16",
        loss="fused",
        checkpointing="full",
        micro_batch_tokens=16384,
        stack=stack,
    )
    forecast = card_forecast(case)
    assert forecast.peak_phase.name == "optimizer_step"
    assert forecast.peak_bytes.value == pytest.approx(74.80 * GIB, rel=0.001)


def test_masters_in_fp32_take_sixteen_bytes_a_parameter(make):
    case = make.case(method=make.of_method("full"), weight_dtype="fp32")
    terms = _terms(case, "optimizer_step")
    assert sum(terms.values()) == 16 * make.LLAMA_8B.params


def test_four_bit_weights_take_half_a_byte_and_the_rest_stays_16_bit(make):
    shape = make.LLAMA_8B
    weights = _terms(make.case(method=make.of_method("qlora"), weight_dtype="nf4"), "save")["weights"]
    assert weights == pytest.approx(0.516 * shape.linear_params + 2 * (shape.params - shape.linear_params))


def test_the_selective_loss_is_bounded_by_its_pieces(make):
    few = make.case(micro_batch_tokens=2048, trained_share=0.1)
    many = make.case(micro_batch_tokens=65536, trained_share=1.0)
    assert few.logits_bytes < many.logits_bytes == 2**26 * 6
    assert make.case(micro_batch_tokens=65536, loss="full").logits_bytes == 65536 * 128256 * 12
    assert make.case(loss="fused").logits_bytes == 0


def test_a_row_longer_than_the_micro_batch_sets_the_size(make):
    assert make.case(micro_batch_tokens=512).tokens == 2048


def test_what_dominates_is_named(make):
    case = make.case(micro_batch_tokens=65536)
    assert card_forecast(case).dominant.name == "activations"
    assert card_forecast(make.case(micro_batch_tokens=512)).dominant.name == "weights"


def test_plain_sgd_has_no_states(make):
    assert "optimizer states" not in _terms(make.case(optimizer="sgd"), "save")


def test_several_cards_and_mixtures_widen_the_interval_and_say_so(make):
    one = card_forecast(make.case()).peak_bytes
    sharded = card_forecast(make.case(sharding="fsdp", gpus=4)).peak_bytes
    experts = replace(make.LLAMA_8B, experts=8, experts_active=2)
    mixture = card_forecast(make.case(shape=experts)).peak_bytes
    for wide in (sharded, mixture):
        assert wide.high / wide.value > one.high / one.value
        assert wide.basis != one.basis


def test_an_unknown_method_is_refused(make):
    with pytest.raises(UnknownNameError):
        forecast_memory(
            make.LLAMA_8B, make.recipe(method=make.of_method("lorra")), make.A100, gpus=1, longest_row_tokens=2048
        )


def test_a_cpu_process_counts_interpreter_and_heap(make):
    kwargs = {"gpus": 1, "longest_row_tokens": 512, "trained_share": 0.3}
    process = forecast_memory(make.LLAMA_8B, make.recipe(), make.CPU, **kwargs)
    card = forecast_memory(make.LLAMA_8B, make.recipe(), make.A100, **kwargs)
    assert process.device_bytes == process.peak_bytes
    assert process.peak_bytes.value > card.peak_bytes.value
    assert any(term.name == "interpreter and libraries" for term in process.peak_phase.terms)


def test_converted_weights_lie_beside_their_file_while_a_cpu_loads(make):
    forecast = forecast_memory(
        make.LLAMA_8B, make.recipe(weight_dtype="fp32", compute_dtype="fp32"), make.CPU, gpus=1, longest_row_tokens=64
    )
    load = next(phase for phase in forecast.phases if phase.name == "load")
    names = {term.name: term.size_bytes for term in load.terms}
    assert names["mapped weight file"] == 2 * make.LLAMA_8B.params
    assert names["weights"] == 4 * make.LLAMA_8B.params


shapes = st.builds(
    lambda hidden, layers, intermediate, vocab, grouped, tied, gated: {
        "hidden": hidden * 128,
        "layers": layers,
        "heads": hidden,
        "kv_heads": hidden if not grouped else 1,
        "intermediate": intermediate * 128,
        "vocab": vocab,
        "tied_embeddings": tied,
        "gated_mlp": gated,
    },
    st.integers(2, 64),
    st.integers(8, 80),
    st.integers(4, 256),
    st.integers(1000, 260_000),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
recipes = st.fixed_dictionaries(
    {
        "method": st.sampled_from(sorted(METHODS)),
        "checkpointing": st.sampled_from(("none", "selective", "full")),
        "loss": st.sampled_from(["selected", "full", "fused"]),
        "micro_batch_tokens": st.integers(1, 200_000),
    }
)


def _case(make, shape, recipe, **changes):
    name = recipe["method"]
    values = {**recipe, "method": make.of_method(name), "weight_dtype": METHODS[name], **changes}
    return make.case(shape=replace(make.LLAMA_8B, **shape), **values)


@given(shape=shapes, recipe=recipes, more=st.integers(1, 100_000), cpu=st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_larger_micro_batch_never_needs_less(make, shape, recipe, more, cpu):
    def forecast(tokens):
        made = _case(make, shape, recipe, micro_batch_tokens=tokens)
        device = make.CPU if cpu else make.A100
        return forecast_memory(made.shape, made.recipe, device, gpus=1, longest_row_tokens=64, trained_share=0.3)

    small, large = forecast(recipe["micro_batch_tokens"]), forecast(recipe["micro_batch_tokens"] + more)
    for name in ("peak_bytes", "device_bytes", "need_bytes"):
        assert getattr(small, name).value <= getattr(large, name).value * (1 + 1e-12)


@given(shape=shapes, recipe=recipes)
@settings(max_examples=150, deadline=None)
def test_checkpointing_never_needs_more(make, shape, recipe):
    none, full = (card_forecast(_case(make, shape, {**recipe, "checkpointing": kind})) for kind in ("none", "full"))
    assert full.peak_bytes.value <= none.peak_bytes.value * (1 + 1e-12)


def test_selective_checkpointing_keeps_what_this_trainer_was_seen_to_hold(make):
    """SmolLM2-135M on a CPU, storages alive between forward and backward: 13,972, 15,012 and 25,380 bytes a token and
    layer beyond what lies outside the layers."""
    smol = replace(
        make.LLAMA_8B, hidden=576, layers=30, heads=9, kv_heads=3, head_dim=64, intermediate=1536, vocab=49152
    )
    for method, weights, compute, held in (
        (MethodChoice(name="lora", options={"rank": 8, "dropout": 0.1}), "bf16", "bf16", 13_972),
        (MethodChoice(name="full"), "fp32", "bf16", 15_012),
        (MethodChoice(name="full"), "fp32", "fp32", 25_380),
    ):
        case = make.case(shape=smol, method=method, weight_dtype=weights, compute_dtype=compute, stack=TRAINER_ON_CPU)
        layer = layer_bytes(case)
        assert layer.kept_under("selective") == held
        assert layer.input_bytes < held < layer.kept_bytes


@given(shape=shapes, recipe=recipes, gpus=st.integers(2, 16), more=st.integers(1, 48))
@settings(max_examples=150, deadline=None)
def test_more_cards_never_need_more_of_each_when_sharded(make, shape, recipe, gpus, more):
    few, many = (
        card_forecast(_case(make, shape, recipe, sharding="fsdp", gpus=count)) for count in (gpus, gpus + more)
    )
    assert many.peak_bytes.value <= few.peak_bytes.value * (1 + 1e-12)


@given(shape=shapes, recipe=recipes)
@settings(max_examples=100, deadline=None)
def test_need_is_more_than_the_peak_and_every_interval_holds_its_value(make, shape, recipe):
    forecast = card_forecast(_case(make, shape, recipe))
    assert forecast.need_bytes.value > forecast.peak_bytes.value == forecast.peak_phase.total_bytes
    for estimate in (forecast.peak_bytes, forecast.device_bytes, forecast.need_bytes):
        assert 0 < estimate.low <= estimate.value <= estimate.high


@given(shape=shapes, rank=st.integers(1, 128), more=st.integers(1, 128))
@settings(max_examples=50, deadline=None)
def test_a_larger_rank_never_needs_less(make, shape, rank, more):
    small, large = (
        card_forecast(
            make.case(shape=replace(make.LLAMA_8B, **shape), method=make.of_method("lora", rank=value))
        ).peak_bytes.value
        for value in (rank, rank + more)
    )
    assert small <= large


def test_packing_leaves_the_routed_experts_of_a_mixture_as_they_are(make):
    shapes = known_shapes()
    packed_share = {}
    for name in ("mistralai/Mixtral-8x7B-v0.1", "mistralai/Mistral-7B-v0.3"):
        plain, packed = (make.case(shape=shapes[name], weight_dtype=dtype).weight_bytes for dtype in ("bf16", "nf4"))
        packed_share[name] = packed / plain
    assert packed_share["mistralai/Mixtral-8x7B-v0.1"] > 0.9
    assert packed_share["mistralai/Mistral-7B-v0.3"] < 0.4


@pytest.mark.parametrize(
    ("device_class", "wide"), [("cpu_amx_bf16", False), ("cpu_avx512_bf16", False), ("cpu_avx2", True), ("cpu", True)]
)
def test_a_class_of_cpu_that_nobody_measured_has_a_wider_interval_and_says_so(make, device_class, wide):
    device = replace(make.CPU, device_class=device_class)
    peak = forecast_memory(make.LLAMA_8B, make.recipe(), device, gpus=1, longest_row_tokens=512).peak_bytes
    assert ("no CPU of this class" in peak.basis) is wide
    assert (peak.high / peak.value >= 1.4) is wide


@pytest.mark.parametrize(("dtype", "grows"), [("bf16", True), ("fp32", False)])
def test_a_process_grows_with_its_steps_where_its_products_are_in_16_bit(make, dtype, grows):
    recipe = make.recipe(weight_dtype=dtype, compute_dtype=dtype)

    def forecast(steps):
        return forecast_memory(make.LLAMA_8B, recipe, make.CPU, gpus=1, longest_row_tokens=512, steps=steps)

    peaks = [forecast(steps).peak_bytes.value for steps in (3, 30, 300, None)]
    assert peaks == sorted(peaks)
    assert (peaks[0] < peaks[-1]) is grows
    assert peaks[-1] / peaks[0] < 1.5
    assert len(set(peaks)) == (4 if grows else 1)
    loads = {forecast(steps).phases[0] for steps in (3, 30, None)}
    assert len(loads) == 1, "nothing has run yet"


def test_a_step_of_one_micro_batch_on_a_cpu_has_no_gradients_of_earlier_ones(make):
    recipe = replace(make.recipe(micro_batch_tokens=512), method=MethodChoice(name="full"), weight_dtype="fp32")

    def peak(largest):
        return forecast_memory(
            make.LLAMA_8B, recipe, make.CPU, gpus=1, longest_row_tokens=256, largest_step_tokens=largest
        ).peak_bytes.value

    assert peak(512) < peak(513) == peak(None)
