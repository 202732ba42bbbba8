"""Calibrate: from the graded runs of this user's ledger to corrections of the forecasts for their hardware.

Every finished run is forecast anew by today's formulas from the plan in its folder; where the folder is gone, what the
ledger kept of the formulas' forecast stands in, as long as the formulas are the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scrimp import __version__
from scrimp.calibrate.own_runs import Judged, OwnRun, learn
from scrimp.core.correction import Corrected, Correction, Corrections
from scrimp.core.errors import ScrimpError
from scrimp.core.paths import calibration_path
from scrimp.core.run import Graded, RunRecord
from scrimp.ledger.grade import grade
from scrimp.ledger.history import history_of
from scrimp.ledger.queries import RunQuery
from scrimp.ledger.store import Ledger
from scrimp.spec.events import EVENTS_FILE, read_events
from scrimp.workflows.corrections import (
    formulas_version,
    read_corrections,
    remove_corrections,
    write_corrections,
)
from scrimp.workflows.formulas import ENERGY_METERED, formula_plan
from scrimp.workflows.report import read_plan_of
from scrimp.workflows.runs import settle_lost
from scrimp.workflows.world import World

_WATT_SECONDS_PER_KWH = 3_600_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A finished run that nothing was learnt from, and why."""

    run_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What was learnt. `written` is the file, None after a dry run; `replaced` says whether one was in use already."""

    judged: tuple[Judged, ...]
    corrections: tuple[Correction, ...]
    runs: int
    left_out: tuple[LeftOut, ...]
    path: Path
    written: bool
    replaced: bool
    ledger_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """The answer to --reset: the file, and whether there was one."""

    path: Path
    removed: bool


def calibrate(*, dry_run: bool = False, world: World) -> Calibration:
    """Learn from the ledger's finished runs and write calibration.json, which every later plan reads.

    Raises:
        ResourceError: the ledger cannot be read or the file cannot be written.
    """
    ledger = Ledger(world.ledger_url)
    settle_lost(ledger=ledger, world=world)
    found: list[OwnRun] = []
    left_out: list[LeftOut] = []
    for record in ledger.runs(RunQuery(state="finished")):
        try:
            found += own_runs(record, _lines(record, world=world))
        except _NothingToLearnError as reason:
            left_out.append(LeftOut(run_id=record.run_id, reason=str(reason)))
    corrections, judged = learn(found)
    replaced = _is_in_use(world)
    if not dry_run:
        made = Corrections(made_at=world.now(), scrimp_version=__version__, corrections=corrections)
        write_corrections(made, world=world)
    return Calibration(
        judged=judged,
        corrections=corrections,
        runs=len({run.run_id for run in found}),
        left_out=tuple(left_out),
        path=calibration_path(world.env),
        written=not dry_run,
        replaced=replaced,
        ledger_url=world.shown_ledger,
    )


def reset(*, world: World) -> Forgotten:
    """Remove calibration.json: plans are made by the formulas alone again.

    Raises:
        ResourceError: it cannot be removed.
    """
    return Forgotten(path=calibration_path(world.env), removed=remove_corrections(world))


def own_runs(record: RunRecord, lines: Sequence[Graded]) -> list[OwnRun]:
    """What one run says: memory, seconds in steps, seconds around them, and power where energy was measured.

    Of a run of several attempts the time around its steps and its power are those of starting over, and left out. Power
    is that of the machine where a meter saw all of it, else that of its cards by their own counters.
    """
    by_name = {line.quantity: line for line in lines if line.formula}
    found = [_own(record, "peak_bytes", by_name["peak_bytes"])] if "peak_bytes" in by_name else []
    train, total, cards = (by_name.get(name) for name in ("train_s", "total_s", "gpu_kwh"))
    # Older ledgers graded energy that was billed at a stated power.
    energy = by_name.get("energy_kwh", cards) if record.features.get(ENERGY_METERED) else cards
    if train is not None:
        found.append(_own(record, "train_s", train))
    if record.attempts == 1 and train is not None and total is not None:
        found.append(_around(record, total, train))
        if energy is not None:
            found.append(_power(record, energy, total))
    return [run for run in found if run.is_usable]


class _NothingToLearnError(Exception):
    """Why a run is left out, in words for its owner."""


def _lines(record: RunRecord, *, world: World) -> Sequence[Graded]:
    """What today's formulas say of the run, with their own intervals, and what was measured."""
    folder = Path(record.folder)
    plan = read_plan_of(folder, world=world) if (folder / EVENTS_FILE).is_file() else None
    if plan is not None:
        history = history_of(read_events(folder / EVENTS_FILE))
        try:
            alone = formula_plan(plan)
            return grade(alone, history, spent_usd=record.spent_usd, formulas=alone)
        except (ScrimpError, ValueError) as error:
            raise _NothingToLearnError(f"its plan cannot be forecast any more: {str(error).splitlines()[0]}") from error
    if not record.graded:
        raise _NothingToLearnError("its folder is gone, and the ledger holds no forecast of it")
    if formulas_version(record.scrimp_version) != formulas_version():
        by = record.scrimp_version or "an earlier version"
        raise _NothingToLearnError(f"its folder is gone, and it was forecast by the formulas of {by}")
    return record.graded


def _own(record: RunRecord, quantity: Corrected, line: Graded) -> OwnRun:
    formula = line.formula or line.forecast
    # The plan's own interval, about what the formulas say.
    scale = formula / line.forecast if line.forecast else 1.0
    return OwnRun(
        run_id=record.run_id,
        quantity=quantity,
        device=record.device,
        method=record.method,
        model=record.model,
        forecast=formula,
        low=line.low * scale,
        high=line.high * scale,
        measured=line.measured,
    )


def _around(record: RunRecord, total: Graded, train: Graded) -> OwnRun:
    """Everything but the steps: what the one line says more than the other."""
    whole, steps = _own(record, "around_s", total), _own(record, "around_s", train)
    value = whole.forecast - steps.forecast
    return OwnRun(
        run_id=record.run_id,
        quantity="around_s",
        device=record.device,
        method=record.method,
        model=record.model,
        forecast=value,
        low=min(value, whole.low - steps.low),
        high=max(value, whole.high - steps.high),
        measured=whole.measured - steps.measured,
    )


def _power(record: RunRecord, energy: Graded, total: Graded) -> OwnRun:
    """Energy over time, so that a wrong time is not corrected twice. The machine's own, whatever it trains."""
    kwh, duration = _own(record, "power_w", energy), _own(record, "power_w", total)
    per_s = _WATT_SECONDS_PER_KWH / duration.forecast
    return OwnRun(
        run_id=record.run_id,
        quantity="power_w",
        device=record.device,
        method="",
        model="",
        forecast=kwh.forecast * per_s,
        low=kwh.low * per_s,
        high=kwh.high * per_s,
        measured=kwh.measured * _WATT_SECONDS_PER_KWH / duration.measured if duration.measured else 0.0,
    )


def _is_in_use(world: World) -> bool:
    """Whether plans were corrected before; a damaged file is about to be replaced and counts as none."""
    try:
        return read_corrections(world) is not None
    except ScrimpError:
        return False
