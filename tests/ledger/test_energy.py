"""Measured energy in the ledger: attempts add up, the bill says what was measured, and only like is graded."""

from dataclasses import replace
from decimal import Decimal

import pytest

from scrimp.core.energy import EnergyReading
from scrimp.core.estimate import within
from scrimp.ledger.bill import BilledRun, MachineRate, bill
from scrimp.ledger.carbon import run_carbon
from scrimp.ledger.grade import grade
from scrimp.ledger.history import history_of

HOUR_S = 3600
CPU_RATE = MachineRate(
    price_usd_per_hour=Decimal("0.1078"), power_w=60.0, electricity_usd_per_kwh=Decimal("0.13"), source="the spec"
)
# A machine that is forecast to draw 500 W, 350 W of them in its card.
CARD_RATE = replace(CPU_RATE, forecast_w=500.0, cards_w=350.0)


def _metered(events, **energy):
    """The events with a meter's reading of their attempt in the last of each kind that carries one."""
    values = EnergyReading(**energy).values()
    return [
        replace(event, values={**event.values, **values}) if event.kind in ("step", "measured") else event
        for event in events
    ]


def _electricity(events, rate=CPU_RATE):
    run = BilledRun(run_id="run-1", project="default", rate=rate)
    entries = bill(history_of(events), run=run, process_ended=True).entries
    return [entry for entry in entries if entry.kind == "electricity"]


def test_without_a_meter_the_configured_or_forecast_power_counts_and_says_so(nouns):
    (stated,) = _electricity(nouns.make_events(steps=HOUR_S))
    assert (stated.quantity, stated.source) == (Decimal("0.06"), "60 W as configured x time")
    (forecast,) = _electricity(nouns.make_events(steps=HOUR_S), CARD_RATE)
    assert (forecast.quantity, forecast.source) == (Decimal("0.5"), "500 W as forecast x time")


def test_what_was_measured_is_billed_and_its_source_named(nouns):
    events = _metered(nouns.make_events(steps=HOUR_S), cpu_kwh=0.045, source="RAPL, 1 CPU package")
    (entry,) = _electricity(events)
    assert entry.quantity == Decimal("0.045")
    assert entry.amount_usd == Decimal("0.045") * Decimal("0.13")
    assert entry.source == "measured by RAPL, 1 CPU package: CPU packages and their memory alone"


def test_cards_are_billed_as_measured_and_the_rest_of_the_machine_as_forecast(nouns):
    events = _metered(nouns.make_events(steps=HOUR_S), gpu_kwh=0.3, source="NVML energy counter of 1 card")
    (entry,) = _electricity(events, CARD_RATE)
    assert entry.quantity == Decimal("0.45")
    assert "the GPUs alone; everything else 150 W as forecast x time" in entry.source
    hungry = _metered(nouns.make_events(steps=HOUR_S), gpu_kwh=0.3, cpu_kwh=0.2, source="NVML; RAPL")
    # The processor alone drew more than everything beside the cards was forecast to.
    assert _electricity(hungry, CARD_RATE)[0].quantity == Decimal("0.5")


def test_energy_of_attempts_adds_up_and_a_killed_one_counts_to_its_last_step(nouns):
    killed = _metered(nouns.make_events(steps=4, ending=None), gpu_kwh=0.2, source="NVML")
    resumed = _metered(nouns.make_events(steps=4, attempt=2, first=5, at_s=9_000.0), gpu_kwh=0.3, source="NVML")
    history = history_of([*killed, *resumed])
    assert history.energy == EnergyReading(gpu_kwh=0.5, source="NVML")
    assert [entry.attempt for entry in _electricity([*killed, *resumed], CARD_RATE)] == [1, 2]


def test_attempts_of_different_meters_are_not_added(nouns):
    first = _metered(nouns.make_events(steps=2, ending="interrupted"), gpu_kwh=0.2, source="NVML")
    second = nouns.make_events(steps=2, attempt=2, first=3, at_s=9_000.0)
    assert history_of([*first, *second]).energy is None
    other = _metered(second, cpu_kwh=0.1, source="RAPL")
    assert history_of([*first, *other]).energy is None
    # The bill still names each for itself.
    sources = [entry.source for entry in _electricity([*first, *other], CARD_RATE)]
    assert ["the GPUs alone" in source for source in sources] == [True, False]


def test_a_readings_scope_survives_and_a_bare_figure_is_the_machines(nouns):
    assert history_of(_metered(nouns.make_events(steps=1), machine_kwh=0.7)).energy_kwh == 0.7
    bare = [
        replace(event, values={**event.values, "energy_kwh": 0.7}) if event.kind == "measured" else event
        for event in nouns.make_events(steps=1)
    ]
    assert history_of(bare).energy_kwh == 0.7
    assert history_of(_metered(nouns.make_events(steps=1), gpu_kwh=0.7)).energy_kwh is None


def test_the_carbon_of_a_run_is_its_bill_at_the_plans_grid(nouns, plan):
    entries = _electricity(_metered(nouns.make_events(steps=HOUR_S), cpu_kwh=0.045, source="RAPL"))
    used = run_carbon(plan, entries)
    assert used.energy_kwh == pytest.approx(0.045)
    assert used.carbon_gco2e == pytest.approx(0.045 * 475)
    for part in ("45.0 Wh, measured by RAPL", "21.4 g CO2e", "as the spec states it"):
        assert part in used.words
    assert run_carbon(plan, []) is None
    unknown = run_carbon(None, entries)
    assert (unknown.carbon_gco2e, unknown.method) == (None, None)
    assert "CO2e unknown" in unknown.words


def test_counters_of_the_cards_are_held_against_the_forecast_of_the_cards_alone(nouns, plan):
    cards = within(0.0020, low_ratio=0.6, high_ratio=1.3, basis="share of the cards' rated power x time")
    plan = replace(plan, chosen=replace(plan.chosen, energy=replace(plan.chosen.energy, gpu_kwh=cards)))

    def graded(**energy):
        events = _metered(nouns.make_events(steps=3), **energy) if energy else nouns.make_events(steps=3)
        lines = grade(plan, history_of(events), spent_usd=Decimal(0))
        return {line.quantity: (line.forecast, line.measured) for line in lines if line.quantity.endswith("_kwh")}

    assert graded(gpu_kwh=0.0017) == {"gpu_kwh": (0.0020, 0.0017)}
    assert graded(machine_kwh=0.0030) == {"energy_kwh": (0.0025, 0.0030)}
    # Neither the processor's counters nor an estimate of the process has a forecast of its own scope.
    assert graded(cpu_kwh=0.0017) == {}
    assert graded(process_kwh=0.0017) == {}
    # What was billed by a stated power was not measured.
    assert graded() == {}
