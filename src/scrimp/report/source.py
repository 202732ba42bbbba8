"""What a report is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from scrimp.core.plan import Plan, Rejected
from scrimp.core.run import EventValue, LedgerEntry, RunRecord
from scrimp.ledger.history import RunHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSource:
    """One run with all that is known of it. What is not known (yet) is left out of the page.

    `entries` are the run's ledger lines, `running` what the open attempt has used so far; `environment` adds versions
    of packages and the like to what the events say about the machine; `rejected` may hold what planning left out.
    """

    record: RunRecord
    history: RunHistory
    entries: tuple[LedgerEntry, ...]
    made_at: datetime
    plan: Plan | None = None
    running: tuple[LedgerEntry, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    environment: Mapping[str, EventValue] = field(default_factory=dict[str, EventValue])
