"""From a prepared run folder to a summary: start the job, attend it, bill it, grade it, report it.

`run` and `resume` both end here. A run folder is whole by itself: spec.yaml, plan.yaml, resolved.json,
events.jsonl, checkpoints/, adapter/, report.html, log.txt.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from scrimp import __version__
from scrimp.core.errors import BudgetError, InterruptedRunError, NoPlanError, ResourceError, ScrimpError, error_from
from scrimp.core.plan import Plan
from scrimp.core.run import LedgerEntry, RunRecord, RunState, RunSummary
from scrimp.core.units import HOUR_S, plural
from scrimp.launch.attend import Outcome
from scrimp.launch.engine import LOG_FILE, RESOLVED_FILE, Engine
from scrimp.launch.follow import log_tail
from scrimp.ledger.bill import BilledRun, MachineRate, bill, unrecorded
from scrimp.ledger.grade import grade
from scrimp.ledger.history import RunHistory, history_of
from scrimp.ledger.queries import EntryQuery
from scrimp.ledger.store import Ledger
from scrimp.spec.events import EVENTS_FILE, read_events
from scrimp.workflows.attempt import attempt
from scrimp.workflows.corrected import grade_probe
from scrimp.workflows.formulas import ENERGY_METERED, features_of, formula_plan, software_versions
from scrimp.workflows.job_file import read_job
from scrimp.workflows.open_run import ADAPTER_FOLDER, PLAN_FILE, SPEC_FILE, OpenRun, Watch
from scrimp.workflows.plan import read_plan
from scrimp.workflows.report import write_run_report
from scrimp.workflows.world import World


def local_rate(plan: Plan) -> MachineRate:
    """What an hour of this machine costs by the plan: the offer's price, of which electricity is a part."""
    local, energy, total_s = plan.spec.local, plan.chosen.energy, plan.chosen.time.total_s.value
    on_cards = energy.gpu_kwh is not None and total_s > 0
    return MachineRate(
        price_usd_per_hour=plan.chosen.offer.price_usd_per_hour,
        power_w=local.power_w,
        electricity_usd_per_kwh=local.electricity_usd_per_kwh,
        forecast_w=mean_power_w(energy.energy_kwh.value, total_s) if on_cards else None,
        cards_w=mean_power_w(energy.gpu_kwh.value, total_s) if energy.gpu_kwh is not None and on_cards else None,
        source=plan.chosen.offer.price_source,
    )


def mean_power_w(energy_kwh: float, duration_s: float) -> float:
    """Watts that come to so much energy over so much time."""
    return energy_kwh * 1000 * HOUR_S / duration_s


def execute(run: OpenRun, *, engine: Engine, ledger: Ledger, world: World, watch: Watch) -> RunSummary:
    """Run one attempt to its end and record it; while memory runs out before the first step, with smaller recipes.

    Raises:
        NoPlanError: memory ran out with the smallest recipe there is.
        InterruptedRunError: a signal stopped it; a checkpoint is there.
        BudgetError: it stopped before the budget or the deadline; a checkpoint is there.
        ScrimpError: the job failed; the trainer's own message, and where its log is.
    """
    before = history_of(read_events(run.folder / EVENTS_FILE))
    ledger.save_run(_record(run, before, state="running"))
    watch.on_plan(run.plan, run.folder)
    try:
        target = str(run.folder / SPEC_FILE)
        run, outcome = attempt(run, engine=engine, world=world, watch=watch, target=target)
    except NoPlanError:
        # By then the folder holds the last recipe that was tried.
        tried = replace(run, plan=read_plan(run.folder / PLAN_FILE), job=read_job(run.folder / RESOLVED_FILE))
        settle(tried, ledger=ledger, world=world)
        raise
    summary = settle(run, ledger=ledger, world=world)
    if summary.record.state != "finished":
        raise _ending(summary, outcome, run)
    return summary


def settle(run: OpenRun, *, ledger: Ledger, world: World) -> RunSummary:
    """Bill, grade, record and report what the events of a run say. Doing it twice changes nothing.

    Also what repairs the ledger after a kill of everything: the events outlive the processes.
    """
    history = history_of(read_events(run.folder / EVENTS_FILE))
    owner = BilledRun(run_id=run.job.run_id, project=run.plan.spec.project, rate=local_rate(run.plan))
    mine = EntryQuery(run_id=run.job.run_id)
    done = bill(history, run=owner, process_ended=True)
    ledger.record(*unrecorded(done.entries, ledger.entries(mine)))
    entries, spent_usd = ledger.entries(mine), ledger.spent_usd(mine)
    record = replace(
        _record(run, history, state=history.state(process_ended=True)),
        ended_at=history.ended_at,
        spent_usd=spent_usd,
        graded=(
            *grade(run.plan, history, spent_usd=spent_usd, formulas=_formulas(run.plan, world=world)),
            *grade_probe(run.plan, history, spent_usd=spent_usd),
        ),
    )
    ledger.save_run(record)
    report = _report(run, record, entries, world=world)
    adapter = run.folder / ADAPTER_FOLDER
    return RunSummary(
        record=record,
        samples=tuple((item.prompt, item.before or "", item.after or "") for item in history.samples),
        adapter_folder=str(adapter) if adapter.is_dir() else None,
        report_path=report,
        ledger_url=world.shown_ledger,
        next_step=None if record.state == "finished" else f"scrimp resume {record.run_id}",
    )


def _report(run: OpenRun, record: RunRecord, entries: Sequence[LedgerEntry], *, world: World) -> str | None:
    """The page of the run; None and a note where it cannot be written, which must not hide how the run ended."""
    try:
        return str(write_run_report(run.folder, run.plan, record, entries))
    except ResourceError as error:
        world.note(f"{error.what}; later: scrimp report {record.run_id}")
        return None


def _record(run: OpenRun, history: RunHistory, *, state: RunState) -> RunRecord:
    chosen, spec = run.plan.chosen, run.plan.spec
    return RunRecord(
        run_id=run.job.run_id,
        name=run.job.name,
        project=spec.project,
        state=state,
        created_at=run.created_at,
        ended_at=None,
        folder=str(run.folder),
        model=chosen.recipe.model,
        method=chosen.recipe.method.name,
        device=chosen.device.name,
        provider=chosen.offer.provider,
        market=chosen.offer.market,
        attempts=len(history.attempts),
        steps_done=history.steps_done,
        steps_planned=run.job.steps.steps,
        spent_usd=Decimal(0),
        forecast_usd=chosen.money.total_usd.value if chosen.money is not None else None,
        eval_loss_before=history.loss_before,
        eval_loss_after=history.loss_after,
        scrimp_version=__version__,
        features={
            **features_of(run.plan),
            **software_versions(),
            ENERGY_METERED: history.energy_kwh is not None,
        },
    )


def _formulas(plan: Plan, *, world: World) -> Plan | None:
    """The plan by the formulas alone; a plan that was edited beyond what they know is graded without them."""
    try:
        return formula_plan(plan)
    except (ScrimpError, ValueError) as error:
        world.note(f"the run is recorded without what the formulas alone would have said: {error}")
        return None


def _ending(summary: RunSummary, outcome: Outcome, run: OpenRun) -> ScrimpError:
    """The error for a run that did not finish: what the trainer said, what is kept, how to go on."""
    record = summary.record
    history = history_of(read_events(run.folder / EVENTS_FILE))
    last = history.attempts[-1].ending if history.attempts else None
    kept = "no step was done yet"
    if record.steps_done:
        done = f"{record.steps_done} of {record.steps_planned} {plural(record.steps_planned, 'step')} were done"
        kept = f"{done}, the last checkpoint is kept"
    go_on = f"scrimp resume {record.run_id}"
    if last == "interrupted":
        return InterruptedRunError(what=f"stopped by a signal: {kept}", next_step=go_on)
    if last == "stopped_at_cap":
        return BudgetError(
            what=f"stopped before the limit was passed: {kept}",
            expected="a larger limits.budget or limits.deadline to go on",
            next_step=f"{go_on} limits.budget=...",
        )
    if last == "failed":
        failure = error_from(history.failure or "training failed", exit_code=outcome.exit_code)
        failure.expected = failure.expected or f"see {run.folder / LOG_FILE}"
        failure.next_step = failure.next_step or go_on
        return failure
    said = log_tail(run.folder / LOG_FILE, lines=6)
    by = f"signal {-outcome.exit_code}" if outcome.exit_code < 0 else f"exit code {outcome.exit_code}"
    return ResourceError(
        what=f"the training process ended without a word ({by}): {kept}" + (f"\n{said}" if said else ""),
        expected="signal 9 is often the kernel, for lack of memory: see free -h",
        next_step=go_on,
    )
