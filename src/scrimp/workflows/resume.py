"""Resume: go on with a run from its newest whole checkpoint, to the same bytes as an uninterrupted one."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scrimp.core.errors import ResourceError, SpecError, UnknownNameError
from scrimp.core.recipe import ResolvedJob
from scrimp.core.run import RunSummary
from scrimp.launch.engine import RESOLVED_FILE
from scrimp.launch.engines.local import LocalEngine
from scrimp.launch.lock import holder
from scrimp.ledger.store import Ledger
from scrimp.spec.override import override_keys
from scrimp.spec.read import read_spec
from scrimp.workflows.execute import execute, local_rate, settle
from scrimp.workflows.job_file import read_job, write_job
from scrimp.workflows.open_run import PLAN_FILE, SPEC_FILE, OpenRun, Watch
from scrimp.workflows.plan import read_plan
from scrimp.workflows.world import World

# The limits may be raised between attempts; everything else would be another job. Keys as people write them.
_LIMITS = {
    "limits.budget": "budget_usd",
    "limits.budget_usd": "budget_usd",
    "limits.deadline": "deadline_s",
    "limits.deadline_s": "deadline_s",
}


def resume(name: str, *, overrides: Sequence[str] = (), world: World, watch: Watch) -> RunSummary:
    """Continue a run, named by its id, a beginning of it, `last`, or its folder.

    A run that has finished is not touched: its summary is returned.

    Raises:
        UnknownNameError: no such run.
        SpecError: an override of something that must not change.
        ScrimpError: see `execute`.
    """
    ledger = Ledger(world.ledger_url)
    opened = find_run(name, ledger=ledger, world=world)
    _refuse_while_running(opened)
    settled = settle(opened, ledger=ledger, world=world)
    if settled.record.state == "finished":
        world.note(f"{settled.record.run_id} has finished: nothing left to do")
        return settled
    job = replace(_with_limits(opened, overrides), spent_before_usd=settled.record.spent_usd)
    write_job(job, opened.folder / RESOLVED_FILE)
    engine = LocalEngine(rate=local_rate(opened.plan))
    return execute(replace(opened, job=job), engine=engine, ledger=ledger, world=world, watch=watch)


def _refuse_while_running(opened: OpenRun) -> None:
    busy = holder(opened.folder)
    if busy is not None:
        raise ResourceError(
            what=f"{opened.job.run_id} is training right now (process {busy.pid})",
            expected="a run that nobody works on",
            next_step=f"scrimp show {opened.job.run_id}    # or stop it first: kill -INT {busy.pid}",
        )


def find_run(name: str, *, ledger: Ledger, world: World) -> OpenRun:
    """The run folder behind a name.

    Raises:
        UnknownNameError: no such run, or its folder is gone.
    """
    folder = world.cwd / name
    if not (folder / RESOLVED_FILE).is_file():
        record = ledger.run(name)
        folder = Path(record.folder)
        if not folder.is_dir():
            raise UnknownNameError(
                what=f"the folder of run {record.run_id} is gone: {folder}",
                expected="the folder with its checkpoints, where it was",
                next_step=f"move it back, or start again: scrimp runs --name {record.name}",
            )
    job, planned = read_job(folder / RESOLVED_FILE), read_plan(folder / PLAN_FILE)
    try:
        created_at = ledger.run(job.run_id).created_at
    except UnknownNameError:
        # A folder that came from elsewhere: this ledger has not heard of it.
        created_at = planned.created_at
    return OpenRun(folder=folder, plan=planned, job=job, created_at=created_at)


def _with_limits(opened: OpenRun, overrides: Sequence[str]) -> ResolvedJob:
    """The job with the limits that the overrides name; the spec's own reader reads them."""
    job, keys = opened.job, override_keys(overrides)
    foreign = sorted(keys - _LIMITS.keys())
    if foreign:
        raise SpecError(
            what=f"{foreign[0]} cannot change between the attempts of one run",
            expected="only limits.budget and limits.deadline; anything else is another job",
            next_step=f"scrimp run SPEC {' '.join(map(shlex.quote, overrides))}",
        )
    if not keys:
        return job
    limits = read_spec(opened.folder / SPEC_FILE, overrides=overrides).limits
    return replace(job, **{_LIMITS[key]: getattr(limits, _LIMITS[key]) for key in keys})
