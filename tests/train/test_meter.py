"""The meter: dollars over all attempts, and limits that stop before they are passed."""

from decimal import Decimal

import pytest

from scrimp.core.data import StepPlan
from scrimp.core.job import DataSpec
from scrimp.core.recipe import ResolvedJob
from scrimp.core.run import RunEvent
from scrimp.train.meter import Meter

STEPS = StepPlan(
    steps=9, epochs=1, rows=9, total_tokens=900, trained_tokens=90, largest_step_tokens=100, longest_row_tokens=10
)


@pytest.fixture
def meter(recipe, turned_clock):
    """A meter at 36 dollars an hour: a cent a second."""

    def make(*, earlier=(), **job):
        clock = turned_clock()
        made = ResolvedJob(
            run_id="r", name="n", recipe=recipe(), data=DataSpec(path="x"), steps=STEPS, run_folder="f",
            **{"price_usd_per_hour": Decimal(36), **job},
        )  # fmt: skip
        return Meter(made, earlier=earlier, clock=clock.clock()), clock

    return make


def _event(kind, at_s, **values):
    return RunEvent(at_s=at_s, attempt=1, kind=kind, step=1, values=values)


def test_an_attempt_costs_its_wall_clock(meter):
    made, clock = meter()
    clock.at_s += 150
    assert made.spent_usd == Decimal("1.5")


def test_an_unknown_price_is_unknown_and_stops_nothing(meter):
    made, clock = meter(price_usd_per_hour=None, budget_usd=Decimal("0.01"))
    clock.at_s += 1e6
    assert made.spent_usd is None
    assert made.projected_usd(tokens_left=100) is None
    assert made.passed_limit(next_tokens=100, checkpoint_bytes=0, duties_due=False) is None


@pytest.mark.parametrize(("ledger", "events", "expected"), [("2", "3", "3"), ("4", "3", "4"), ("0", None, "0")])
def test_what_was_spent_before_is_counted_once(meter, ledger, events, expected):
    earlier = () if events is None else (_event("step", 5.0, spent_usd=events), _event("note", 6.0))
    made, _ = meter(earlier=earlier, spent_before_usd=Decimal(ledger))
    assert made.spent_usd == Decimal(expected)


def test_it_stops_while_a_step_and_a_save_still_fit(meter):
    made, clock = meter(budget_usd=Decimal(1))  # 100 s
    made.took_step(tokens=100, step_s=10)
    made.took_save(5)
    clock.at_s += 81  # and 1.25 x (10 + 5) ahead
    assert made.passed_limit(next_tokens=100, checkpoint_bytes=0, duties_due=False) is None
    clock.at_s += 1
    limit = made.passed_limit(next_tokens=100, checkpoint_bytes=0, duties_due=False)
    assert limit is not None
    assert (limit.name, limit.spent_usd, limit.budget_usd) == ("budget", Decimal("0.82"), Decimal(1))
    assert made.passed_limit(next_tokens=50, checkpoint_bytes=0, duties_due=False) is None, "half a step fits"


def test_what_is_due_after_the_step_is_reckoned_with(meter):
    made, clock = meter(budget_usd=Decimal(1))
    made.took_step(tokens=100, step_s=10)
    made.took_save(5)
    made.took_duties(30)
    clock.at_s += 60
    assert made.passed_limit(next_tokens=100, checkpoint_bytes=0, duties_due=False) is None
    assert made.passed_limit(next_tokens=100, checkpoint_bytes=0, duties_due=True) is not None


def test_the_slowest_recent_step_counts_and_old_ones_are_forgotten(meter):
    made, clock = meter(budget_usd=Decimal(1))
    made.took_save(1)
    made.took_step(tokens=100, step_s=60)
    made.took_step(tokens=100, step_s=1)
    clock.at_s += 45
    assert made.passed_limit(next_tokens=100, checkpoint_bytes=0, duties_due=False) is not None
    for _ in range(8):
        made.took_step(tokens=100, step_s=1)
    assert made.passed_limit(next_tokens=100, checkpoint_bytes=0, duties_due=False) is None


def test_a_save_that_was_never_timed_is_reckoned_by_its_size(meter):
    made, _ = meter(budget_usd=Decimal("0.10"))  # 10 s
    assert made.passed_limit(next_tokens=0, checkpoint_bytes=700_000_000, duties_due=False) is None
    assert made.passed_limit(next_tokens=0, checkpoint_bytes=900_000_000, duties_due=False) is not None


def test_the_deadline_counts_from_the_first_attempt(meter, turned_clock):
    started_s = turned_clock().at_s - 3600
    made, clock = meter(earlier=(_event("started", started_s), _event("started", started_s + 60)), deadline_s=3700.0)
    made.took_save(10)
    assert made.passed_limit(next_tokens=0, checkpoint_bytes=0, duties_due=False) is None
    clock.at_s += 91
    limit = made.passed_limit(next_tokens=0, checkpoint_bytes=0, duties_due=False)
    assert limit is not None
    assert limit.name == "deadline"


def test_the_projection_is_spent_plus_what_the_rest_takes(meter):
    made, clock = meter()
    clock.at_s += 100
    made.took_step(tokens=100, step_s=10)
    assert made.projected_usd(tokens_left=500) == Decimal("1.5")
