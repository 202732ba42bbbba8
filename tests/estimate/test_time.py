"""Time of a whole job: its parts, their sum, and laws."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.estimate.time.forecast import AROUND, forecast_time
from scrimp.estimate.time.site import here, rented


def _time(make, *, load=None, site=None, device=None, gpus=1, **changes):
    return forecast_time(
        make.LLAMA_8B,
        make.recipe(**changes),
        device or make.A100,
        gpus=gpus,
        load=load or make.load(),
        site=site or here(),
    )


def test_the_total_is_the_sum_of_its_parts(make):
    forecast = _time(make, site=rented(make.TERMS, download_bytes=16e9))
    assert sum(part.duration_s for part in forecast.parts) == pytest.approx(forecast.total_s.value)
    assert [part.name for part in forecast.parts] == [
        "start-up of the machine",
        "image and packages",
        "download",
        "imports and loading",
        "probe",
        "training steps",
        "evaluations",
        "checkpoints",
        "saving the result",
    ]
    assert forecast.train_s.value == pytest.approx(forecast.steps * forecast.step_s.value)
    assert forecast.dominant.duration_s == max(part.duration_s for part in forecast.parts)


def test_here_nothing_is_waited_for_and_nothing_fetched(make):
    names = {part.name for part in _time(make).parts}
    assert not names & {"start-up of the machine", "download"}


def test_a_start_up_that_is_not_established_is_assumed_with_a_wide_interval(make):
    known = _time(make, site=rented(make.TERMS, download_bytes=0))
    unknown = _time(make, site=rented(None, download_bytes=0))
    assert known.parts[0].duration_s == 120.0
    assert unknown.parts[0].duration_s == AROUND.startup_s
    width = [(t.total_s.high - t.total_s.low) for t in (known, unknown)]
    assert width[1] > width[0]


def test_evaluations_and_checkpoints_follow_the_recipe(make):
    def part(name, **changes):
        found = [p.duration_s for p in _time(make, **changes).parts if p.name == name]
        return found[0] if found else 0.0

    once = part("evaluations")
    # 100 steps: before, after, and after steps 25, 50 and 75.
    assert part("evaluations", eval_every_steps=25) == pytest.approx(once * 5 / 2)
    assert part("checkpoints", checkpoint_every_steps=10) == pytest.approx(part("checkpoints") * 5)
    # Always after the last step: with none in between, and with 34, 68 and 100 of 100.
    assert part("checkpoints", checkpoint_every_steps=None) == pytest.approx(part("checkpoints") / 2)
    assert part("checkpoints", checkpoint_every_steps=34) == pytest.approx(part("checkpoints") * 3 / 2)


def test_samples_take_time_of_their_own(make):
    with_samples = _time(make, load=make.load(sampled_tokens=256))
    assert any(part.name == "samples" for part in with_samples.parts)


def test_a_rate_counts_real_tokens(make):
    load = make.load()
    forecast = _time(make, load=load)
    assert forecast.tokens_per_s.value == pytest.approx(load.steps.total_tokens / forecast.train_s.value)
    assert forecast.tokens_per_s.low < forecast.tokens_per_s.value < forecast.tokens_per_s.high


def test_a_job_without_steps_still_costs_its_start(make):
    forecast = _time(make, load=make.load(steps=0, rows=0))
    assert forecast.train_s.value == 0
    assert forecast.tokens_per_s.value == 0
    assert forecast.total_s.value > 0


def test_the_cpu_says_what_it_stands_on(make):
    assert "CPU" in _time(make, device=make.CPU).train_s.basis


@given(
    rows=st.integers(8, 5000), more_rows=st.integers(0, 5000), tokens=st.integers(8, 2000), longer=st.integers(0, 2000)
)
@settings(max_examples=100, deadline=None)
def test_longer_data_never_takes_less_time(make, rows, more_rows, tokens, longer):
    def total(rows, tokens):
        return _time(make, load=make.load(steps=-(-rows // 8), rows=rows, row_tokens=tokens)).total_s.value

    assert total(rows, tokens) <= total(rows + more_rows, tokens) * (1 + 1e-9)
    assert total(rows, tokens) <= total(rows, tokens + longer) * (1 + 1e-9)


@given(gpus=st.integers(1, 8), sharding=st.sampled_from(["ddp", "fsdp"]), layout=st.sampled_from(["packed", "padded"]))
@settings(max_examples=60, deadline=None)
def test_every_interval_holds_its_value(make, gpus, sharding, layout):
    forecast = _time(make, gpus=gpus, sharding=sharding, layout=layout, site=rented(None, download_bytes=1e9))
    for estimate in (forecast.total_s, forecast.train_s, forecast.step_s, forecast.tokens_per_s):
        assert 0 < estimate.low < estimate.value < estimate.high
        assert estimate.basis


@pytest.mark.parametrize(
    ("steps", "choice", "part"),
    [(30, "auto", "probe"), (29, "auto", "rehearsal"), (5, "on", "probe"), (900, "off", "rehearsal")],
)
def test_a_run_looks_ahead_by_a_probe_where_that_is_cheap(make, steps, choice, part):
    load = make.load()
    load = replace(load, steps=replace(load.steps, steps=steps))
    found = forecast_time(make.LLAMA_8B, make.recipe(), make.A100, gpus=1, load=load, site=here(), probe=choice)
    names = [item.name for item in found.parts]
    assert part in names
    assert not {"probe", "rehearsal"} - {part} & set(names)
