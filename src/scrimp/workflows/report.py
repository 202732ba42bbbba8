"""Report: write the page of one run, at its end or again later."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from scrimp.core.errors import ResourceError, ScrimpError
from scrimp.core.plan import Plan
from scrimp.core.run import LedgerEntry, RunRecord
from scrimp.ledger.history import history_of
from scrimp.ledger.queries import EntryQuery
from scrimp.ledger.store import Ledger
from scrimp.report.page import REPORT_FILE, write_report
from scrimp.report.source import ReportSource
from scrimp.spec.events import EVENTS_FILE, read_events
from scrimp.workflows.records import find_record
from scrimp.workflows.world import World

PLAN_FILE = "plan.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReport:
    """Where the page of a run is."""

    run_id: str
    path: Path
    size_bytes: int


def report(name: str, *, output: Path | None = None, world: World) -> WrittenReport:
    """Write the page of a run anew: into its folder, or to `output`.

    Raises:
        UnknownNameError: no such run.
        ResourceError: the page cannot be written there.
    """
    ledger = Ledger(world.ledger_url)
    record = find_record(name, ledger=ledger, world=world)
    folder = Path(record.folder)
    if output is None and not folder.is_dir():
        raise ResourceError(
            what=f"the folder of run {record.run_id} is not here: {folder}",
            expected="the folder, or another place for the page",
            next_step=f"scrimp report {record.run_id} -o report.html",
        )
    plan = read_plan_of(folder, world=world)
    entries = ledger.entries(EntryQuery(run_id=record.run_id))
    path = world.cwd / output if output is not None else folder / REPORT_FILE
    source = replace(report_source(folder, plan, record, entries), made_at=world.now())
    written = _write(source, path)
    return WrittenReport(run_id=record.run_id, path=written, size_bytes=written.stat().st_size)


def write_run_report(folder: Path, plan: Plan | None, record: RunRecord, entries: Sequence[LedgerEntry]) -> Path:
    """report.html of a run folder, from what lies in it and the ledger's lines.

    Raises:
        ResourceError: the folder cannot be written.
    """
    return _write(report_source(folder, plan, record, entries), folder / REPORT_FILE)


def report_source(folder: Path, plan: Plan | None, record: RunRecord, entries: Sequence[LedgerEntry]) -> ReportSource:
    """All that a page is made of."""
    made_at: datetime = record.ended_at or record.created_at
    history = history_of(read_events(folder / EVENTS_FILE))
    return ReportSource(record=record, history=history, entries=tuple(entries), made_at=made_at, plan=plan)


def read_plan_of(folder: Path, *, world: World) -> Plan | None:
    """The plan of a run folder; a missing or damaged one is noted and done without."""
    from scrimp.spec.read import load_yaml

    path = folder / PLAN_FILE
    if not path.is_file():
        return None
    try:
        return load_yaml(Plan, path)
    except ScrimpError as error:
        world.note(f"{path} cannot be read, so forecasts are left out: {error.what.splitlines()[0]}")
        return None


def _write(source: ReportSource, path: Path) -> Path:
    try:
        return write_report(source, path=path)
    except OSError as error:
        raise ResourceError(
            what=f"the report cannot be written to {path}: {error.strerror or error}",
            expected="a place that can be written to, with room for a few hundred kilobytes",
            next_step=f"scrimp report {source.record.run_id} -o /other/place/report.html",
        ) from error
