"""Connections to the ledger's database, and database errors in words that help.

SQLite is the default: write-ahead log, synchronous=FULL (a committed line of money survives a power cut), writers
queue for `busy_timeout_s`. Write-ahead logging needs a local disk; a team shares a ledger through PostgreSQL.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrimp.core.errors import MissingPackageError, ResourceError, ScrimpError, SpecError
from scrimp.ledger.migrate import migrate, newest_version, refuse_newer, version_of

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_RETRY_S = 0.01
# (part of the driver's message, what happened, what to do); the first match speaks.
_SQLITE_CAUSES = (
    (
        "locked",
        "another program has been writing to the ledger {where} for longer than {timeout:g} s",
        "wait for it to end, or see who holds the file: fuser -v {path}",
    ),
    (
        "not a database",
        "the ledger {where} is not a SQLite database, or it is damaged",
        "move it away and run again (runs stay in their folders), or rescue it: "
        'sqlite3 {path} ".recover" | sqlite3 rescued.db',
    ),
    (
        "malformed",
        "the ledger {where} is damaged",
        'rescue what is readable: sqlite3 {path} ".recover" | sqlite3 rescued.db, then move it to {path}',
    ),
    (
        "readonly",
        "the ledger {where} cannot be written",
        "make the file and its folder writable (chmod u+w {path}), or set SCRIMP_LEDGER=sqlite:////other/ledger.db",
    ),
    (
        "unable to open",
        "the ledger {where} cannot be opened",
        "check that {path} is a file you may read and write, or set SCRIMP_LEDGER=sqlite:////other/ledger.db",
    ),
    (
        "disk is full",
        "the disk is full: the ledger {where} cannot grow",
        "free some space beside {path}; nothing that was written before is lost",
    ),
    ("disk i/o error", "the disk under the ledger {where} fails", "check the disk of {path}, copy the file elsewhere"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """One database with the newest schema. `where` names it for people, without a password."""

    engine: "Engine"
    where: str
    path: str
    busy_timeout_s: float

    @contextmanager
    def reading(self) -> "Iterator[Connection]":
        """A connection for queries."""
        with self._errors(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> "Iterator[Connection]":
        """One transaction: all of it is on disk afterwards, or nothing."""
        writer = self.engine.execution_options(scrimp_writes=True)
        with self._errors(), writer.begin() as connection:
            yield connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        from sqlalchemy.exc import DBAPIError, IntegrityError

        try:
            yield
        except IntegrityError:
            raise
        except DBAPIError as error:
            raise self._explain(str(error.orig)) from error

    def _explain(self, message: str) -> ScrimpError:
        expected = "a database that scrimp can read and write"
        for part, what, next_step in _SQLITE_CAUSES:
            if part in message.lower():
                words = {"where": self.where, "path": self.path, "timeout": self.busy_timeout_s}
                return ResourceError(
                    what=f"{what.format(**words)} ({message})", expected=expected, next_step=next_step.format(**words)
                )
        return ResourceError(
            what=f"the ledger {self.where} answers: {message.strip()}",
            expected=expected,
            next_step="check that the database is up and that SCRIMP_LEDGER names it",
        )


def open_database(url: str, *, busy_timeout_s: float) -> Database:
    """Connect, and bring the schema up to date.

    Raises:
        SpecError: the URL is none that SQLAlchemy knows.
        MissingPackageError: the database driver is not installed.
        ResourceError: the database cannot be opened, read or written; says where it is.
    """
    engine, path = _engine(url, busy_timeout_s=busy_timeout_s)
    where = path or engine.url.render_as_string(hide_password=True)
    database = Database(engine=engine, where=where, path=path or where, busy_timeout_s=busy_timeout_s)
    with database.reading() as connection:
        version = version_of(connection)
    refuse_newer(version, where=where)
    if version < newest_version():
        with database.writing() as connection:
            migrate(connection, where=where)
    return database


def _engine(url: str, *, busy_timeout_s: float) -> "tuple[Engine, str]":
    from sqlalchemy import create_engine
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError
    from sqlalchemy.pool import NullPool

    try:
        # No pool: the commands are short, and a connection that nobody holds cannot block a writer.
        engine = create_engine(url, poolclass=NullPool)
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            what=f'the package "{error.name}" is needed for this ledger, and is not installed',
            expected="the database driver that SCRIMP_LEDGER names",
            next_step=f"pip install {error.name}",
        ) from error
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        raise SpecError(
            what=f"the ledger's address is no database URL: {error}",
            expected="such as sqlite:////home/me/ledger.db or postgresql+psycopg://user@host/name",
            next_step="set SCRIMP_LEDGER to such an address, or unset it for the default file",
        ) from error
    if engine.dialect.name != "sqlite":
        return engine, ""
    path = engine.url.database or ":memory:"
    if path == ":memory:":
        raise SpecError(
            what=f"the ledger {url} would be forgotten at the end of every command",
            expected="a file or a server, such as sqlite:////home/me/ledger.db",
            next_step="set SCRIMP_LEDGER to such an address, or unset it for the default file",
        )
    _make_folder(path)
    _tune_sqlite(engine, busy_timeout_s=busy_timeout_s)
    return engine, path


def _make_folder(path: str) -> None:
    if path.startswith("file:"):
        return
    folder = Path(path).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResourceError(
            what=f"the folder of the ledger {path} cannot be made: {error.strerror}",
            expected="a folder that scrimp can write to",
            next_step="set SCRIMP_LEDGER=sqlite:////other/ledger.db, or SCRIMP_HOME to another folder",
        ) from error


def _tune_sqlite(engine: "Engine", *, busy_timeout_s: float) -> None:
    from sqlalchemy import event

    def on_connect(connection: Any, _record: object) -> None:
        # The driver's own transactions begin deferred; ours take the write lock at once (see on_begin).
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {int(busy_timeout_s * 1000)}")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        _write_ahead(connection, busy_timeout_s=busy_timeout_s)

    def on_begin(connection: "Connection") -> None:
        writes = connection.get_execution_options().get("scrimp_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)


def _write_ahead(connection: Any, *, busy_timeout_s: float) -> None:
    """Switch to the write-ahead log. SQLite does not queue for this one lock, so we do."""
    import sqlite3

    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        return
    for last_try in (*[False] * int(busy_timeout_s / _RETRY_S), True):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if last_try or "locked" not in str(error):
                raise
            time.sleep(_RETRY_S)
