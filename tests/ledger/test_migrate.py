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
