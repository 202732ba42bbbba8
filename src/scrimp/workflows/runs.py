"""Runs and show: what the ledger knows of the runs, and what their folders add while they run."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Literal

from scrimp.core.errors import ScrimpError
from scrimp.core.estimate import Estimate
from scrimp.core.run import LedgerEntry, RunRecord, RunSummary
from scrimp.launch.lock import Holder, holder
from scrimp.ledger.carbon import RunCarbon, run_carbon
from scrimp.ledger.history import RunHistory, history_of
from scrimp.ledger.queries import ALL_RUNS, EntryQuery, RunQuery
from scrimp.ledger.store import Ledger
from scrimp.spec.events import EVENTS_FILE, read_events
from scrimp.workflows.records import find_record
from scrimp.workflows.world import World

RESUMABLE = ("interrupted", "stopped_at_cap", "failed")
Presence = Literal["here", "gone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """One run of a list. `spent_usd` is the sum of its entries, plus what its meter shows while it runs."""

    record: RunRecord
    spent_usd: Decimal
    age_s: float
    folder: Presence


@dataclass(frozen=True, slots=True, kw_only=True)
class RunList:
    """The runs that were asked for, the newest first. `ledger_is_empty`: there is no run at all."""

    lines: tuple[RunLine, ...]
    ledger_is_empty: bool
    ledger_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """Something in a run folder."""

    name: str
    path: str
    size_bytes: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRun:
    """One run in full. `forecasts` is empty when there is no plan; `trained_by`: who trains it now.

    `carbon` is None where no electricity was billed.
    """

    line: RunLine
    history: RunHistory
    entries: tuple[LedgerEntry, ...]
    forecasts: Mapping[str, Estimate[float]]
    files: tuple[RunFile, ...]
    summary: RunSummary
    trained_by: Holder | None
    carbon: RunCarbon | None = None


def list_runs(query: RunQuery = ALL_RUNS, *, world: World) -> RunList:
    """The runs that the query asks for.

    Raises:
        ResourceError: the ledger cannot be read.
    """
    ledger = Ledger(world.ledger_url)
    settle_lost(ledger=ledger, world=world)
    lines = tuple(_line(record, world=world) for record in ledger.runs(query))
    is_empty = not lines and not ledger.runs(RunQuery(limit=1))
    return RunList(lines=lines, ledger_is_empty=is_empty, ledger_url=world.shown_ledger)


def show_run(name: str, *, world: World) -> ShownRun:
    """All about one run, named by its id, a beginning of it, `last`, or its folder.

    Raises:
        UnknownNameError: no such run.
        ResourceError: the ledger cannot be read.
    """
    from scrimp.ledger.grade import forecasts
    from scrimp.workflows.report import read_plan_of

    ledger = Ledger(world.ledger_url)
    settle_lost(ledger=ledger, world=world)
    line = _line(find_record(name, ledger=ledger, world=world), world=world)
    record, folder = line.record, Path(line.record.folder)
    history = history_of(read_events(folder / EVENTS_FILE))
    plan = read_plan_of(folder, world=world)
    files = run_files(folder)
    paths = {item.name: item.path for item in files}
    entries = ledger.entries(EntryQuery(run_id=record.run_id))
    can_resume = record.state in RESUMABLE and line.folder == "here"
    return ShownRun(
        line=line,
        history=history,
        entries=entries,
        forecasts={} if plan is None else forecasts(plan, peak_kind=history.peak_kind or "rss"),
        files=files,
        summary=RunSummary(
            record=record,
            samples=tuple((item.prompt, item.before or "", item.after or "") for item in history.samples),
            adapter_folder=paths.get("adapter"),
            report_path=paths.get("report.html"),
            ledger_url=world.shown_ledger,
            next_step=f"scrimp resume {record.run_id}" if can_resume else f"scrimp report {record.run_id}",
        ),
        trained_by=holder(folder),
        carbon=run_carbon(plan, entries),
    )


def settle_lost(*, ledger: Ledger, world: World) -> None:
    """Bill and record runs that count as running although nobody trains them: everything was killed at once.

    Their events outlive the processes. A run whose folder is not on this machine is left to the machine that has it.
    """
    # Only where there is something to repair: this pulls in all of running and planning.
    for record in ledger.runs(RunQuery(state="running")):
        folder = Path(record.folder)
        if not (folder / EVENTS_FILE).is_file() or holder(folder) is not None:
            continue
        from scrimp.workflows.execute import settle
        from scrimp.workflows.resume import find_run

        try:
            settled = settle(find_run(record.folder, ledger=ledger, world=world), ledger=ledger, world=world)
        except ScrimpError as error:
            world.note(f"run {record.run_id} ended without a word and cannot be billed: {error.what.splitlines()[0]}")
        else:
            world.note(f"run {record.run_id} ended without a word; recorded as {settled.record.state}")


def run_files(folder: Path) -> tuple[RunFile, ...]:
    """What lies in a run folder, of the things that a user may want."""
    found: list[RunFile] = []
    checkpoints = sorted((folder / "checkpoints").glob("step-*"))
    for name in ("adapter", "report.html", "plan.yaml", "events.jsonl", "log.txt"):
        path = folder / name
        if path.exists():
            found.append(RunFile(name=name, path=str(path), size_bytes=_size_bytes(path)))
    if checkpoints:
        newest = checkpoints[-1]
        size_bytes = sum(_size_bytes(path) for path in checkpoints)
        note = f"{len(checkpoints)}, the newest {newest.name}"
        path = str(folder / "checkpoints")
        found.append(RunFile(name="checkpoints", path=path, size_bytes=size_bytes, note=note))
    return tuple(found)


def _line(record: RunRecord, *, world: World) -> RunLine:
    folder = Path(record.folder)
    age_s = max(0.0, (world.now() - record.created_at).total_seconds())
    if record.state == "running" and holder(folder) is not None:
        history = history_of(read_events(folder / EVENTS_FILE))
        record = replace(
            record,
            steps_done=history.steps_done,
            attempts=len(history.attempts),
            eval_loss_before=history.loss_before,
            eval_loss_after=history.loss_after,
        )
        # The meter counts from the first attempt on; entries of closed attempts are part of what it shows.
        spent_usd = max(record.spent_usd, history.spent_usd or Decimal(0))
    else:
        spent_usd = record.spent_usd
    return RunLine(record=record, spent_usd=spent_usd, age_s=age_s, folder="here" if folder.is_dir() else "gone")


def _size_bytes(path: Path) -> int:
    if path.is_dir():
        return sum(item.stat().st_size for item in path.rglob("*") if item.is_file())
    return path.stat().st_size
