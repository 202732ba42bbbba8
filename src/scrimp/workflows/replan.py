"""Re-plan: a recipe that ran out of memory before its first step gives way to a smaller one, and the run goes on."""

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from scrimp.core.estimate import Estimate
from scrimp.core.recipe import Recipe
from scrimp.core.run import RunEvent
from scrimp.launch.attend import Outcome
from scrimp.launch.engine import RESOLVED_FILE
from scrimp.planner.smaller import change_words, out_of_memory_error, smaller_recipe
from scrimp.spec.events import EVENTS_FILE, event_line, read_events
from scrimp.workflows.formulas import formula_plan
from scrimp.workflows.job_file import write_job
from scrimp.workflows.open_run import FIRST_PLAN_FILE, PLAN_FILE, OpenRun
from scrimp.workflows.plan import write_plan

_BASIS = "planned again after memory ran out"
_KILLED = "the process was killed (signal 9): often the kernel, for lack of memory"


def next_try(run: OpenRun, outcome: Outcome, *, target: str, on_event: Callable[[RunEvent], None]) -> OpenRun | None:
    """The run with a smaller recipe, written into its folder; None when its last attempt did not run out of memory.

    `target` is the spec as errors shall name it. The events get a line that says what was changed; the first plan stays
    beside the new one, as plan.1.yaml.

    Raises:
        NoPlanError: memory ran out and there is nothing smaller; says what would help.
    """
    events = read_events(run.folder / EVENTS_FILE)
    reason = _ran_out(events, outcome)
    if reason is None:
        return None
    loaded = any(event.kind == "loaded" for event in _last_attempt(events))
    recipe = smaller_recipe(run.job.recipe, run.job.steps) if loaded else None
    if recipe is None:
        raise out_of_memory_error(run.job.recipe, loaded=loaded, target=target)
    change = change_words(run.job.recipe, recipe)
    replanned = _with_recipe(run, recipe)
    _keep_first_plan(run)
    write_plan(replanned.plan, run.folder / PLAN_FILE)
    write_job(replanned.job, run.folder / RESOLVED_FILE)
    event = _event(events, reason, change, recipe)
    with (run.folder / EVENTS_FILE).open("a", encoding="utf-8") as file:
        file.write(event_line(event))
    on_event(event)
    return replanned


def _ran_out(events: Sequence[RunEvent], outcome: Outcome) -> str | None:
    """Why the last attempt is taken to have run out of memory; None when it did not, or had steps to keep."""
    last = _last_attempt(events)
    # A checkpoint belongs to its recipe: what was trained with another one is not gone on from.
    if not last or any(event.kind == "step" for event in events):
        return None
    failed = next((event for event in reversed(last) if event.kind == "failed"), None)
    if failed is not None:
        return str(failed.values.get("error", "")).partition("\n")[0] if failed.values.get("out_of_memory") else None
    was_killed = outcome.exit_code == -signal.SIGKILL and not outcome.signals and not outcome.killed
    return _KILLED if was_killed else None


def _last_attempt(events: Sequence[RunEvent]) -> list[RunEvent]:
    number = max((event.attempt for event in events), default=0)
    return [event for event in events if event.attempt == number]


def _with_recipe(run: OpenRun, recipe: Recipe) -> OpenRun:
    """Forecast anew: by the formulas, for a correction that was learnt did not hold here either."""
    planned = formula_plan(replace(run.plan, chosen=replace(run.plan.chosen, recipe=recipe)))
    chosen = planned.chosen
    memory = replace(
        chosen.memory,
        peak_bytes=_noted(chosen.memory.peak_bytes),
        device_bytes=_noted(chosen.memory.device_bytes),
        need_bytes=_noted(chosen.memory.need_bytes),
    )
    time_forecast = replace(chosen.time, total_s=_noted(chosen.time.total_s), train_s=_noted(chosen.time.train_s))
    planned = replace(planned, chosen=replace(chosen, memory=memory, time=time_forecast))
    job = replace(run.job, recipe=recipe, forecast_peak_bytes=memory.device_bytes.value)
    return replace(run, plan=planned, job=job)


def _noted(estimate: Estimate[float]) -> Estimate[float]:
    return replace(estimate, basis=f"{estimate.basis}; {_BASIS}")


def _keep_first_plan(run: OpenRun) -> None:
    first = run.folder / FIRST_PLAN_FILE
    if not first.exists():
        write_plan(run.plan, first)


def _event(events: Sequence[RunEvent], reason: str, change: str, recipe: Recipe) -> RunEvent:
    return RunEvent(
        at_s=max(time.time(), events[-1].at_s),
        attempt=events[-1].attempt,
        kind="replanned",
        step=0,
        values={
            "reason": reason,
            "change": change,
            "micro_batch_tokens": recipe.micro_batch_tokens,
            "checkpointing": recipe.checkpointing,
        },
    )


def changes_of(events: Sequence[RunEvent]) -> tuple[str, ...]:
    """All changes in words, in their order."""
    return tuple(str(event.values.get("change", "")) for event in events if event.kind == "replanned")
