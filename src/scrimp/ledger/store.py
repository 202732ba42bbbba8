"""The ledger: entries of money and records of runs, appended and never changed."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from scrimp.core.errors import ScrimpError, unknown_name
from scrimp.core.run import Graded, LedgerEntry, RunRecord
from scrimp.ledger.database import Database, open_database
from scrimp.ledger.queries import ALL_ENTRIES, ALL_RUNS, EntryQuery, RunQuery
from scrimp.ledger.sums import product_usd, total_usd
from scrimp.ledger.tables import (
    entry_from,
    entry_row,
    graded_from,
    graded_row,
    run_from,
    run_row,
    tables,
    time_text,
)

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

LAST = "last"
# Ids named in one SQL statement; SQLite allows 32,766 values, older builds 999.
_IDS_AT_ONCE = 500


class Ledger:
    """One ledger, at any SQLAlchemy URL. Nothing is opened before the first question.

    Safe for many processes at once; every call is one transaction.
    """

    def __init__(self, url: str, *, busy_timeout_s: float = 30.0) -> None:
        """`busy_timeout_s`: how long a writer waits for another one."""
        self.url = url
        self._busy_timeout_s = busy_timeout_s

    @cached_property
    def _database(self) -> Database:
        return open_database(self.url, busy_timeout_s=self._busy_timeout_s)

    def record(self, *entries: LedgerEntry) -> int:
        """Append entries, all or none. An entry that is there already, with the same content, is skipped.

        Returns:
            How many were new.

        Raises:
            ValueError: the amount is not quantity x unit_usd, a time has no zone, or a number is not finite.
            ScrimpError: the id is taken by an entry of other content.
            ResourceError: the database cannot be written.
        """
        from sqlalchemy.exc import IntegrityError

        for entry in entries:
            _check(entry)
        try:
            return self._append(entries)
        except IntegrityError:
            # Another writer appended one of these ids between our look and our insert (not with SQLite, where
            # writers queue). It is there now, so the second try only compares.
            return self._append(entries)

    def _append(self, entries: Sequence[LedgerEntry]) -> int:
        from sqlalchemy import insert

        with self._database.writing() as connection:
            known = _entries_by_id(connection, {entry.entry_id for entry in entries})
            new: dict[str, LedgerEntry] = {}
            for entry in entries:
                there = known.get(entry.entry_id) or new.get(entry.entry_id)
                if there is None:
                    new[entry.entry_id] = entry
                elif there != entry:
                    raise _conflict(there, entry)
            if new:
                connection.execute(insert(tables().entries), [entry_row(entry) for entry in new.values()])
            return len(new)

    def entries(self, query: EntryQuery = ALL_ENTRIES) -> tuple[LedgerEntry, ...]:
        """Entries in order of time."""
        from sqlalchemy import select

        table = tables().entries
        chosen = select(table).where(*_entry_conditions(query)).order_by(table.c.started_at, table.c.entry_id)
        with self._database.reading() as connection:
            return tuple(entry_from(row) for row in connection.execute(chosen).mappings())

    def spent_usd(self, query: EntryQuery = ALL_ENTRIES) -> Decimal:
        """What was spent: the exact sum of the entries, and nothing else."""
        from sqlalchemy import select

        chosen = select(tables().entries.c.amount_usd).where(*_entry_conditions(query))
        with self._database.reading() as connection:
            return total_usd(Decimal(amount) for amount in connection.execute(chosen).scalars())

    def save_run(self, record: RunRecord) -> None:
        """Append the newest revision of a run. Older ones stay; `record.spent_usd` is not stored, entries are.

        Raises:
            ValueError: a time has no zone, or a number is not finite.
            ResourceError: the database cannot be written.
        """
        from sqlalchemy import insert

        for line in record.graded:
            numbers = (line.forecast, line.low, line.high, line.measured, line.formula or 0.0)
            if not all(map(math.isfinite, numbers)):
                raise ValueError(f"{line.quantity}: a graded forecast must be of finite numbers, not {line}")
        with self._database.writing() as connection:
            added = insert(tables().runs).returning(tables().runs.c.revision)
            revision = connection.execute(added, run_row(record)).scalar_one()
            rows = [graded_row(line, revision=revision, position=i) for i, line in enumerate(record.graded)]
            if rows:
                connection.execute(insert(tables().graded), rows)

    def runs(self, query: RunQuery = ALL_RUNS) -> tuple[RunRecord, ...]:
        """The newest revision of each run that the query asks for, the newest run first; spent_usd from the entries."""
        from sqlalchemy import func, select

        runs = tables().runs
        newest = select(func.max(runs.c.revision)).group_by(runs.c.run_id).scalar_subquery()
        chosen = select(runs).where(runs.c.revision.in_(newest)).order_by(runs.c.created_at.desc(), runs.c.run_id)
        for column, value in ((runs.c.state, query.state), (runs.c.project, query.project), (runs.c.name, query.name)):
            if value is not None:
                chosen = chosen.where(column == value)
        if query.limit is not None:
            chosen = chosen.limit(query.limit)
        with self._database.reading() as connection:
            return _records(connection, connection.execute(chosen).mappings().all())

    def run(self, name: str) -> RunRecord:
        """One run by its id, by the beginning of its id, or `last`.

        Raises:
            UnknownNameError: no such run, or several; says which.
        """
        from sqlalchemy import select

        runs = tables().runs
        with self._database.reading() as connection:
            if name == LAST:
                newest = select(runs.c.run_id).order_by(runs.c.created_at.desc(), runs.c.revision.desc()).limit(1)
                known = list(connection.execute(newest).scalars())
                found = known
            else:
                known = list(connection.execute(select(runs.c.run_id).distinct()).scalars())
                found = [item for item in known if item == name] or [item for item in known if item.startswith(name)]
            if len(found) != 1:
                raise _unknown_run(name, found=sorted(found), known=known)
            one = select(runs).where(runs.c.run_id == found[0]).order_by(runs.c.revision.desc()).limit(1)
            return _records(connection, connection.execute(one).mappings().all())[0]

    def graded(self) -> tuple[tuple[RunRecord, Graded], ...]:
        """Every forecast that was graded, beside its run (newest revisions only): what calibration learns from."""
        return tuple((record, line) for record in self.runs() for line in record.graded)


def _check(entry: LedgerEntry) -> None:
    entry_row(entry)
    if entry.amount_usd != product_usd(entry.quantity, entry.unit_usd):
        raise ValueError(
            f"{entry.entry_id}: {entry.amount_usd} USD is not {entry.quantity} {entry.unit} x {entry.unit_usd} USD"
        )


def _conflict(there: LedgerEntry, entry: LedgerEntry) -> ScrimpError:
    differs = [name for name, old, new in zip(_fields(), astuple(there), astuple(entry), strict=True) if old != new]
    changes = ", ".join(f"{name}: {getattr(there, name)} -> {getattr(entry, name)}" for name in differs)
    return ScrimpError(
        what=f"ledger entry {entry.entry_id} is recorded already, with other content ({changes})",
        expected="an entry is written once and stays",
        next_step='record the difference as an entry of its own, of kind "adjustment"',
    )


def _fields() -> tuple[str, ...]:
    return tuple(LedgerEntry.__dataclass_fields__)


def _entries_by_id(connection: "Connection", ids: Iterable[str]) -> dict[str, LedgerEntry]:
    from sqlalchemy import select

    table = tables().entries
    found: dict[str, LedgerEntry] = {}
    for some in _slices(sorted(ids)):
        rows = connection.execute(select(table).where(table.c.entry_id.in_(some))).mappings()
        found |= {row["entry_id"]: entry_from(row) for row in rows}
    return found


def _entry_conditions(query: EntryQuery) -> "list[ColumnElement[bool]]":
    columns = tables().entries.c
    conditions: list[ColumnElement[bool]] = [
        column == value
        for column, value in (
            (columns.run_id, query.run_id),
            (columns.project, query.project),
            (columns.kind, query.kind),
        )
        if value is not None
    ]
    if query.since is not None:
        conditions.append(columns.started_at >= time_text(query.since))
    if query.until is not None:
        conditions.append(columns.started_at < time_text(query.until))
    return conditions


def _records(connection: "Connection", rows: Sequence[Any]) -> tuple[RunRecord, ...]:
    """Rows of `runs` with what belongs to them from the other two tables."""
    from sqlalchemy import select

    entries, graded = tables().entries, tables().graded
    amounts: dict[str, list[Decimal]] = {row["run_id"]: [] for row in rows}
    lines: dict[int, list[Graded]] = {row["revision"]: [] for row in rows}
    for some in _slices(list(amounts)):
        chosen = select(entries.c.run_id, entries.c.amount_usd).where(entries.c.run_id.in_(some))
        for run_id, amount in connection.execute(chosen):
            amounts[run_id].append(Decimal(amount))
    for some in _slices(list(lines)):
        ordered = select(graded).where(graded.c.revision.in_(some)).order_by(graded.c.revision, graded.c.position)
        for line in connection.execute(ordered).mappings():
            lines[line["revision"]].append(graded_from(line))
    return tuple(
        run_from(row, spent_usd=total_usd(amounts[row["run_id"]]), graded=tuple(lines[row["revision"]])) for row in rows
    )


def _slices(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (items[start : start + _IDS_AT_ONCE] for start in range(0, len(items), _IDS_AT_ONCE))


def _unknown_run(name: str, *, found: list[str], known: list[str]) -> ScrimpError:
    from scrimp.core.errors import UnknownNameError

    if found:
        return UnknownNameError(
            what=f'"{name}" is the beginning of {len(found)} runs: {", ".join(found[:5])}',
            expected="enough letters to tell one run from the others",
            next_step=f"scrimp show {found[0]}",
        )
    if not known:
        return UnknownNameError(
            what=f'there is no run "{name}": the ledger holds no runs yet',
            expected="a run that was started on this ledger",
            next_step="scrimp run examples/quickstart.yaml",
        )
    return unknown_name("run", name, known, list_command="scrimp runs")
