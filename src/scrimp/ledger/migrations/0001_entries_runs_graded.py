"""First schema: entries, revisions of runs, graded forecasts, and triggers that keep all three append-only.

Amounts are decimal text and times ISO 8601 text in UTC with microseconds: both are exact and sort the same on every
database.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection, MetaData

APPEND_ONLY = ("entries", "runs", "graded")


def upgrade(connection: "Connection") -> None:
    """Create the tables and their triggers."""
    from sqlalchemy import MetaData

    schema = MetaData()
    _entries(schema)
    _runs(schema)
    _graded(schema)
    schema.create_all(connection)
    for statement in append_only(connection.dialect.name):
        connection.exec_driver_sql(statement)


def append_only(dialect: str) -> list[str]:
    """The statements that make the database itself refuse updates and deletions; none for a dialect not known here."""
    if dialect == "sqlite":
        return [statement for table in APPEND_ONLY for statement in _sqlite_triggers(table)]
    if dialect == "postgresql":
        function = (
            "CREATE OR REPLACE FUNCTION scrimp_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN RAISE EXCEPTION ''the ledger is append-only''; END'"
        )
        return [function, *(_postgresql_trigger(table) for table in APPEND_ONLY)]
    return []


def _entries(schema: "MetaData") -> None:
    from sqlalchemy import Column, Integer, Table, Text

    Table(
        "entries",
        schema,
        Column("entry_id", Text, primary_key=True),
        Column("run_id", Text, nullable=False, index=True),
        Column("project", Text, nullable=False, index=True),
        Column("attempt", Integer, nullable=False),
        Column("kind", Text, nullable=False),
        Column("amount_usd", Text, nullable=False),
        Column("quantity", Text, nullable=False),
        Column("unit", Text, nullable=False),
        Column("unit_usd", Text, nullable=False),
        Column("started_at", Text, nullable=False, index=True),
        Column("ended_at", Text, nullable=False),
        Column("source", Text, nullable=False),
        Column("note", Text, nullable=False),
    )


def _runs(schema: "MetaData") -> None:
    """One row a revision: the newest of a run is what it is now."""
    from sqlalchemy import Column, Float, Index, Integer, Table, Text

    runs = Table(
        "runs",
        schema,
        Column("revision", Integer, primary_key=True, autoincrement=True),
        Column("run_id", Text, nullable=False),
        Column("name", Text, nullable=False),
        Column("project", Text, nullable=False),
        Column("state", Text, nullable=False),
        Column("created_at", Text, nullable=False, index=True),
        Column("ended_at", Text),
        Column("folder", Text, nullable=False),
        Column("model", Text, nullable=False),
        Column("method", Text, nullable=False),
        Column("device", Text, nullable=False),
        Column("provider", Text, nullable=False),
        Column("market", Text, nullable=False),
        Column("attempts", Integer, nullable=False),
        Column("steps_done", Integer, nullable=False),
        Column("steps_planned", Integer, nullable=False),
        Column("forecast_usd", Text),
        Column("eval_loss_before", Float),
        Column("eval_loss_after", Float),
    )
    Index("runs_newest_revision", runs.c.run_id, runs.c.revision)


def _graded(schema: "MetaData") -> None:
    from sqlalchemy import Column, Float, ForeignKey, Integer, Table, Text

    Table(
        "graded",
        schema,
        Column("revision", Integer, ForeignKey("runs.revision"), primary_key=True),
        Column("quantity", Text, primary_key=True),
        Column("position", Integer, nullable=False),
        Column("forecast", Float, nullable=False),
        Column("low", Float, nullable=False),
        Column("high", Float, nullable=False),
        Column("measured", Float, nullable=False),
        Column("basis", Text, nullable=False),
    )


def _sqlite_triggers(table: str) -> list[str]:
    key = "entry_id" if table == "entries" else "revision"
    also = " AND quantity = NEW.quantity" if table == "graded" else ""
    refuse = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    return [
        f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} {refuse}",
        f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} {refuse}",
        # INSERT OR REPLACE deletes the old row without firing delete triggers, so it is caught at the insert.
        f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} "
        f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {key} = NEW.{key}{also}) {refuse}",
    ]


def _postgresql_trigger(table: str) -> str:
    return (
        f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION scrimp_append_only()"
    )
