"""Forecasts multiplied by what was learnt: exactly so, for that hardware alone, and not at all without it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from scrimp.catalog.carbon import grid_factors
from scrimp.catalog.devices import devices
from scrimp.core.correction import Correction, Corrections
from scrimp.core.estimate import Estimate
from scrimp.planner.choose import choose
from scrimp.planner.corrected import CorrectedForecaster, corrected_time, with_corrections
from scrimp.planner.forecasts import RoomForecaster
from scrimp.planner.recipes import Fit, method_choices, search_recipe

DEVICE = "A100-SXM4-80GB"


def correction(quantity, value, **changes):
    """Of every method and model on the A100, unless told otherwise; the interval moves along."""
    base = Correction(quantity=quantity, device=DEVICE, value=value, low=None, high=None, runs=5, models=1)
    return replace(base, **changes)


def corrections(*found):
    return Corrections(made_at=datetime(2026, 12, 1, tzinfo=UTC), scrimp_version="0.1.0", corrections=found)


@pytest.fixture
def setting(fakes):
    """(forecaster by formulas, recipe, machine, local offer, rented offer) of lora on an A100."""
    spec = fakes.spec(method="lora", market={"where": "any"})
    workload = fakes.workload(spec=spec)
    facts = replace(fakes.facts(), devices=devices())
    forecaster = RoomForecaster.of(workload, facts, model_is_here=True)
    machine = fakes.Machine(device=devices()[DEVICE], gpus=1)
    (choice,) = method_choices(spec.method)
    fit = search_recipe(workload, choice, machine, forecaster)
    assert isinstance(fit, Fit)
    rented = fakes.offer(DEVICE, "2.00")
    return forecaster, fit.recipe, machine, replace(rented, market="local"), rented


def _bounds(estimate: Estimate[float]) -> tuple[float, float, float]:
    return estimate.low, estimate.value, estimate.high


def test_nothing_learnt_is_the_forecaster_itself(setting):
    forecaster = setting[0]
    assert with_corrections(forecaster, None) is forecaster
    assert with_corrections(forecaster, corrections()) is forecaster


def test_memory_is_multiplied_in_every_figure_and_its_terms_still_add_up(setting):
    forecaster, recipe, machine, *_ = setting
    plain = forecaster.memory(recipe, machine)
    found = CorrectedForecaster(forecaster, corrections(correction("peak_bytes", 1.5))).memory(recipe, machine)

    for name in ("peak_bytes", "device_bytes", "need_bytes"):
        assert _bounds(getattr(found, name)) == pytest.approx([1.5 * x for x in _bounds(getattr(plain, name))])
    assert found.peak_phase.total_bytes == pytest.approx(1.5 * plain.peak_phase.total_bytes)
    assert found.need_bytes.basis.endswith("; corrected by 5 of your runs")


def test_an_interval_of_its_own_replaces_the_forecast_s(setting):
    forecaster, recipe, machine, *_ = setting
    learnt = correction("peak_bytes", 1.2, low=1.1, high=1.3)
    plain = forecaster.memory(recipe, machine).need_bytes
    found = CorrectedForecaster(forecaster, corrections(learnt)).memory(recipe, machine).need_bytes

    assert _bounds(found) == pytest.approx((1.1 * plain.value, 1.2 * plain.value, 1.3 * plain.value))


def test_time_is_corrected_in_steps_and_around_them_and_the_rate_with_it(setting):
    forecaster, recipe, machine, local, _ = setting
    learnt = corrections(correction("train_s", 2.0), correction("around_s", 0.5))
    plain = forecaster.time(recipe, machine, local)
    found = CorrectedForecaster(forecaster, learnt).time(recipe, machine, local)
    around = plain.total_s.value - plain.train_s.value

    assert found.train_s.value == pytest.approx(2 * plain.train_s.value)
    assert found.step_s.value == pytest.approx(2 * plain.step_s.value)
    assert found.total_s.value == pytest.approx(2 * plain.train_s.value + 0.5 * around)
    assert sum(part.duration_s for part in found.parts) == pytest.approx(found.total_s.value)
    assert _bounds(found.tokens_per_s) == pytest.approx([rate / 2 for rate in _bounds(plain.tokens_per_s)])
    rate = CorrectedForecaster(forecaster, learnt).tokens_per_s(recipe, machine)
    assert rate == pytest.approx(found.tokens_per_s.value)


def test_an_interval_of_its_own_turns_around_for_a_rate(setting):
    forecaster, recipe, machine, local, _ = setting
    plain = forecaster.time(recipe, machine, local)
    found = corrected_time(plain, steps=correction("train_s", 2.0, low=1.6, high=2.5), around=None)

    rate = plain.tokens_per_s.value
    assert _bounds(found.tokens_per_s) == pytest.approx((rate / 2.5, rate / 2, rate / 1.6))


def test_what_is_around_the_steps_here_says_nothing_of_a_rented_machine(setting):
    forecaster, recipe, machine, local, rented = setting
    both = CorrectedForecaster(forecaster, corrections(correction("around_s", 3.0)))

    assert both.time(recipe, machine, rented) == forecaster.time(recipe, machine, rented)
    assert both.time(recipe, machine, local).total_s.value > forecaster.time(recipe, machine, local).total_s.value


def test_the_most_particular_correction_counts_and_other_hardware_none(setting, fakes):
    forecaster, recipe, machine, *_ = setting
    learnt = corrections(
        correction("peak_bytes", 1.1),
        correction("peak_bytes", 1.2, method="lora"),
        correction("peak_bytes", 1.3, method="lora", model=recipe.model),
        correction("peak_bytes", 9.0, method="lora", model="another"),
    )
    found = CorrectedForecaster(forecaster, learnt)
    plain = forecaster.memory(recipe, machine).need_bytes.value

    assert found.memory(recipe, machine).need_bytes.value == pytest.approx(1.3 * plain)
    assert found.memory(replace(recipe, model="new"), machine).need_bytes.value == pytest.approx(1.2 * plain)
    other = fakes.Machine(device=devices()["RTX4090"], gpus=1)
    assert found.memory(recipe, other) == forecaster.memory(recipe, other)
    assert found.time(recipe, other, setting[3]) == forecaster.time(recipe, other, setting[3])


def test_power_multiplies_energy_and_every_figure_of_carbon(setting):
    forecaster, recipe, machine, _, rented = setting
    forecaster = replace(forecaster, facts=replace(forecaster.facts, grid=grid_factors))
    time = forecaster.time(recipe, machine, rented)
    plain = forecaster.energy(time, recipe, machine, rented)
    learnt = CorrectedForecaster(forecaster, corrections(correction("power_w", 1.25)))
    found = learnt.energy(time, recipe, machine, rented)

    assert _bounds(found.energy_kwh) == pytest.approx([1.25 * x for x in _bounds(plain.energy_kwh)])
    assert found.carbon_gco2e.value == pytest.approx(1.25 * plain.carbon_gco2e.value)


def test_a_machine_learnt_to_be_slow_costs_that_much_more_and_loses_to_another(fakes):
    cheap, dear = fakes.offer("RTX4090", "0.40"), fakes.offer("A100-SXM4-80GB", "1.00")
    job, facts = fakes.workload(), fakes.facts(cheap, dear)
    plain = choose(job, facts, fakes.Forecaster())
    first = plain.candidates[0]
    learnt = corrections(correction("train_s", 8.0, device=first.device.name))
    found = choose(job, facts, with_corrections(fakes.Forecaster(), learnt))

    assert found.candidates[0].device.name != first.device.name
    same = next(
        item for item in found.candidates if item.device.name == first.device.name and item.recipe == first.recipe
    )
    assert same.time.train_s.value == pytest.approx(8 * first.time.train_s.value)
    assert same.money.total_usd.value > first.money.total_usd.value


@pytest.mark.parametrize(("value", "low", "high"), [(0.0, None, None), (1.0, 1.1, 1.2), (-1.0, None, None)])
def test_an_impossible_correction_is_refused(value, low, high):
    with pytest.raises(ValueError, match="is no correction"):
        correction("train_s", value, low=low, high=high)
