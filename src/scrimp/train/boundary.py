"""What happens between two steps: stop if asked, save, evaluate, sample. None of it changes what is trained."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NoReturn

from scrimp.core.errors import BudgetError, InterruptedRunError
from scrimp.core.run import EventKind, RunEvent
from scrimp.core.units import format_usd
from scrimp.train.checkpoint import checkpoint_name, group_hashes
from scrimp.train.evaluate import evaluate
from scrimp.train.events import EventLog
from scrimp.train.hardware import peak_memory, reserved_memory
from scrimp.train.meter import Limit
from scrimp.train.resume import state_groups
from scrimp.train.sample import answer
from scrimp.train.session import Progress, Session

When = Literal["before", "during", "after"]


def stop_if_asked(session: Session, progress: Progress, *, next_rows: Sequence[int]) -> None:
    """Stop with a checkpoint when a signal came, or when a step on `next_rows` would pass a limit.

    Raises:
        InterruptedRunError: a signal came.
        BudgetError: the budget or the deadline would be passed.
    """
    signal = session.stop.asked_by
    if signal is not None:
        checkpoint = save_checkpoint(session, progress)
        tell_measured(session)
        session.events.emit("interrupted", signal=signal, checkpoint=checkpoint)
        raise InterruptedRunError(
            what=f"stopped by {signal} after step {progress.step} of {session.steps}",
            expected=f"{checkpoint} is saved; going on from it gives the same bytes",
            next_step=f"scrimp resume {session.job.run_id}",
        )
    if not next_rows:
        return
    limit = session.meter.passed_limit(
        next_tokens=session.total_tokens(next_rows),
        checkpoint_bytes=session.checkpoint_bytes,
        duties_due=_when_due(session, progress.step + 1) is not None,
    )
    if limit is not None:
        checkpoint = save_checkpoint(session, progress)
        tell_measured(session)
        stop_at_limit(session.events, limit, run_id=session.job.run_id, checkpoint=checkpoint)


def stop_at_limit(events: EventLog, limit: Limit, *, run_id: str, checkpoint: str | None) -> NoReturn:
    """Record that a limit would be passed, and end the attempt.

    Raises:
        BudgetError: always.
    """
    spent, budget = limit.spent_usd, limit.budget_usd
    events.emit(
        "stopped_at_cap",
        spent_usd=None if spent is None else str(spent),
        budget_usd=None if budget is None else str(budget),
        limit=limit.name,
        checkpoint=checkpoint,
    )
    so_far = "" if spent is None else f" at {format_usd(spent)}"
    cap = limit.name if budget is None else f"budget of {format_usd(budget)}"
    raise BudgetError(
        what=f"stopped{so_far} after step {events.step}: one more step and a save would pass the {cap}",
        expected=f"a higher limits.{limit.name}; what was trained is kept",
        next_step=f"scrimp resume {run_id} limits.{limit.name}=...",
    )


def save_if_due(session: Session, progress: Progress) -> None:
    """Save where the recipe asks for it, and always after the last step: what follows can then be repeated."""
    if progress.step == session.steps or _is_due(session.job.recipe.checkpoint_every_steps, progress.step):
        save_checkpoint(session, progress)


def save_checkpoint(session: Session, progress: Progress) -> str:
    """Publish a checkpoint of the last finished step, unless it is there already. Returns its name."""
    name = checkpoint_name(progress.step)
    if session.store.latest == name:
        return name
    started_s = session.clock.wall_s()
    groups = state_groups(session.forward.loaded, session.optimizer)
    state = replace(
        session.facts,
        step=progress.step,
        total_tokens=progress.total_tokens,
        trained_tokens=progress.trained_tokens,
        loss=progress.loss if math.isfinite(progress.loss) else None,
        train_s=progress.train_s,
        spent_usd=session.meter.spent_usd,
        groups=group_hashes(groups),
        loss_scale=progress.loss_scale.scale,
        good_steps=progress.loss_scale.good_steps,
    )
    published = session.store.save(state, groups)
    save_s = session.clock.wall_s() - started_s
    session.meter.took_save(save_s)
    session.events.emit("checkpointed", checkpoint=name, size_bytes=published.size_bytes, save_s=save_s)
    return name


def do_duties(session: Session, progress: Progress) -> None:
    """Evaluate and sample where this boundary asks for it; once, however often the run was resumed from here."""
    when = _when_due(session, progress.step)
    if when is None:
        return
    started_s = session.clock.wall_s()
    _evaluate(session, when)
    if when != "during":
        _sample(session, when)
    session.meter.took_duties(session.clock.wall_s() - started_s)


def tell_measured(session: Session) -> None:
    """What this attempt was seen to use."""
    device = session.forward.loaded.device
    peak_bytes, peak_kind = peak_memory(device)
    session.meter.energy.stop()
    session.events.emit(
        "measured",
        peak_bytes=peak_bytes,
        peak_kind=peak_kind,
        reserved_bytes=reserved_memory(device),
        train_s=session.meter.train_s,
        total_s=session.meter.total_s,
        **session.meter.energy.values(),
    )


def _evaluate(session: Session, when: When) -> None:
    if not session.dataset.evaluation or _told(session, "evaluated", when):
        return
    started_s = session.clock.wall_s()
    found = evaluate(
        session.forward,
        session.dataset.evaluation,
        micro_batch_tokens=session.job.recipe.micro_batch_tokens,
        stopped=lambda: session.stop.asked_by is not None,
    )
    if found is None:
        return
    session.events.emit(
        "evaluated",
        loss=found.loss,
        perplexity=found.perplexity,
        eval_tokens=found.trained_tokens,
        when=when,
        eval_s=session.clock.wall_s() - started_s,
    )


def _sample(session: Session, when: When) -> None:
    told = {str(event.values.get("prompt")) for event in _told(session, "sampled", when)}
    for prompt in session.prompts:
        if session.stop.asked_by is not None:
            return
        if prompt.text not in told:
            text = answer(session.forward, prompt, session.tokenizer)
            session.events.emit("sampled", prompt=prompt.text, answer=text, when=when)


def _told(session: Session, kind: EventKind, when: When) -> list[RunEvent]:
    """What an earlier attempt has said of this very step: it would be the same again."""
    return [
        event
        for event in session.events.earlier
        if event.kind == kind and event.step == session.events.step and event.values.get("when") == when
    ]


def _when_due(session: Session, step: int) -> When | None:
    if step == session.steps:
        return "after"
    if step == 0:
        return "before"
    return "during" if _is_due(session.job.recipe.eval_every_steps, step) else None


def _is_due(every: int | None, step: int) -> bool:
    return every is not None and step % every == 0
