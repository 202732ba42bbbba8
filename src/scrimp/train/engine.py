"""The training loop, top to bottom.

    look_ahead
        probe or rehearse                the fullest micro-batch first, so that what does not fit fails at once
    train_to_the_end
        duties at the boundary           evaluate and sample: before, during, after
        for the rows of each step        which follow from the seed and the step, so nothing is replayed
            stop if asked, or before a limit is passed; with a checkpoint
            take the step                micro-batches, gradients summed and clipped, one step of the optimizer
            save if due
            duties at the boundary

Whatever is interrupted between two boundaries can be done again from the last checkpoint and gives the same bytes:
random numbers are drawn from (seed, step), the learning rate and the rows are functions of the step, and everything
else that a step reads is in the checkpoint.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain

from scrimp.core.probe import MOST_OF_THE_RUN, PROBE_STEPS, costs_too_much, is_probed
from scrimp.data.batches import StepOptions, step_rows
from scrimp.train.boundary import do_duties, save_if_due, stop_if_asked
from scrimp.train.guards import LearningWatch, check_finite
from scrimp.train.optimizer import LossScale, clip_gradients, set_learning_rate
from scrimp.train.probe import probe
from scrimp.train.schedule import learning_rate
from scrimp.train.session import Progress, Session
from scrimp.train.step import backward, seed_step


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """One optimizer step: mean loss over its label tokens, gradient norm before clipping, and what it took."""

    loss: float
    gradient_norm: float
    learning_rate: float
    total_tokens: int
    trained_tokens: int
    step_s: float
    cpu_s: float
    loss_scale: LossScale


def look_ahead(session: Session, progress: Progress) -> Session:
    """Before the first step of an attempt: a probe of the whole run, or the fullest micro-batch alone.

    What does not fit fails in the first minute, not when the shuffle brings it up hours later, and the speed is known
    before the first step is paid for. Returns the session to go on with; no trained bit depends on any of it.
    """
    session.forward.loaded.module.train()
    choice, steps = session.job.probe, session.job.steps
    # An attempt that goes on from a checkpoint has steps of its own behind it, which say more.
    if progress.step or not is_probed(choice, steps):
        if not progress.step and choice == "auto" and costs_too_much(steps):
            session.events.note(
                f"no probe: {PROBE_STEPS} steps are more than {MOST_OF_THE_RUN:.0%} of this run's {steps.steps} "
                "(training.probe=on probes all the same)"
            )
        rehearse(session)
        return session
    session, reading = probe(session)
    session.events.emit("probed", **asdict(reading))
    return session


def train_to_the_end(session: Session, progress: Progress) -> Progress:
    """From `progress` to the last step of the job.

    Raises:
        InterruptedRunError: a signal came; a checkpoint of the last finished step is there.
        BudgetError: the next step would pass a limit; likewise.
        TrainingError: a loss that is no number, or tensors that get no gradient.
    """
    session.forward.loaded.module.train()
    watch = LearningWatch(session.forward.loaded.trainable)
    do_duties(session, progress)
    options = StepOptions.of(session.job.recipe)
    for rows in step_rows(session.dataset.sizes.total_tokens, options=options, start_step=progress.step):
        stop_if_asked(session, progress, next_rows=rows)
        result = take_step(session, progress, rows, watch)
        progress = _after(progress, result)
        _tell(session, progress, result)
        save_if_due(session, progress)
        do_duties(session, progress)
    # A signal during the last evaluation: what it cut short is made up for by a resume.
    stop_if_asked(session, progress, next_rows=())
    return progress


def take_step(session: Session, progress: Progress, rows: Sequence[int], watch: LearningWatch) -> StepResult:
    """One step of the optimizer on these rows.

    The loss is the sum over all label tokens of the step divided by their number, so how the rows are split into
    micro-batches does not matter.
    """
    started_s, started_cpu_s = session.clock.wall_s(), session.clock.cpu_s()
    recipe, optimizer, scale = session.job.recipe, session.optimizer, progress.loss_scale
    trained_tokens = sum(session.dataset.sizes.trained_tokens[row] for row in rows)
    seed_step(recipe.seed, progress.step)
    rate = learning_rate(recipe, step=progress.step, steps=session.steps)
    set_learning_rate(optimizer, rate)

    groups = session.micro_batches(rows)
    mean_loss = backward(session, groups, factor=scale.scale / trained_tokens) / scale.scale

    for note in watch.see(last=progress.step + 1 == session.steps):
        session.events.note(note)
    trainable = session.forward.loaded.trainable.values()
    norm = clip_gradients(trainable, limit=recipe.clip_norm, unscale=scale.scale)
    check_finite(mean_loss, norm, step=progress.step + 1, overflow_is_normal=scale.dynamic)
    if math.isfinite(norm):
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return StepResult(
        loss=mean_loss,
        gradient_norm=norm,
        learning_rate=rate,
        total_tokens=session.total_tokens(rows),
        trained_tokens=trained_tokens,
        step_s=session.clock.wall_s() - started_s,
        cpu_s=session.clock.cpu_s() - started_cpu_s,
        loss_scale=scale.after(overflowed=not math.isfinite(norm)),
    )


def rehearse(session: Session) -> None:
    """The fullest micro-batch of the whole run once forward and back; its gradients are thrown away."""
    started_s = session.clock.wall_s()
    steps = step_rows(session.dataset.sizes.total_tokens, options=StepOptions.of(session.job.recipe))
    groups = chain.from_iterable(session.micro_batches(step) for step in steps)
    fullest = max(groups, key=session.memory_tokens)
    backward(session, (fullest,), factor=1.0)
    session.optimizer.zero_grad(set_to_none=True)
    session.meter.saw_rate(session.total_tokens(fullest) / max(session.clock.wall_s() - started_s, 1e-9))


def _after(progress: Progress, result: StepResult) -> Progress:
    return Progress(
        step=progress.step + 1,
        total_tokens=progress.total_tokens + result.total_tokens,
        trained_tokens=progress.trained_tokens + result.trained_tokens,
        train_s=progress.train_s + result.step_s,
        loss=result.loss,
        loss_scale=result.loss_scale,
    )


def _tell(session: Session, progress: Progress, result: StepResult) -> None:
    session.events.step = progress.step
    meter = session.meter
    meter.took_step(tokens=result.total_tokens, step_s=result.step_s)
    spent = meter.spent_usd
    projected = meter.projected_usd(tokens_left=session.job.steps.total_tokens - progress.total_tokens)
    session.events.emit(
        "step",
        loss=result.loss,
        learning_rate=result.learning_rate,
        gradient_norm=result.gradient_norm,
        total_tokens=progress.total_tokens,
        trained_tokens=progress.trained_tokens,
        step_s=result.step_s,
        cpu_s=result.cpu_s,
        tokens_per_s=result.total_tokens / max(result.step_s, 1e-9),
        spent_usd=None if spent is None else str(spent),
        projected_usd=None if projected is None else str(projected),
        **meter.energy.values(),
    )
