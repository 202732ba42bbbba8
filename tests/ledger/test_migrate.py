"""The schema: ordered steps, refused when newer, and the same as what queries expect."""

import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import inspect

from scrimp.core.errors import ResourceError
from scrimp.ledger.migrate import newest_version, steps
from scrimp.ledger.store import Ledger
from scrimp.ledger.tables import tables


def test_steps_are_numbered_without_gaps():
    assert list(steps()) == list(range(1, newest_version() + 1))


def test_the_migrated_tables_have_the_columns_that_queries_use(ledger):
    with ledger._database.reading() as connection:
        seen = inspect(connection)
        for table in (tables().entries, tables().runs, tables().graded):
            found = {column["name"] for column in seen.get_columns(table.name)}
            assert found == set(table.columns.keys())


def test_a_database_of_a_newer_scrimp_is_left_alone(url, tmp_path, nouns):
    Ledger(url).record(nouns.make_entry())
    with closing(sqlite3.connect(tmp_path / "deep" / "ledger.db")) as connection:
        connection.execute("INSERT INTO schema_version VALUES (99)")
        connection.commit()
    with pytest.raises(ResourceError, match="schema 99") as caught:
        Ledger(url).entries()
    assert "--upgrade" in caught.value.next_step


def test_a_step_that_fails_leaves_no_half_schema(url, tmp_path, monkeypatch):
    from scrimp.ledger import migrate

    step = steps()[1]
    monkeypatch.setattr(migrate, "steps", lambda: {1: step, 2: "0002_missing"})
    with pytest.raises(ModuleNotFoundError):
        Ledger(url).entries()
    with closing(sqlite3.connect(tmp_path / "deep" / "ledger.db")) as connection:
        assert connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone() == (0,)


def test_a_ledger_of_the_first_schema_is_brought_up_to_date_and_keeps_its_runs(url, tmp_path, nouns, monkeypatch):
    from dataclasses import replace

    from scrimp.ledger import migrate
    from scrimp.ledger import tables as newest

    first = steps()[1]
    with monkeypatch.context() as old:
        old.setattr(migrate, "steps", lambda: {1: first})
        old.setattr(newest, "RUN_COLUMNS", newest.RUN_COLUMNS[:-2])
        old.setattr(newest, "GRADED_COLUMNS", newest.GRADED_COLUMNS[:-1])
        tables.cache_clear()
        record = nouns.make_record()
        with Ledger(url)._database.writing() as connection:
            values = newest.run_row(record)
            values.pop("features")
            connection.execute(tables().runs.insert(), values)
            lines = [newest.graded_row(line, revision=1, position=n) for n, line in enumerate(record.graded)]
            connection.execute(tables().graded.insert(), lines)
    tables.cache_clear()

    ledger = Ledger(url)

    assert ledger.runs() == (record,)
    newer = replace(record, scrimp_version="0.1.0", features={"layers": 30, "layout": "packed"})
    newer = replace(newer, graded=(replace(record.graded[0], formula=1.9e9),))
    ledger.save_run(newer)
    assert ledger.runs() == (newer,)
    raw = sqlite3.connect(tmp_path / "deep" / "ledger.db")
    with closing(raw) as connection, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute("UPDATE graded SET formula = 1.0")
