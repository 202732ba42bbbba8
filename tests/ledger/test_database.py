"""A database that is damaged, locked or read-only: each gets its own words and the right exit code."""

import sqlite3
from contextlib import closing

import pytest

from scrimp.core.errors import MissingPackageError, ResourceError, SpecError
from scrimp.ledger.store import Ledger


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def filled(path, nouns):
    Ledger(f"sqlite:///{path}").record(nouns.make_entry())
    return path


def test_the_log_is_written_ahead_and_every_commit_reaches_the_disk(filled):
    ledger = Ledger(f"sqlite:///{filled}")
    with ledger._database.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_a_file_that_is_no_database(path):
    path.write_text("my notes\n" * 100)
    with pytest.raises(ResourceError, match="not a SQLite database") as caught:
        Ledger(f"sqlite:///{path}").entries()
    assert str(path) in caught.value.what
    assert ".recover" in caught.value.next_step
    assert caught.value.exit_code == 8
    assert path.read_text().startswith("my notes")


def test_a_damaged_database(filled):
    with closing(sqlite3.connect(filled)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    data = bytearray(filled.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    filled.write_bytes(data)
    with pytest.raises(ResourceError, match="damaged") as caught:
        Ledger(f"sqlite:///{filled}").entries()
    assert f'sqlite3 {filled} ".recover"' in caught.value.next_step


def test_a_ledger_that_another_program_holds(filled, nouns):
    with closing(sqlite3.connect(filled, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        ledger = Ledger(f"sqlite:///{filled}", busy_timeout_s=0.01)
        assert len(ledger.entries()) == 1, "readers do not wait"
        with pytest.raises(ResourceError, match=r"longer than 0\.01 s") as caught:
            ledger.record(nouns.priced("b", "1"))
    assert f"fuser -v {filled}" in caught.value.next_step
    assert ledger.record(nouns.priced("b", "1")) == 1


def test_a_new_file_that_another_program_holds(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ResourceError, match="another program"):
            Ledger(f"sqlite:///{path}", busy_timeout_s=0.05).entries()


def test_a_ledger_that_cannot_be_written_can_still_be_read(filled, nouns):
    ledger = Ledger(f"sqlite:///file:{filled}?mode=ro&uri=true")
    assert len(ledger.entries()) == 1
    with pytest.raises(ResourceError, match="cannot be written") as caught:
        ledger.record(nouns.priced("b", "1"))
    assert "SCRIMP_LEDGER" in caught.value.next_step


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ResourceError, match="cannot be made") as caught:
        Ledger(f"sqlite:///{tmp_path}/file/ledger.db").entries()
    assert "SCRIMP_HOME" in caught.value.next_step


def test_a_folder_in_place_of_the_file(tmp_path):
    (tmp_path / "ledger.db").mkdir()
    with pytest.raises(ResourceError, match="cannot be opened"):
        Ledger(f"sqlite:///{tmp_path}/ledger.db").entries()


@pytest.mark.parametrize("url", ["ledger.db", "nosuch://host/db", "sqlite+nosuch:///x"])
def test_an_address_that_is_none(url):
    with pytest.raises(SpecError, match="no database URL") as caught:
        Ledger(url).entries()
    assert "SCRIMP_LEDGER" in caught.value.next_step


def test_a_driver_that_is_not_installed():
    with pytest.raises(MissingPackageError) as caught:
        Ledger("mysql+asyncmy://host/db").entries()
    assert "pip install asyncmy" in caught.value.next_step
