"""Ledger: the entries that were asked for, and their sums."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Literal

from scrimp.core.errors import SpecError
from scrimp.core.run import EntryKind, LedgerEntry
from scrimp.core.units import parse_duration_s
from scrimp.ledger.queries import EntryQuery
from scrimp.ledger.store import Ledger
from scrimp.ledger.sums import Sum, sums_by, total_usd
from scrimp.workflows.records import find_record
from scrimp.workflows.runs import settle_lost
from scrimp.workflows.world import World

By = Literal["day", "month", "project", "provider", "kind", "run", "model"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRequest:
    """Which entries, and added up by what. `since` is a date, a moment, or how long ago (`7d`); texts as typed."""

    by: By | None = None
    since: str | None = None
    until: str | None = None
    run: str | None = None
    project: str | None = None
    kind: EntryKind | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerView:
    """Entries in order of time, their exact total, and their sums by one thing where that was asked for.

    `ledger_is_empty`: there is no entry at all.
    """

    entries: tuple[LedgerEntry, ...]
    sums: tuple[Sum, ...]
    total_usd: Decimal
    ledger_is_empty: bool
    ledger_url: str


def view_ledger(request: LedgerRequest, *, world: World) -> LedgerView:
    """Entries and sums. Days are days of UTC.

    Raises:
        SpecError: `since` or `until` is no time.
        UnknownNameError: no such run.
        ResourceError: the ledger cannot be read.
    """
    ledger = Ledger(world.ledger_url)
    settle_lost(ledger=ledger, world=world)
    run_id = find_record(request.run, ledger=ledger, world=world).run_id if request.run else None
    query = EntryQuery(
        run_id=run_id,
        project=request.project,
        kind=request.kind,
        since=parse_moment(request.since, option="--since", now=world.now()),
        until=parse_moment(request.until, option="--until", now=world.now()),
    )
    entries = ledger.entries(query)
    sums = sums_by(entries, label_of(request.by, ledger)) if request.by else ()
    return LedgerView(
        entries=entries,
        sums=sums,
        total_usd=total_usd(entry.amount_usd for entry in entries),
        ledger_is_empty=not entries and not ledger.entries(),
        ledger_url=world.shown_ledger,
    )


def label_of(by: By, ledger: Ledger) -> Callable[[LedgerEntry], str]:
    """How an entry is called when entries are added up by that."""
    labels: dict[By, Callable[[LedgerEntry], str]] = {
        "day": lambda entry: f"{entry.started_at.astimezone(UTC):%Y-%m-%d}",
        "month": lambda entry: f"{entry.started_at.astimezone(UTC):%Y-%m}",
        "project": lambda entry: entry.project,
        "kind": lambda entry: entry.kind,
        "run": lambda entry: entry.run_id,
    }
    if by in labels:
        return labels[by]
    # Provider and model stand in the run's record; an entry whose run is not recorded here has neither.
    records = {record.run_id: record for record in ledger.runs()}
    known = {run_id: record.provider if by == "provider" else record.model for run_id, record in records.items()}
    return lambda entry: known.get(entry.run_id, "unknown")


def parse_moment(text: str | None, *, option: str, now: datetime) -> datetime | None:
    """`2025-06-01`, `2025-06-01T12:00`, or how long ago: `7d`, `12h`. Without a zone: UTC.

    Raises:
        SpecError: none of these.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        pass
    else:
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        return now - timedelta(seconds=parse_duration_s(text))
    except (ValueError, OverflowError) as error:
        raise SpecError(
            what=f'{option} is "{text}", which is no date and no length of time',
            expected="a date like 2025-06-01, or how long ago, like 7d or 12h",
            next_step=f"scrimp ledger {option} 7d",
        ) from error
