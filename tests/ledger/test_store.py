"""The ledger keeps every entry, adds exactly, and changes nothing."""

import random
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrimp.core.errors import ScrimpError, UnknownNameError
from scrimp.ledger.queries import EntryQuery, RunQuery
from scrimp.ledger.store import Ledger


def test_an_entry_comes_back_as_it_went_in(ledger, nouns):
    entry = nouns.make_entry(amount_usd=Decimal("0.0500000000000000001"), quantity=Decimal("0.500000000000000001"),
                             note="späte Zeile ☂")  # fmt: skip
    assert ledger.record(entry) == 1
    assert ledger.entries() == (entry,)
    assert str(ledger.entries()[0].amount_usd) == "0.0500000000000000001"


def test_the_same_entry_twice_is_one_entry(ledger, nouns):
    entry = nouns.make_entry()
    assert ledger.record(entry, entry) == 1
    assert ledger.record(entry) == 0
    same_moment = entry.started_at.astimezone(timezone(timedelta(hours=5)))
    assert ledger.record(replace(entry, started_at=same_moment, amount_usd=Decimal("0.050"))) == 0
    assert ledger.spent_usd() == Decimal("0.05")


def test_another_content_under_a_known_id_is_refused_and_nothing_of_the_call_is_kept(ledger, nouns):
    ledger.record(nouns.make_entry())
    other = nouns.make_entry(amount_usd=Decimal("0.06"), quantity=Decimal("0.6"))
    with pytest.raises(ScrimpError, match=r"amount_usd: 0\.05 -> 0\.06") as caught:
        ledger.record(nouns.priced("new", "1"), other)
    assert "adjustment" in caught.value.next_step
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"amount_usd": Decimal("0.06")},
        {"amount_usd": Decimal("NaN")},
        {"amount_usd": Decimal("Infinity")},
        {"started_at": datetime(2025, 1, 1)},
    ],
)
def test_an_entry_that_makes_no_sense_is_refused(ledger, nouns, changes):
    with pytest.raises(ValueError):
        ledger.record(nouns.make_entry(**changes))
    assert ledger.entries() == ()


def test_an_adjustment_may_be_negative(ledger, nouns):
    ledger.record(nouns.priced("a", "1.10"), nouns.priced("b", "-0.10", kind="adjustment"))
    assert ledger.spent_usd() == Decimal("1.00")


def test_queries_restrict(ledger, nouns):
    day = timedelta(days=1)
    ledger.record(
        nouns.priced("a", "1"),
        nouns.priced("b", "2", run_id="run-2", started_at=nouns.START + day),
        nouns.priced("c", "4", project="other", started_at=nouns.START + 2 * day),
        nouns.priced("d", "8", kind="electricity", started_at=nouns.START + 3 * day),
    )
    assert ledger.spent_usd() == 15
    assert ledger.spent_usd(EntryQuery(run_id="run-2")) == 2
    assert ledger.spent_usd(EntryQuery(project="other")) == 4
    assert ledger.spent_usd(EntryQuery(kind="electricity")) == 8
    assert ledger.spent_usd(EntryQuery(since=nouns.START + day)) == 14
    assert ledger.spent_usd(EntryQuery(since=nouns.START + day, until=nouns.START + 3 * day)) == 6
    assert [entry.entry_id for entry in ledger.entries()] == ["a", "b", "c", "d"]


AMOUNTS = st.decimals(min_value=-1000, max_value=10_000, allow_nan=False, places=12)


@given(amounts=st.lists(AMOUNTS, max_size=30), seed=st.integers(0, 99))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_sum_is_exact_in_any_order_and_any_batching(tmp_path_factory, nouns, amounts, seed):
    ledger = Ledger(f"sqlite:///{tmp_path_factory.mktemp('sum')}/ledger.db")
    entries = [nouns.priced(f"e{i}", amount) for i, amount in enumerate(amounts)]
    shuffled = random.Random(seed).sample(entries * 2, k=2 * len(entries))
    while shuffled:
        size = random.Random(seed).randint(1, len(shuffled))
        ledger.record(*shuffled[:size])
        shuffled = shuffled[size:]
    in_nano_nano = sum(int(amount.scaleb(12)) for amount in amounts)
    assert ledger.spent_usd() == Decimal(in_nano_nano).scaleb(-12)


@pytest.mark.parametrize("table", ["entries", "runs", "graded"])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {table} SET {column} = {column}",
        "DELETE FROM {table}",
        "INSERT OR REPLACE INTO {table} SELECT * FROM {table}",
    ],
)
def test_the_database_itself_refuses_changes(ledger, nouns, tmp_path, table, statement):
    ledger.record(nouns.make_entry())
    ledger.save_run(nouns.make_record())
    column = {"entries": "amount_usd", "runs": "state", "graded": "measured"}[table]
    connection = sqlite3.connect(tmp_path / "deep" / "ledger.db")
    try:
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement.format(table=table, column=column))
    finally:
        connection.close()
    assert ledger.spent_usd() == Decimal("0.05")
    assert ledger.run("run-1") == replace(nouns.make_record(), spent_usd=Decimal("0.05"))


def test_a_run_comes_back_with_the_sum_of_its_entries(ledger, nouns):
    ledger.save_run(nouns.make_record(spent_usd=Decimal(99)))
    assert ledger.run("run-1").spent_usd == 0
    ledger.record(nouns.make_entry(), nouns.priced("x", "3"), nouns.priced("other", "5", run_id="run-2"))
    assert ledger.run("run-1").spent_usd == Decimal("3.05")
    assert ledger.runs()[0].graded == nouns.make_record().graded


def test_the_newest_revision_of_a_run_wins(ledger, nouns):
    ledger.save_run(nouns.make_record(state="running", ended_at=None, eval_loss_after=None, graded=()))
    ledger.save_run(nouns.make_record(run_id="run-2"))
    ledger.save_run(nouns.make_record())
    assert ledger.run("run-1") == nouns.make_record()
    assert [record.run_id for record in ledger.runs()] == ["run-1", "run-2"]
    assert ledger.runs(RunQuery(state="running")) == ()
    assert len(ledger.graded()) == 4


def test_a_loss_that_is_no_number_is_unknown(ledger, nouns):
    ledger.save_run(nouns.make_record(eval_loss_after=float("nan")))
    assert ledger.run("last").eval_loss_after is None


def test_a_graded_line_must_be_finite(ledger, nouns):
    line = replace(nouns.make_record().graded[0], measured=float("inf"))
    with pytest.raises(ValueError, match="peak_bytes"):
        ledger.save_run(nouns.make_record(graded=(line,)))
    assert ledger.runs() == ()


def test_runs_come_newest_first_and_filtered(ledger, nouns):
    for number in range(5):
        created = nouns.START + timedelta(hours=number)
        project = "even" if number % 2 == 0 else "odd"
        ledger.save_run(nouns.make_record(run_id=f"r{number}", created_at=created, project=project, name=f"n{number}"))
    assert [record.run_id for record in ledger.runs(RunQuery(limit=2))] == ["r4", "r3"]
    assert [record.run_id for record in ledger.runs(RunQuery(project="odd"))] == ["r3", "r1"]
    assert [record.run_id for record in ledger.runs(RunQuery(name="n2"))] == ["r2"]


def test_a_run_is_found_by_its_beginning_or_as_the_last(ledger, nouns):
    for run_id, hours in (("abc-1", 0), ("abd-2", 2), ("abd", 1)):
        ledger.save_run(nouns.make_record(run_id=run_id, created_at=nouns.START + timedelta(hours=hours)))
    assert ledger.run("abc").run_id == "abc-1"
    assert ledger.run("abd").run_id == "abd"
    assert ledger.run("last").run_id == "abd-2"
    with pytest.raises(UnknownNameError, match="3 runs: abc-1, abd, abd-2"):
        ledger.run("ab")
    with pytest.raises(UnknownNameError, match="Did you mean abc-1") as caught:
        ledger.run("acb-1")
    assert caught.value.next_step == "scrimp runs"


def test_an_empty_ledger_says_how_to_begin(ledger):
    with pytest.raises(UnknownNameError, match="no runs yet"):
        ledger.run("last")
    assert ledger.runs() == ()
    assert ledger.spent_usd() == 0


def test_more_runs_than_one_statement_may_name(ledger, nouns, monkeypatch):
    monkeypatch.setattr("scrimp.ledger.store._IDS_AT_ONCE", 3)
    entries = [nouns.priced(f"e{i}", "0.01", run_id=f"r{i % 10}") for i in range(20)]
    ledger.record(*entries)
    for number in range(10):
        ledger.save_run(nouns.make_record(run_id=f"r{number}"))
    assert [record.spent_usd for record in ledger.runs()] == [Decimal("0.02")] * 10
    assert all(len(record.graded) == 2 for record in ledger.runs())
    assert ledger.record(*entries) == 0


def test_a_moment_is_stored_in_utc(ledger, nouns):
    there = datetime(2025, 6, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    ledger.record(nouns.priced("a", "1", started_at=there))
    assert ledger.entries()[0].started_at == datetime(2025, 5, 31, 23, 30, tzinfo=UTC)
