"""A finished run with everything in it, as the report gets it."""

import importlib.util
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from scrimp.core.run import RunEvent
from scrimp.ledger.bill import BilledRun, MachineRate, bill
from scrimp.ledger.grade import grade
from scrimp.ledger.history import history_of
from scrimp.report.source import ReportSource

HERE = Path(__file__).parent


def _load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def nouns():
    """Entries, records and events."""
    return _load(HERE.parent / "ledger" / "run_factory.py")


@pytest.fixture(scope="session")
def plans():
    """Plans and their parts."""
    return _load(HERE / "plan_factory.py")


@pytest.fixture
def make_source(nouns, plans):
    """A report's source from events; changes go to the source, `record` changes to its record."""

    def make(events=None, *, record=None, **changes):
        events = nouns.make_events(steps=6) if events is None else events
        history, plan = history_of(events), changes.get("plan", plans.make_plan())
        rate = MachineRate(
            price_usd_per_hour=Decimal("0.10"), power_w=60.0, electricity_usd_per_kwh=Decimal("0.13"), source="the spec"
        )
        done = bill(history, run=BilledRun(run_id="run-1", project="default", rate=rate), process_ended=True)
        graded = grade(plan, history, spent_usd=done.total_usd) if plan is not None else ()
        made = nouns.make_record(spent_usd=done.total_usd, graded=graded, **(record or {}))
        source = ReportSource(
            record=made,
            history=history,
            entries=done.entries,
            made_at=datetime(2025, 6, 2, tzinfo=UTC),
            plan=plan,
            environment={"torch": "2.13.0"},
        )
        return replace(source, **{key: value for key, value in changes.items() if key != "plan"})

    return make


@pytest.fixture
def sampled():
    """A `sampled` event."""

    def make(prompt, answer, when):
        values = {"prompt": prompt, "answer": answer, "when": when}
        return RunEvent(at_s=1_000.0, attempt=1, kind="sampled", step=0, values=values)

    return make
