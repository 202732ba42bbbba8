"""Resume: go on with a run from its newest whole checkpoint, to the same bytes as an uninterrupted one."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scrimp.core.errors import ResourceError, SpecError, UnknownNameError
from scrimp.core.recipe import ResolvedJob
from scrimp.core.run import RunSummary
from scrimp.core.units import parse_duration_s, parse_usd
from scrimp.launch.engine import RESOLVED_FILE
from scrimp.launch.engines.local import LocalEngine
from scrimp.launch.lock import holder
from scrimp.ledger.store import Ledger
from scrimp.workflows.execute import PLAN_FILE, OpenRun, Watch, execute, local_rate, read_job, settle, write_job
from scrimp.workflows.plan import read_plan
from scrimp.workflows.world import World

# The limits may be raised between attempts; everything else would be another job.
_CHANGEABLE = ("limits.budget", "limits.deadline")


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
    job = _with_limits(opened.job, overrides)
    job = replace(job, spent_before_usd=settled.record.spent_usd)
    write_job(job, opened.folder)
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
    job, planned = read_job(folder), read_plan(folder / PLAN_FILE)
    known = {record.run_id: record.created_at for record in ledger.runs()}
    return OpenRun(folder=folder, plan=planned, job=job, created_at=known.get(job.run_id, planned.created_at))


def _with_limits(job: ResolvedJob, overrides: Sequence[str]) -> ResolvedJob:
    for override in overrides:
        key, _, value = override.partition("=")
        key = key.removesuffix("_usd").removesuffix("_s")
        try:
            if key == _CHANGEABLE[0]:
                job = replace(job, budget_usd=parse_usd(value))
            elif key == _CHANGEABLE[1]:
                job = replace(job, deadline_s=parse_duration_s(value))
            else:
                raise SpecError(
                    what=f"{key} cannot change between the attempts of one run",
                    expected=f"only {' and '.join(_CHANGEABLE)}; anything else is another job",
                    next_step=f"scrimp run SPEC {override}",
                )
        except ValueError as error:
            raise SpecError(what=str(error), expected=f"{key}=...", next_step="limits.budget='5 USD'") from error
    return job
