"""Brings a ledger database to the newest schema, one ordered step at a time."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from scrimp.core.errors import ResourceError

if TYPE_CHECKING:
    from sqlalchemy import Connection

# Any fixed number does: it only has to be the same for everyone who migrates one PostgreSQL database.
_POSTGRESQL_LOCK = 0x5C21_0001


def steps() -> dict[int, str]:
    """Version to module name of every step, in order, by listing the `migrations` folder."""
    folder = Path(__file__).parent / "migrations"
    return {int(path.stem[:4]): path.stem for path in sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.py"))}


def newest_version() -> int:
    """The schema that this version of scrimp reads and writes."""
    return max(steps())


def version_of(connection: "Connection") -> int:
    """The schema version of a database; 0 for an empty one."""
    from sqlalchemy import inspect, text

    if not inspect(connection).has_table("schema_version"):
        return 0
    return connection.execute(text("SELECT MAX(version) FROM schema_version")).scalar() or 0


def refuse_newer(version: int, *, where: str) -> None:
    """Stop before a database of a later scrimp is misread.

    Raises:
        ResourceError: the schema is newer than this program.
    """
    if version > newest_version():
        raise ResourceError(
            what=f"the ledger {where} was written by a newer scrimp (schema {version})",
            expected=f"schema {newest_version()} or older",
            next_step="pip install --upgrade scrimp",
        )


def migrate(connection: "Connection", *, where: str) -> None:
    """Apply the steps that are missing, inside the caller's transaction.

    Two programs may come here at once: the second waits for the first and finds nothing left to do.

    Raises:
        ResourceError: see `refuse_newer`.
    """
    from sqlalchemy import text

    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_POSTGRESQL_LOCK})"))
    version = version_of(connection)
    refuse_newer(version, where=where)
    if not version:
        connection.execute(text("CREATE TABLE schema_version (version INTEGER NOT NULL PRIMARY KEY)"))
    for number, name in steps().items():
        if number > version:
            importlib.import_module(f"scrimp.ledger.migrations.{name}").upgrade(connection)
            connection.execute(text("INSERT INTO schema_version (version) VALUES (:number)"), {"number": number})
