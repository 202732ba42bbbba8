"""Probe: three real steps of a job on this machine, and the plan's forecasts corrected by them. Nothing is trained."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scrimp.core.errors import InterruptedRunError, ResourceError, ScrimpError, error_from
from scrimp.core.probe import Probed
from scrimp.launch.attend import Outcome
from scrimp.launch.engine import LOG_FILE, RESOLVED_FILE
from scrimp.launch.engines.local import LocalEngine
from scrimp.launch.follow import log_tail
from scrimp.ledger.history import RunHistory, history_of
from scrimp.spec.events import EVENTS_FILE, read_events
from scrimp.workflows.attempt import attempt
from scrimp.workflows.corrected import probed
from scrimp.workflows.execute import local_rate
from scrimp.workflows.job_file import write_job
from scrimp.workflows.open_run import OpenRun, Watch
from scrimp.workflows.replan import changes_of
from scrimp.workflows.run import open_run, plan_to_run
from scrimp.workflows.world import World


def probe(target: Path, *, overrides: Sequence[str] = (), world: World, watch: Watch) -> Probed:
    """Plan a spec (or read a plan file), train three steps of it in a process of its own, and correct the forecasts.

    Nothing is kept and nothing is billed. Where memory runs out the next smaller recipe is probed instead.

    Raises:
        SpecError, DataError, UnknownNameError, NoPlanError: as `run` finds them.
        InterruptedRunError: a signal came.
        ScrimpError: the steps failed; the trainer's own message.
    """
    chosen = plan_to_run(target, overrides=overrides, world=world)
    with tempfile.TemporaryDirectory(prefix="scrimp-probe-") as aside:
        spec = replace(chosen.spec, output_dir=aside)
        run = open_run(replace(chosen, spec=spec), world=world)
        run = replace(run, job=replace(run.job, probe="only", budget_usd=None, deadline_s=None))
        write_job(run.job, run.folder / RESOLVED_FILE)
        watch.on_plan(chosen, run.folder)
        engine = LocalEngine(rate=local_rate(chosen))
        run, outcome = attempt(run, engine=engine, world=world, watch=watch, target=str(target))
        events = read_events(run.folder / EVENTS_FILE)
        planned = replace(run.plan, spec=chosen.spec)
        found = probed(planned, history_of(events).probed, replanned=changes_of(events))
        if found is not None:
            return found
        raise _ending(history_of(events), outcome, run, target)


def _ending(history: RunHistory, outcome: Outcome, run: OpenRun, target: Path) -> ScrimpError:
    """Why there is no reading."""
    last = history.attempts[-1].ending if history.attempts else None
    if last == "interrupted":
        return InterruptedRunError(what="stopped by a signal: nothing was probed", next_step=f"scrimp probe {target}")
    if last == "failed":
        return error_from(history.failure or "the probe failed", exit_code=outcome.exit_code)
    said = log_tail(run.folder / LOG_FILE, lines=6)
    return ResourceError(
        what=f"the probe ended without a word (exit code {outcome.exit_code})" + (f"\n{said}" if said else ""),
        expected="three steps of training",
        next_step=f"scrimp run {target} training.probe=off    # trains without one",
    )
