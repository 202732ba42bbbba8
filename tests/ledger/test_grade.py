"""Grading: like against like, and nothing of a run that did not finish but its memory."""

import importlib.util
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from scrimp.core.estimate import within
from scrimp.ledger.grade import grade
from scrimp.ledger.history import history_of


@pytest.fixture(scope="module")
def plan():
    path = Path(__file__).parents[1] / "report" / "plan_factory.py"
    spec = importlib.util.spec_from_file_location("plan_factory", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make_plan()


def _by_quantity(lines):
    return {line.quantity: (line.forecast, line.measured) for line in lines}


def test_a_finished_run_is_graded_in_full(nouns, plan):
    history = history_of(nouns.make_events(steps=100))
    lines = grade(plan, history, spent_usd=Decimal("0.003"), energy_kwh=0.0016)
    assert _by_quantity(lines) == {
        "peak_bytes": (1.9e9, 2.1e9),
        "step_s": (1.0, 1.0),
        "train_s": (120.0, 100.0),
        "total_s": (150.0, 100.0),
        "cost_usd": (0.0045, 0.003),
        "energy_kwh": (0.0025, 0.0016),
    }
    assert {line.basis for line in lines} >= {"a probe of this machine", "price x time"}


@pytest.mark.parametrize("ending", ["interrupted", "stopped_at_cap", "failed", None])
def test_only_the_memory_of_a_run_that_did_not_finish_is_graded(nouns, plan, ending):
    history = replace(history_of(nouns.make_events(steps=9, ending=ending)), peak_bytes=2e9, peak_kind="rss")
    assert list(_by_quantity(grade(plan, history, spent_usd=Decimal(1), energy_kwh=1.0))) == ["peak_bytes"]


def test_a_price_that_is_not_known_is_not_graded(nouns, plan):
    unpriced = replace(plan, chosen=replace(plan.chosen, money=None))
    lines = grade(unpriced, history_of(nouns.make_events(steps=3)), spent_usd=Decimal(0))
    assert "cost_usd" not in _by_quantity(lines)
    assert "energy_kwh" not in _by_quantity(lines)


@pytest.mark.parametrize(("kind", "forecast"), [("RSS", 3e9), ("device", 3e9), ("allocated", 2e9)])
def test_memory_is_compared_with_the_forecast_of_the_same_thing(nouns, plan, kind, forecast):
    peak = within(2e9, low_ratio=1, high_ratio=1, basis="x")
    memory = replace(plan.chosen.memory, peak_bytes=peak, device_bytes=replace(peak, value=3e9, high=3e9))
    plan = replace(plan, chosen=replace(plan.chosen, memory=memory))
    history = replace(history_of(nouns.make_events(steps=1)), peak_kind=kind)
    assert grade(plan, history, spent_usd=Decimal(0))[0].forecast == forecast


def test_what_the_formulas_alone_foretold_is_kept_beside_what_the_plan_said(nouns, plan):
    slower = replace(plan.chosen.time, train_s=plan.chosen.time.train_s.scaled(1.5))
    corrected = replace(plan, chosen=replace(plan.chosen, time=slower))
    history = history_of(nouns.make_events(steps=100))

    lines = {line.quantity: line for line in grade(corrected, history, spent_usd=Decimal(0), formulas=plan)}

    assert (lines["train_s"].forecast, lines["train_s"].formula) == (180.0, 120.0)
    assert lines["total_s"].formula == lines["total_s"].forecast
