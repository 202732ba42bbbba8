"""The probe: a few real steps before the first one, measured, and then undone to the last bit.

    rows of the run   three of its own steps: the one with the fullest micro-batch first, then two of mean size
    the very loop     the same micro-batches, gradients, clipping and optimizer as training, at a learning rate of zero
    no trace          weights keep their bits (checked), the optimizer is made anew, random numbers are put back

At a rate of zero the weights stay as they are, so no copy of them is needed, which would itself change the peak: a
copy of all weights and states is what memory has no room for when a model is trained whole. One thing a zero update
does change is the sign of a zero (-0.0 - -0.0 is 0.0); those places are remembered and put back.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import torch

from scrimp.core.errors import TrainingError
from scrimp.core.probe import PROBE_STEPS, PROBED_MICRO_BATCHES, ProbeReading
from scrimp.data.batches import StepOptions, micro_batches, step_rows
from scrimp.train.evaluate import evaluate
from scrimp.train.guards import check_finite
from scrimp.train.hardware import driver_memory, peak_memory, reserved_memory
from scrimp.train.optimizer import LossScale, build_optimizer, clip_gradients, optimizer_bytes, set_learning_rate
from scrimp.train.sample import NEW_TOKENS, answer
from scrimp.train.session import Session
from scrimp.train.step import backward, seed_step

_SAMPLED_TOKENS = 8

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _StepTime:
    """One probed step: seconds forward and backward on so many tokens, and seconds of everything after."""

    tokens: int
    backward_s: float
    update_s: float


def probe(session: Session) -> tuple[Session, ProbeReading]:
    """Probe, and a session that is as if nothing had been done.

    Raises:
        TrainingError: a loss that is no number, or weights that did not stay as they were.
    """
    load_s, started_s = session.meter.total_s, session.clock.wall_s()
    trainable = session.forward.loaded.trainable
    before = _fingerprints(trainable)
    zeros = {name: found for name, each in trainable.items() if len(found := _negative_zeros(each))}
    tensor_bytes = _tensor_bytes(session)
    devices = [session.forward.loaded.device] if session.forward.loaded.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        times, driver_bytes = _take_steps(session)
        evaluation_s, sampling_s = _evaluation_s(session), _sampling_s(session)
    session = _undone(session, zeros)
    if _fingerprints(trainable) != before:
        raise TrainingError(
            what="the probe changed weights of the model",
            expected="an optimizer that changes nothing at a learning rate of zero",
            next_step="training.probe=off, and report this with the optimizer's name",
        )
    device = session.forward.loaded.device
    reading = ProbeReading(
        steps=len(times),
        device_kind="gpu" if device.type == "cuda" else "cpu",
        peak_bytes=peak_memory(device)[0],
        reserved_bytes=reserved_memory(device),
        driver_bytes=driver_bytes,
        tensor_bytes=tensor_bytes,
        step_s=_mean_step_s(session, times),
        evaluation_s=evaluation_s,
        sampling_s=sampling_s,
        load_s=load_s,
        probe_s=session.clock.wall_s() - started_s,
        micro_batch_tokens=max(map(session.memory_tokens, fullest_first(session)[0])),
    )
    return session, reading


def fullest_first(session: Session) -> list[Groups]:
    """Micro-batches of the steps to probe: of the step with the fullest one of the run, then of the most usual ones."""
    options = StepOptions.of(session.job.recipe)
    steps = [session.micro_batches(rows) for rows in step_rows(session.dataset.sizes.total_tokens, options=options)]
    fullest = max(steps, key=lambda groups: max(map(session.memory_tokens, groups)))
    mean = session.job.steps.total_tokens / session.steps
    usual = sorted(steps, key=lambda groups: abs(session.total_tokens(tuple(chain.from_iterable(groups))) - mean))
    chosen = [fullest, *(usual * PROBE_STEPS)[: PROBE_STEPS - 1]]
    return [_few(groups, session) for groups in chosen]


def _few(groups: Groups, session: Session) -> Groups:
    """The fullest micro-batch and a few more of its step, in their order."""
    fullest = max(range(len(groups)), key=lambda index: session.memory_tokens(groups[index]))
    kept = sorted({fullest, *range(min(PROBED_MICRO_BATCHES - 1, len(groups)))})
    return tuple(groups[index] for index in kept)


def _take_steps(session: Session) -> tuple[list[_StepTime], int | None]:
    scale, driver_bytes, times = LossScale.of(session.job.recipe), None, []
    for number, groups in enumerate(fullest_first(session)):
        seed_step(session.job.recipe.seed, number)
        found, scale = _take_step(session, groups, scale)
        times.append(found)
        now = driver_memory(session.forward.loaded.device, idle_bytes=session.idle_bytes)
        driver_bytes = now if driver_bytes is None or now is None else max(driver_bytes, now)
    return times, driver_bytes


def _take_step(session: Session, groups: Groups, scale: LossScale) -> tuple[_StepTime, LossScale]:
    """One step that changes nothing but the optimizer's state."""
    rows = tuple(chain.from_iterable(groups))
    trained_tokens = sum(session.dataset.sizes.trained_tokens[row] for row in rows)
    started_s = session.clock.wall_s()
    loss = backward(session, groups, factor=scale.scale / max(1, trained_tokens)) / scale.scale
    done_s = session.clock.wall_s()
    set_learning_rate(session.optimizer, 0.0)
    trainable = session.forward.loaded.trainable.values()
    norm = clip_gradients(trainable, limit=session.job.recipe.clip_norm, unscale=scale.scale)
    check_finite(loss, norm, step=1, overflow_is_normal=scale.dynamic)
    if math.isfinite(norm):
        session.optimizer.step()
    session.optimizer.zero_grad(set_to_none=True)
    _wait(session)
    found = _StepTime(
        tokens=session.total_tokens(rows), backward_s=done_s - started_s, update_s=session.clock.wall_s() - done_s
    )
    session.meter.saw_rate(found.tokens / max(found.backward_s + found.update_s, 1e-9))
    return found, scale.after(overflowed=not math.isfinite(norm))


def _mean_step_s(session: Session, times: Sequence[_StepTime]) -> float:
    """A step of the run's mean size. The first one warmed everything up and is left out."""
    warm = times[1:] or times
    each_s = sum(item.backward_s for item in warm) / max(1, sum(item.tokens for item in warm))
    mean_tokens = session.job.steps.total_tokens / session.steps
    return each_s * mean_tokens + sum(item.update_s for item in warm) / len(warm)


def _evaluation_s(session: Session) -> float | None:
    """All held-out rows once, at the speed of the first full micro-batch of them."""
    rows = session.dataset.evaluation
    if not rows:
        return None
    lengths = [row.total_tokens for row in rows]
    limit = session.job.recipe.micro_batch_tokens
    groups = micro_batches(range(len(rows)), lengths, micro_batch_tokens=limit, layout=session.forward.layout)
    group = groups[len(groups) // 2]
    some = [rows[index] for index in group]
    started_s = session.clock.wall_s()
    evaluate(session.forward, some, micro_batch_tokens=limit, stopped=lambda: False)
    _wait(session)
    each_s = (session.clock.wall_s() - started_s) / sum(row.total_tokens for row in some)
    return each_s * sum(lengths)


def _sampling_s(session: Session) -> float | None:
    """All samples before and after, at the speed of a few tokens of one: answers of half the length that they may have,
    as plans assume (workflows/sampling.py)."""
    if not session.prompts:
        return None
    started_s = session.clock.wall_s()
    answer(session.forward, session.prompts[0], session.tokenizer, new_tokens=_SAMPLED_TOKENS)
    each_s = (session.clock.wall_s() - started_s) / _SAMPLED_TOKENS
    return 2 * len(session.prompts) * (NEW_TOKENS / 2) * each_s


def _undone(session: Session, zeros: Mapping[str, torch.Tensor]) -> Session:
    """The signs of zeros as they were, and an optimizer that has done nothing."""
    with torch.no_grad():
        for name, places in zeros.items():
            session.forward.loaded.trainable[name].view(-1)[places] = -0.0
    # The old state goes before the new one is made: there may not be room for both.
    session.optimizer.state.clear()
    return replace(session, optimizer=build_optimizer(session.forward.loaded, session.job.recipe))


def _negative_zeros(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.detach().view(-1)
    return ((flat == 0) & torch.signbit(flat)).nonzero()[:, 0]


def _fingerprints(trainable: Mapping[str, torch.nn.Parameter]) -> dict[str, int]:
    """Sums over the bits of each tensor, each place weighted: cheap, and a changed bit changes it."""
    return {name: _fingerprint(each.detach()) for name, each in trainable.items()}


def _fingerprint(tensor: torch.Tensor) -> int:
    whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}.get(tensor.element_size(), torch.uint8)
    total = 0
    for index, piece in enumerate(tensor.contiguous().view(whole).view(-1).split(2**22)):
        places = torch.arange(1, len(piece) + 1, dtype=torch.int64, device=piece.device)
        total += (index + 1) * int((piece.to(torch.int64) * places).sum())
    return total


def _tensor_bytes(session: Session) -> int:
    weights = session.forward.loaded.module.parameters()
    return sum(each.numel() * each.element_size() for each in weights) + optimizer_bytes(session.optimizer)


def _wait(session: Session) -> None:
    if session.forward.loaded.device.type == "cuda":
        torch.cuda.synchronize(session.forward.loaded.device)
