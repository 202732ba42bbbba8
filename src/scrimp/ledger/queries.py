"""What to ask the ledger for. A field left at None does not restrict."""

from dataclasses import dataclass
from datetime import datetime

from scrimp.core.run import EntryKind, RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryQuery:
    """Entries of one run, project or kind; `since` <= started_at < `until`."""

    run_id: str | None = None
    project: str | None = None
    kind: EntryKind | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuery:
    """Runs in a state, of a project or name; at most `limit` of them, the newest first."""

    state: RunState | None = None
    project: str | None = None
    name: str | None = None
    limit: int | None = None


ALL_ENTRIES = EntryQuery()
ALL_RUNS = RunQuery()
