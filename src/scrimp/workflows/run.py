"""Run: one job through the whole house, on this machine.

spec or plan file -> Plan -> run folder -> engine -> events -> ledger -> report -> RunSummary
"""

import re
from collections.abc import Sequence
from pathlib import Path

from scrimp.core.errors import ResourceError, SpecError
from scrimp.core.job import JobSpec
from scrimp.core.plan import Plan
from scrimp.core.recipe import ResolvedJob
from scrimp.core.run import RunSummary
from scrimp.core.units import format_usd
from scrimp.launch.engine import RESOLVED_FILE
from scrimp.launch.engines.local import LocalEngine
from scrimp.ledger.store import Ledger
from scrimp.models.prepare import prepare
from scrimp.models.resolve import resolve
from scrimp.spec.read import read_spec
from scrimp.spec.write import dump_yaml
from scrimp.workflows.execute import execute, local_rate
from scrimp.workflows.job_file import write_job
from scrimp.workflows.open_run import PLAN_FILE, SPEC_FILE, OpenRun, Watch
from scrimp.workflows.plan import is_plan_file, plan, plan_from, read_plan, write_plan
from scrimp.workflows.world import World


def run(target: Path, *, overrides: Sequence[str] = (), world: World, watch: Watch) -> RunSummary:
    """Execute a plan file exactly, or plan a spec and execute its best plan.

    Raises:
        SpecError: the file is wrong, or the plan is for a machine that is not this one.
        DataError, UnknownNameError, NoPlanError: as planning finds them.
        ScrimpError: see `execute`.
    """
    chosen = plan_to_run(target, overrides=overrides, world=world)
    opened = open_run(chosen, world=world)
    engine = LocalEngine(rate=local_rate(chosen))
    return execute(opened, engine=engine, ledger=Ledger(world.ledger_url), world=world, watch=watch)


def plan_to_run(target: Path, *, overrides: Sequence[str], world: World) -> Plan:
    """The plan in a plan file, or the best plan for a spec with the model's own tokenizer at hand.

    Raises:
        SpecError: it is for another machine; nothing is downloaded then.
        ScrimpError: as planning and preparing the model find.
    """
    if is_plan_file(target):
        if overrides:
            raise SpecError(
                what=f"{target} is a plan: it is executed as it stands, {overrides[0]} cannot change it",
                expected="overrides with a spec, or an edited plan file",
                next_step=f"scrimp plan SPEC {' '.join(overrides)} -o {target}",
            )
        found = read_plan(target)
        _refuse_elsewhere(found, target)
        prepare(resolve(found.spec.model, env=world.env), env=world.env, report=world.note)
        return found
    spec = read_spec(target, overrides=overrides)
    if spec.market.where != "local":
        _refuse_elsewhere(_best(spec, world=world), target)
    # Exact token counts need the tokenizer, and training here needs the weights anyway.
    prepare(resolve(spec.model, env=world.env), env=world.env, report=world.note)
    best = _best(spec, world=world)
    _refuse_elsewhere(best, target)
    return best


def _best(spec: JobSpec, *, world: World) -> Plan:
    plans = plan(spec, world=world)
    return plan_from(plans, plans.candidates[0], world=world)


def open_run(chosen: Plan, *, world: World) -> OpenRun:
    """Make the run folder with everything that the job needs to know.

    Raises:
        ResourceError: the folder cannot be made.
    """
    now = world.now()
    run_id, folder = _new_folder(chosen.spec, stamp=f"{now:%Y%m%d-%H%M%S}", base=world.cwd)
    job = ResolvedJob(
        run_id=run_id,
        name=chosen.spec.name,
        recipe=chosen.chosen.recipe,
        data=chosen.spec.data,
        steps=chosen.steps,
        run_folder=str(folder),
        sample_prompts=chosen.spec.sample_prompts,
        price_usd_per_hour=chosen.chosen.offer.price_usd_per_hour,
        budget_usd=chosen.spec.limits.budget_usd,
        deadline_s=chosen.spec.limits.deadline_s,
        forecast_peak_bytes=chosen.chosen.memory.device_bytes.value,
        probe=chosen.spec.training.probe,
    )
    (folder / SPEC_FILE).write_text(dump_yaml(chosen.spec, folder=folder), encoding="utf-8")
    write_plan(chosen, folder / PLAN_FILE)
    write_job(job, folder / RESOLVED_FILE)
    return OpenRun(folder=folder, plan=chosen, job=job, created_at=now)


def _new_folder(spec: JobSpec, *, stamp: str, base: Path) -> tuple[str, Path]:
    slug = re.sub(r"[^a-z0-9]+", "-", spec.name.lower()).strip("-") or "job"
    parent = base / spec.output_dir
    for suffix in ("", *(f"-{number}" for number in range(2, 100))):
        run_id = f"{stamp}-{slug}{suffix}"
        folder = parent / run_id
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise ResourceError(
                what=f"the run folder {folder} cannot be made: {error.strerror}",
                expected="a folder that scrimp can write to",
                next_step="output_dir=/some/other/folder",
            ) from error
        return run_id, folder
    raise ResourceError(
        what=f"a hundred runs named {slug} were started in this second",
        expected="some time between runs",
        next_step="wait a second",
    )


def _refuse_elsewhere(chosen: Plan, target: Path) -> None:
    offer, money = chosen.chosen.offer, chosen.chosen.money
    if offer.market == "local":
        return
    cost = f" for {format_usd(money.total_usd.value)}" if money is not None else ""
    raise SpecError(
        what=f"the plan is for {offer.instance_type} at {offer.provider} ({offer.market}){cost}, not for this machine",
        expected="a plan for this machine: this version trains where it is started and does not rent machines yet",
        next_step=f"scrimp run {target} market.where=local    # or start scrimp on that machine, with the same spec",
    )
