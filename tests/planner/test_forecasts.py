"""The forecaster on the real estimate room: asked once for what repeats, wider where tokens were guessed."""

from dataclasses import replace
from decimal import Decimal

import pytest

from scrimp.catalog.devices import devices
from scrimp.core.market import GridFactor, GridMethod
from scrimp.core.units import GIB
from scrimp.planner import forecasts
from scrimp.planner.forecasts import RoomForecaster
from scrimp.planner.recipes import Fit, method_choices, search_recipe

GRID = GridFactor(
    place="here",
    carbon_gco2e_per_kwh=100.0,
    pue_ratio=1.5,
    year=2026,
    method=GridMethod.ZONE_CONSUMPTION,
    source="test",
)


@pytest.fixture
def setting(fakes):
    """(forecaster, fit) of lora on a real A100."""
    return _setting(fakes)


def _setting(fakes, *, counted=True, model_is_here=True, gpus=1):
    basis = "counted with the model's tokenizer" if counted else "estimated"
    spec = fakes.spec(method="lora", market={"where": "any"})
    workload = fakes.workload(spec=spec, profile=replace(fakes.PROFILE, token_basis=basis))
    facts = replace(fakes.facts(), devices=devices(), grid=lambda provider, region: (GRID,))
    forecaster = RoomForecaster.of(workload, facts, model_is_here=model_is_here)
    machine = fakes.Machine(device=devices()["A100-SXM4-80GB"], gpus=gpus)
    (choice,) = method_choices(spec.method)
    fit = search_recipe(workload, choice, machine, forecaster)
    assert isinstance(fit, Fit)
    return forecaster, fit


def test_memory_is_asked_once_for_machines_that_hold_whole_copies(fakes, setting, monkeypatch):
    forecaster, fit = setting
    asked = []
    real = forecasts.forecast_memory
    monkeypatch.setattr(
        forecasts, "forecast_memory", lambda *args, **kwargs: asked.append(kwargs["gpus"]) or real(*args, **kwargs)
    )
    ddp = replace(fit.recipe, sharding="ddp")
    first = forecaster.memory(ddp, replace(fit.machine, gpus=2))
    assert forecaster.memory(ddp, replace(fit.machine, gpus=8)) is first
    assert forecaster.memory(ddp, fakes.Machine(device=devices()["RTX4090"], gpus=8)) is first
    assert asked == [1]
    sliced = replace(fit.recipe, sharding="fsdp")
    two, eight = (forecaster.memory(sliced, replace(fit.machine, gpus=n)) for n in (2, 8))
    assert eight.need_bytes.value < two.need_bytes.value
    assert asked == [1, 2, 8]


@pytest.mark.parametrize(
    "changes",
    [
        {"weight_dtype": "nf4"},
        {"checkpointing": "full"},
        {"micro_batch_tokens": 700},
        {"optimizer": "sgd"},
        {"layout": "padded"},
    ],
)
def test_recipes_that_differ_are_not_taken_for_each_other(setting, changes):
    forecaster, fit = setting
    other = replace(fit.recipe, **changes)
    assert other != fit.recipe
    same_memory = forecaster.memory(other, fit.machine) is forecaster.memory(fit.recipe, fit.machine)
    assert not same_memory
    assert forecaster.memory(fit.recipe, fit.machine) is forecaster.memory(fit.recipe, fit.machine)


def test_estimated_tokens_widen_the_time_and_say_so(fakes):
    offer = fakes.offer("A100-SXM4-80GB", "2.00")
    (sure, fit), (guessed, _) = (_setting(fakes, counted=counted) for counted in (True, False))
    narrow, wide = (each.time(fit.recipe, fit.machine, offer).total_s for each in (sure, guessed))
    assert wide.value == narrow.value
    assert wide.low < narrow.low
    assert wide.high > narrow.high
    assert "estimated from the text" in wide.basis
    assert "estimated from the text" not in narrow.basis


def test_a_rented_machine_waits_and_downloads_and_this_one_does_not(fakes):
    rented, local = fakes.offer("A100-SXM4-80GB", "2.00"), fakes.offer("A100-SXM4-80GB", "0.10", market="local")
    forecaster, fit = _setting(fakes)
    names = [{part.name for part in forecaster.time(fit.recipe, fit.machine, o).parts} for o in (rented, local)]
    assert {"start-up of the machine", "download"} <= names[0]
    assert not {"start-up of the machine", "download"} & names[1]
    forecaster, fit = _setting(fakes, model_is_here=False)
    parts = {part.name: part.duration_s for part in forecaster.time(fit.recipe, fit.machine, local).parts}
    assert parts["download"] > 0


def test_the_bill_follows_the_price_and_is_unknown_without_one(fakes, setting):
    forecaster, fit = setting
    cheap, dear, unknown = (fakes.offer("A100-SXM4-80GB", price) for price in ("1.00", "2.00", None))
    time = forecaster.time(fit.recipe, fit.machine, cheap)
    machine = [forecaster.money(time, fit.recipe, o).parts[0].amount_usd for o in (cheap, dear)]
    assert machine[1] == pytest.approx(2 * machine[0])
    assert forecaster.money(time, fit.recipe, unknown) is None


def test_spot_without_preemption_costs_its_list_price(fakes, setting):
    forecaster, fit = setting
    spot = fakes.offer("A100-SXM4-80GB", "1.00", market="spot")
    time = forecaster.time(fit.recipe, fit.machine, spot)
    machine = forecaster.money(time, fit.recipe, spot).parts[0].amount_usd
    assert machine == pytest.approx(Decimal(str(time.total_s.value)) / 3600, rel=Decimal("0.01"))


def test_carbon_is_that_of_the_place(fakes, setting):
    forecaster, fit = setting
    offer = fakes.offer("A100-SXM4-80GB", "2.00")
    time = forecaster.time(fit.recipe, fit.machine, offer)
    energy = forecaster.energy(time, fit.recipe, fit.machine, offer)
    assert energy.carbon_gco2e.value == pytest.approx(100 * energy.energy_kwh.value)
    local = forecaster.energy(time, fit.recipe, fit.machine, fakes.offer("A100-SXM4-80GB", "0.10", market="local"))
    assert "spec" in local.grid


def test_the_need_of_a_real_8b_lora_is_a_plausible_one(setting):
    forecaster, fit = setting
    need = forecaster.memory(replace(fit.recipe, micro_batch_tokens=2048), fit.machine).need_bytes.value
    assert 16 * GIB < need < 60 * GIB
