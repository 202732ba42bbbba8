"""Pricing a run: each attempt at its price, killed ones to their last event, nothing twice, nothing guessed."""

import itertools
import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrimp.core.run import RunEvent
from scrimp.ledger.bill import BilledRun, MachineRate, bill, billed_kwh, unrecorded
from scrimp.ledger.history import history_of
from scrimp.ledger.queries import EntryQuery

LOCAL = MachineRate(
    price_usd_per_hour=Decimal("0.10"), power_w=60.0, electricity_usd_per_kwh=Decimal("0.13"), source="spec"
)
RUN = BilledRun(run_id="run-1", project="p", rate=LOCAL)


def _billed(events, *, run=RUN, process_ended=True):
    return bill(history_of(events), run=run, process_ended=process_ended)


def test_an_hour_costs_the_hourly_price_of_which_electricity_is_a_line_of_its_own(nouns):
    machine, electricity = _billed(nouns.make_events(steps=3600)).entries
    assert machine.amount_usd + electricity.amount_usd == Decimal("0.10")
    assert (machine.quantity, machine.unit, machine.unit_usd) == (1, "h", Decimal("0.0922"))
    assert machine.entry_id == "run-1/1/machine"
    assert electricity.amount_usd == Decimal("0.06") * Decimal("0.13")
    assert (electricity.quantity, electricity.unit) == (Decimal("0.06"), "kWh")
    assert (machine.ended_at - machine.started_at).total_seconds() == 3600


def test_three_machines_in_a_row_are_billed_at_their_three_prices(nouns):
    events = []
    for attempt, price in enumerate(("1.20", "0.90", "2.40"), start=1):
        ending = "finished" if attempt == 3 else None
        events += nouns.make_events(
            steps=3600,
            attempt=attempt,
            first=1 + 1800 * (attempt - 1),
            at_s=attempt * 10_000.0,
            ending=ending,
            price=price,
        )
    rate = MachineRate(price_usd_per_hour=Decimal("9"), source="list")
    done = _billed(events, run=BilledRun(run_id="r", project="p", rate=rate))
    assert [entry.amount_usd for entry in done.entries] == [Decimal("1.20"), Decimal("0.90"), Decimal("2.40")]
    assert [entry.note for entry in done.entries][:2] == ["ended without a word; billed to its last event"] * 2


def test_an_open_attempt_is_shown_and_not_recorded(nouns):
    events = nouns.make_events(steps=36, ending=None)
    running = _billed(events, process_ended=False)
    assert running.entries == ()
    assert [entry.kind for entry in running.running] == ["machine", "electricity"]
    assert running.total_usd > 0
    assert [entry.amount_usd for entry in _billed(events).entries] == [entry.amount_usd for entry in running.running]


def test_a_bill_twice_is_the_same_bill(ledger, nouns):
    first = nouns.make_events(steps=7, ending=None)
    ledger.record(*_billed(first).entries)
    both = first + nouns.make_events(steps=5, first=5, attempt=2, at_s=5_000.0)
    assert ledger.record(*_billed(both).entries) == 2
    assert ledger.record(*_billed(both).entries) == 0
    assert ledger.spent_usd() == _billed(both).total_usd


def test_a_process_that_was_taken_for_dead_is_billed_for_the_rest(ledger, nouns):
    dead = _billed(nouns.make_events(steps=30, ending=None)).entries
    ledger.record(*unrecorded(dead, ledger.entries()))
    for steps, ending in ((31, None), (40, "interrupted"), (40, "interrupted")):
        now = _billed(nouns.make_events(steps=steps, ending=ending)).entries
        ledger.record(*unrecorded(now, ledger.entries()))
        hours = sum(entry.quantity for entry in ledger.entries(EntryQuery(kind="machine")))
        assert hours == now[0].quantity
    assert ledger.spent_usd() == _billed(nouns.make_events(steps=40)).total_usd
    assert len(ledger.entries()) == 2 * 3
    assert unrecorded(now, ledger.entries()) == ()


def test_a_changed_price_changes_no_old_entry(ledger, nouns):
    ledger.record(*_billed(nouns.make_events(steps=36)).entries)
    dearer = replace(LOCAL, electricity_usd_per_kwh=Decimal(9))
    again = _billed(nouns.make_events(steps=36), run=replace(RUN, rate=dearer)).entries
    assert unrecorded(again, ledger.entries()) == ()


def test_the_electricity_that_was_billed(nouns):
    assert billed_kwh(_billed(nouns.make_events(steps=3600)).entries) == 0.06
    assert billed_kwh([nouns.make_entry()]) is None


def test_an_unknown_price_is_flagged_and_not_zero(nouns):
    rate = MachineRate(price_usd_per_hour=None, source="")
    done = _billed(nouns.make_events(steps=90, price=None), run=BilledRun(run_id="r", project="p", rate=rate))
    assert done.entries == ()
    assert done.unpriced == ("90 s of machine time (attempt 1)",)


def test_a_free_machine_still_leaves_its_usage(nouns):
    rate = MachineRate(price_usd_per_hour=Decimal(0), source="own")
    (entry,) = _billed(nouns.make_events(price=None), run=BilledRun(run_id="r", project="p", rate=rate)).entries
    assert entry.amount_usd == 0
    assert entry.quantity > 0


LIST_RATE = MachineRate(price_usd_per_hour=Decimal(7), source="list")
RUN_NUMBERS = itertools.count()
ATTEMPT = st.tuples(
    st.integers(0, 10**9),  # microseconds the attempt lasted
    st.integers(0, 10**6),  # micro-dollars an hour
    st.sampled_from(["finished", "interrupted", "failed", "stopped_at_cap", None]),
    st.lists(st.integers(0, 10**9), max_size=4),  # moments of notes in between
)


@given(attempts=st.lists(ATTEMPT, max_size=5), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_ledger_holds_the_sum_of_priced_usage_for_any_history(ledger, attempts, seed):
    events, exact, at_us = [], Fraction(0), 10**12
    for number, (lasted_us, price_microusd, ending, moments) in enumerate(attempts, start=1):
        inside = sorted(moment % (lasted_us + 1) for moment in moments)
        price = str(Decimal(price_microusd).scaleb(-6))
        values = {"price_usd_per_hour": price}
        events.append(RunEvent(at_s=at_us / 1e6, attempt=number, kind="started", step=0, values=values))
        events += [RunEvent(at_s=(at_us + us) / 1e6, attempt=number, kind="note", step=0) for us in inside]
        events.append(RunEvent(at_s=(at_us + lasted_us) / 1e6, attempt=number, kind=ending or "note", step=0))
        exact += Fraction(lasted_us, 3600 * 10**6) * Fraction(price_microusd, 10**6)
        at_us += lasted_us + 10**6
    run = BilledRun(run_id=f"run-{next(RUN_NUMBERS)}", project="p", rate=LIST_RATE)
    half_way = _billed(events[: len(events) // 2], run=run, process_ended=False)
    entries = [*_billed(events, run=run).entries, *half_way.entries]
    random.Random(seed).shuffle(entries)
    for entry in entries:
        ledger.record(entry)
    spent = ledger.spent_usd(EntryQuery(run_id=run.run_id))
    assert spent == _billed(events, run=run).total_usd
    # Each entry's hours are rounded to 10^-9: at most a thousand-millionth of an hour's price each.
    assert abs(Fraction(spent) - exact) <= Fraction(len(attempts), 10**9)
