"""Relief: every change can be typed, its effect is that of a new forecast, and the words say it."""

from dataclasses import replace

import pytest

from scrimp.core.plan import Relief
from scrimp.core.units import GIB
from scrimp.planner.choose import choose
from scrimp.planner.explain import dominant_words, rejected_rows
from scrimp.planner.forecasts import RoomForecaster
from scrimp.planner.recipes import Fit, method_choices, search_recipe
from scrimp.planner.relief import best_relief_words, find_relief, relief_words, shorter_rows
from scrimp.planner.remedies import no_plan_error
from scrimp.spec.read import parse_spec


def _fit(fakes, workload, device, **recipe):
    """The recipe that the planner would take, with changes, and its forecast by the real formulas."""
    machine = fakes.Machine(device=device, gpus=1)
    forecaster = RoomForecaster.of(workload, fakes.facts(), model_is_here=True)
    (choice,) = method_choices(workload.spec.method)
    found = search_recipe(workload, choice, machine, forecaster)
    assert isinstance(found, Fit)
    made = replace(found.recipe, **recipe)
    return made, machine, forecaster, forecaster.memory(made, machine)


def _relief(fakes, workload, device=None, **recipe):
    made, machine, forecaster, memory = _fit(fakes, workload, device or fakes.CARDS["A100-SXM4-80GB"], **recipe)
    return find_relief(workload, made, machine, memory, forecaster), memory


def test_each_effect_is_that_of_a_new_forecast(fakes):
    workload = fakes.workload(spec=fakes.spec(method="lora", options={"dropout": 0.05}))
    made, machine, forecaster, memory = _fit(fakes, workload, fakes.CARDS["A100-SXM4-80GB"], checkpointing="none")
    found = {item.change: item for item in find_relief(workload, made, machine, memory, forecaster)}
    assert {"training.checkpointing=selective", "training.checkpointing=full"} <= set(found)
    for kind in ("selective", "full"):
        then = forecaster.memory(replace(made, checkpointing=kind), machine).need_bytes.value
        item = found[f"training.checkpointing={kind}"]
        assert item.need_bytes == then
        assert item.saved_bytes == memory.need_bytes.value - then > 0
        assert item.fits
    selective, full = (found[f"training.checkpointing={kind}"] for kind in ("selective", "full"))
    assert selective.saved_bytes < full.saved_bytes
    assert 1.0 < selective.time_ratio < full.time_ratio


def test_changes_are_words_that_the_spec_takes(fakes):
    """Typed, each gives the spec whose recipe was forecast."""
    options = {"method": "lora", "options": {"dropout": 0.05, "rank": 64}}
    workload = fakes.workload(spec=fakes.spec(**options))
    text = "model: m\ndata: {path: rows.jsonl}\nmethod: {name: lora, dropout: 0.05, rank: 64}\n"
    seen = set()
    for recipe in ({"checkpointing": "none"}, {"checkpointing": "full", "micro_batch_tokens": 2048}):
        for item in _relief(fakes, workload, **recipe)[0]:
            typed = parse_spec(text, where="job.yaml", overrides=item.change.split())
            assert typed != parse_spec(text, where="job.yaml")
            seen.add(item.change.partition("=")[0])
    assert {"training.checkpointing", "training.micro_batch_tokens", "method.name"} <= seen


def test_eight_bit_states_are_offered_where_states_weigh_and_paged_ones_for_nvidia_alone(fakes):
    workload = fakes.workload(spec=fakes.spec(method="full"))
    for card, paged in (("A100-SXM4-80GB", True), ("MI300X", False)):
        device = replace(fakes.CARDS[card], memory_bytes=400 * GIB)
        changes = {item.change: item for item in _relief(fakes, workload, device, checkpointing="full")[0]}
        assert "training.optimizer=adamw_8bit" in changes
        assert ("training.optimizer=paged_adamw_8bit" in changes) is paged
    # Adam's moments beside fp32 weights are 8 bytes a weight, in 8 bit 2.03; the need is the tensors and a margin.
    saved = changes["training.optimizer=adamw_8bit"].saved_bytes
    assert saved == pytest.approx(fakes.SHAPE.params * (8 - 2 * (1 + 4 / 256)), rel=0.1)


def test_shorter_rows_are_offered_where_few_rows_are_long(fakes):
    profile = replace(fakes.PROFILE, length_histogram=((100, 700), (300, 80), (900, 20)))
    workload = fakes.workload(profile=profile, spec=fakes.spec(method="lora"))
    assert shorter_rows(workload) == (300, 20)
    found = {item.change: item for item in _relief(fakes, workload, micro_batch_tokens=900)[0]}
    item = found["data.max_length_tokens=300"]
    assert item.note == "20 rows are left out"
    assert item.saved_bytes > 0
    # A micro-batch of several rows does not shrink with the longest of them.
    assert not any(item.change.startswith("data") for item in _relief(fakes, workload, micro_batch_tokens=4000)[0])
    equal = replace(fakes.PROFILE, length_histogram=((880, 700), (900, 100)))
    assert shorter_rows(fakes.workload(profile=equal)) is None


def test_only_plans_that_may_not_fit_carry_relief_and_show_it(fakes):
    workload = fakes.workload(spec=fakes.spec(method="lora"))
    roomy = choose(workload, fakes.facts(fakes.offer("MI300X", "3")), fakes.Forecaster()).candidates[0]
    assert roomy.relief == ()
    assert "to save" not in dict(dominant_words(roomy))
    training = {"micro_batch_tokens": 2700, "checkpointing": "none"}
    workload = fakes.workload(spec=fakes.spec(method="lora", training=training))
    tight = choose(workload, fakes.facts(fakes.offer("RTX4090", "0.4")), fakes.Forecaster()).candidates[0]
    assert tight.memory.need_bytes.value <= tight.device.memory_bytes < tight.memory.need_bytes.high
    assert tight.relief
    assert dict(dominant_words(tight))["to save"] == "; ".join(relief_words(item) for item in tight.relief)


def test_what_does_not_fit_says_where_it_peaks_and_what_would_help(fakes):
    workload = fakes.workload(spec=fakes.spec(method="lora", options={"rank": 512}))
    plans = choose(workload, fakes.facts(fakes.offer("T4", "0.3")), fakes.Forecaster())
    (rejected,) = [item for item in plans.rejected if item.kind == "memory"]
    assert "peak in forward and backward: optimizer states" in rejected.reason
    words = best_relief_words(rejected.relief)
    assert words.endswith((": enough", ": not enough alone"))
    assert words in rejected_rows(plans.rejected, every=True)[0].words
    error = no_plan_error(plans)
    assert max(map(len, [*error.what.splitlines(), *error.next_step.splitlines()])) <= 80
    assert words.split()[0] in error.what


def test_words_of_an_effect():
    item = Relief(
        change="training.checkpointing=selective", need_bytes=1.0, saved_bytes=9 * GIB, time_ratio=1.08, fits=True
    )
    assert relief_words(item) == "training.checkpointing=selective saves 9.00 GiB and costs 8% more time"
    assert relief_words(replace(item, time_ratio=1.0, note="a note")) == (
        "training.checkpointing=selective saves 9.00 GiB (a note)"
    )
    assert relief_words(replace(item, time_ratio=0.9)).endswith("saves 9.00 GiB and 10% of the time")
    cheap = replace(item, change="b", time_ratio=1.01)
    assert best_relief_words((item, cheap)).startswith("b saves")
    assert best_relief_words((replace(item, fits=False),)).endswith("not enough alone")
    assert best_relief_words(()) == ""
