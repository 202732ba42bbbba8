"""The newest schema's tables, and rows to nouns and back. Exact: amounts and times are text."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from scrimp.core.run import Graded, LedgerEntry, RunRecord

if TYPE_CHECKING:
    from sqlalchemy import Table

ENTRY_COLUMNS = (
    "entry_id", "run_id", "project", "attempt", "kind", "amount_usd", "quantity", "unit", "unit_usd", "started_at",
    "ended_at", "source", "note",
)  # fmt: skip
# spent_usd is not among them: it is always the sum of the entries.
RUN_COLUMNS = (
    "run_id", "name", "project", "state", "created_at", "ended_at", "folder", "model", "method", "device", "provider",
    "market", "attempts", "steps_done", "steps_planned", "forecast_usd", "eval_loss_before", "eval_loss_after",
    "scrimp_version", "features",
)  # fmt: skip
GRADED_COLUMNS = ("quantity", "forecast", "low", "high", "measured", "basis", "formula")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The three tables of the ledger."""

    entries: "Table"
    runs: "Table"
    graded: "Table"


@lru_cache(maxsize=1)
def tables() -> Tables:
    """The tables as queries see them; the migrations own their definition."""
    from sqlalchemy import Column, Float, Integer, MetaData, Table, Text

    integers = {"attempt", "attempts", "steps_done", "steps_planned", "revision", "position"}
    floats = {"eval_loss_before", "eval_loss_after", "forecast", "low", "high", "measured", "formula"}

    def column(name: str, *, key: bool = False) -> "Column[Any]":
        kind = Integer if name in integers else Float if name in floats else Text
        return Column(name, kind, primary_key=key)

    schema = MetaData()
    return Tables(
        entries=Table("entries", schema, *(column(name, key=name == "entry_id") for name in ENTRY_COLUMNS)),
        runs=Table("runs", schema, column("revision", key=True), *(column(name) for name in RUN_COLUMNS)),
        graded=Table(
            "graded",
            schema,
            column("revision", key=True),
            column("position"),
            *(column(name, key=name == "quantity") for name in GRADED_COLUMNS),
        ),
    )


def time_text(at: datetime) -> str:
    """UTC with microseconds, always of one width: sorts as text.

    Raises:
        ValueError: the time has no zone, so it names no moment.
    """
    if at.tzinfo is None:
        raise ValueError(f"{at} has no time zone")
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def amount_text(amount: Decimal) -> str:
    """All digits, no exponent.

    Raises:
        ValueError: not a finite number.
    """
    if not amount.is_finite():
        raise ValueError(f"{amount} is no amount")
    return format(amount, "f")


def entry_row(entry: LedgerEntry) -> dict[str, Any]:
    """An entry as column values."""
    return _row(entry, ENTRY_COLUMNS)


def entry_from(row: Mapping[Any, Any]) -> LedgerEntry:
    """An entry out of column values."""
    values = {name: row[name] for name in ENTRY_COLUMNS}
    for name in ("amount_usd", "quantity", "unit_usd"):
        values[name] = Decimal(values[name])
    for name in ("started_at", "ended_at"):
        values[name] = datetime.fromisoformat(values[name])
    return LedgerEntry(**values)


def run_row(record: RunRecord) -> dict[str, Any]:
    """A run as column values, without its spending and its graded lines."""
    features = json.dumps(dict(record.features), sort_keys=True, allow_nan=False)
    return {**_row(record, RUN_COLUMNS), "features": features}


def run_from(row: Mapping[Any, Any], *, spent_usd: Decimal, graded: tuple[Graded, ...]) -> RunRecord:
    """A run out of column values, its graded lines and the sum of its entries."""
    values = {name: row[name] for name in RUN_COLUMNS}
    values["created_at"] = datetime.fromisoformat(values["created_at"])
    values["ended_at"] = datetime.fromisoformat(values["ended_at"]) if values["ended_at"] else None
    values["forecast_usd"] = Decimal(values["forecast_usd"]) if values["forecast_usd"] else None
    # Rows of the first schema have neither.
    values["scrimp_version"] = values["scrimp_version"] or ""
    values["features"] = json.loads(values["features"] or "{}")
    return RunRecord(**values, spent_usd=spent_usd, graded=graded)


def graded_row(line: Graded, *, revision: int, position: int) -> dict[str, Any]:
    """A graded forecast as column values; `position` keeps the order it was given in."""
    return {"revision": revision, "position": position, **_row(line, GRADED_COLUMNS)}


def graded_from(row: Mapping[Any, Any]) -> Graded:
    """A graded forecast out of column values."""
    return Graded(**{name: row[name] for name in GRADED_COLUMNS})


def _row(noun: object, columns: tuple[str, ...]) -> dict[str, Any]:
    return {name: _plain(getattr(noun, name)) for name in columns}


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return amount_text(value)
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, float) and math.isnan(value):
        # A diverged loss is not known any more, and databases disagree about NaN.
        return None
    return value
