"""Energy of a run from its meters to its bill, its CO2e and what `scrimp show` says."""

from dataclasses import replace
from decimal import Decimal

import pytest

from scrimp.core.energy import EnergyReading
from scrimp.core.estimate import within
from scrimp.ledger.store import Ledger
from scrimp.spec.events import event_line, read_events
from scrimp.workflows.execute import local_rate, settle
from scrimp.workflows.job_file import read_job
from scrimp.workflows.open_run import OpenRun
from scrimp.workflows.runs import show_run

READING = EnergyReading(cpu_kwh=0.0012, source="RAPL, 1 CPU package")


@pytest.fixture
def metered(interrupted_run):
    """The run of the fixture with a processor's counter in every step, billed and recorded."""
    folder, plan, world = interrupted_run
    path = folder / "events.jsonl"
    events = [
        replace(event, values={**event.values, **READING.values()}) if event.kind == "step" else event
        for event in read_events(path)
    ]
    path.write_text("".join(map(event_line, events)), encoding="utf-8")
    run = OpenRun(folder=folder, plan=plan, job=read_job(folder / "resolved.json"), created_at=world.now())
    settle(run, ledger=Ledger(world.ledger_url), world=world)
    return folder, world


def test_a_stopped_run_is_billed_by_what_its_meter_said_last(metered):
    folder, world = metered
    shown = show_run(folder.name, world=world)
    (electricity,) = (entry for entry in shown.entries if entry.kind == "electricity")
    assert electricity.quantity == Decimal("0.0012")
    assert "measured by RAPL, 1 CPU package: CPU packages and their memory alone" in electricity.source
    assert shown.carbon.energy_kwh == pytest.approx(0.0012)
    assert shown.carbon.carbon_gco2e == pytest.approx(0.0012 * 475)
    assert "measured by RAPL" in shown.carbon.words
    assert shown.history.energy == READING


def test_a_cpu_machine_draws_what_the_spec_says_and_a_card_what_was_forecast(interrupted_run):
    _, plan, _ = interrupted_run
    assert local_rate(plan).power_w == 60.0
    assert (local_rate(plan).forecast_w, local_rate(plan).cards_w) == (None, None)

    def estimate(value):
        return within(value, low_ratio=0.5, high_ratio=2.0, basis="test")

    # 150 s at 480 W, 360 W of them in the card.
    energy = replace(plan.chosen.energy, energy_kwh=estimate(0.020), gpu_kwh=estimate(0.015))
    rate = local_rate(replace(plan, chosen=replace(plan.chosen, energy=energy)))
    assert rate.forecast_w == pytest.approx(480)
    assert rate.cards_w == pytest.approx(360)
