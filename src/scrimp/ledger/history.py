"""A run's events, folded: attempts with their signs of life, evaluations, samples, what was measured."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import reduce

from scrimp.core.energy import EnergyReading, reading_from
from scrimp.core.run import EventKind, EventValue, RunEvent, RunState
from scrimp.core.units import usd

_ENDINGS: Mapping[EventKind, RunState] = {
    "interrupted": "interrupted",
    "stopped_at_cap": "stopped_at_cap",
    "finished": "finished",
    "failed": "failed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One process that worked on the run. `ending` is its last word; a killed one has none. `energy` is what its meters
    said last.

    `started_at_s` and `last_at_s` (its last sign of life) are Unix time; `price_usd_per_hour` is what the
    process itself was told, None when it was told nothing.
    """

    number: int
    started_at_s: float
    last_at_s: float
    first_step: int
    last_step: int
    price_usd_per_hour: Decimal | None = None
    host: str = ""
    device: str = ""
    pid: int | None = None
    ending: EventKind | None = None
    energy: EnergyReading | None = None

    @property
    def duration_s(self) -> float:
        """From its first to its last sign of life."""
        return max(0.0, self.last_at_s - self.started_at_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A loss on held-out rows; None where it was no number."""

    step: int
    when: str
    loss: float | None
    perplexity: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One prompt with the model's answer before and after; None where it was not asked (yet)."""

    prompt: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHistory:
    """All that the events of one run say. Steps that were repeated after a resume appear once, as last taken.

    `started`, `loaded`, `probed` and `finished` are the values of the newest event of that kind.
    """

    attempts: tuple[Attempt, ...] = ()
    steps: tuple[RunEvent, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    samples: tuple[Sample, ...] = ()
    checkpoints: tuple[RunEvent, ...] = ()
    started: Mapping[str, EventValue] = field(default_factory=dict[str, EventValue])
    loaded: Mapping[str, EventValue] = field(default_factory=dict[str, EventValue])
    finished: Mapping[str, EventValue] = field(default_factory=dict[str, EventValue])
    probed: Mapping[str, EventValue] = field(default_factory=dict[str, EventValue])
    replanned: tuple[RunEvent, ...] = ()
    failure: str | None = None
    peak_bytes: float | None = None
    peak_kind: str = ""

    @property
    def steps_done(self) -> int:
        """The last step that was taken: what a resume would at most continue from."""
        return self.steps[-1].step if self.steps else 0

    @property
    def ended_at(self) -> datetime | None:
        """The last sign of life of the last attempt."""
        return datetime.fromtimestamp(self.attempts[-1].last_at_s, UTC) if self.attempts else None

    @property
    def total_s(self) -> float:
        """Time under way, over all attempts; the time between them is not in it."""
        return sum(attempt.duration_s for attempt in self.attempts)

    @property
    def energy(self) -> EnergyReading | None:
        """What all attempts together used; None unless every one of them was measured, and of the same things."""
        found = [attempt.energy for attempt in self.attempts]
        known = [reading for reading in found if reading is not None]
        if not known or len(known) < len(found) or len({reading.scope for reading in known}) > 1:
            return None
        return reduce(lambda total, reading: total.plus(reading), known)

    @property
    def energy_kwh(self) -> float | None:
        """What a meter of the whole machine says; None where only parts of it were measured."""
        energy = self.energy
        return None if energy is None else energy.machine_kwh

    @property
    def train_s(self) -> float:
        """Time in optimizer steps, those included that had to be repeated only once."""
        return sum(_number(event.values.get("step_s")) or 0.0 for event in self.steps)

    @property
    def loss_before(self) -> float | None:
        """Held-out loss before training."""
        return next((item.loss for item in self.evaluations if item.when == "before"), None)

    @property
    def loss_after(self) -> float | None:
        """Held-out loss after training; None while it has not ended."""
        return next((item.loss for item in reversed(self.evaluations) if item.when == "after"), None)

    @property
    def spent_usd(self) -> Decimal | None:
        """What the run's own meter says, for a run whose attempt is still open; entries are what counts."""
        for event in reversed(self.steps):
            if event.values.get("spent_usd") is not None:
                return usd(str(event.values["spent_usd"]))
        return None

    def state(self, *, process_ended: bool) -> RunState:
        """How the run stands. A process that ended without a word was killed: interrupted, and can be resumed."""
        if not self.attempts:
            return "failed" if process_ended else "running"
        ending = self.attempts[-1].ending
        if ending is not None:
            return _ENDINGS[ending]
        return "interrupted" if process_ended else "running"


def history_of(events: Iterable[RunEvent]) -> RunHistory:
    """Fold events, in the order they were written."""
    attempts: dict[int, Attempt] = {}
    steps: dict[int, RunEvent] = {}
    evaluations: dict[tuple[str, int], Evaluation] = {}
    samples: dict[str, Sample] = {}
    checkpoints: list[RunEvent] = []
    history = RunHistory()
    for event in events:
        attempts[event.attempt] = _with_event(attempts.get(event.attempt), event)
        if event.kind == "resumed":
            # What a killed attempt did past its last checkpoint is done again.
            from_step = int(_number(event.values.get("from_step")) or 0)
            steps = {step: kept for step, kept in steps.items() if step <= from_step}
        elif event.kind == "step":
            # A run that found no whole checkpoint starts over without a word: what it had done is done again.
            steps = steps if event.step not in steps else {s: kept for s, kept in steps.items() if s < event.step}
            steps[event.step] = event
        elif event.kind == "evaluated":
            found = _evaluation(event)
            evaluations[found.when, found.step] = found
        elif event.kind == "sampled":
            prompt = str(event.values.get("prompt", ""))
            samples[prompt] = _with_answer(samples.get(prompt), event)
        elif event.kind == "checkpointed":
            checkpoints.append(event)
        else:
            history = _with_outcome(history, event)
    return replace(
        history,
        attempts=tuple(attempts[number] for number in sorted(attempts)),
        steps=tuple(steps[step] for step in sorted(steps)),
        evaluations=tuple(evaluations.values()),
        samples=tuple(samples.values()),
        checkpoints=tuple(checkpoints),
    )


def _with_event(attempt: Attempt | None, event: RunEvent) -> Attempt:
    if attempt is None:
        attempt = Attempt(
            number=event.attempt,
            started_at_s=event.at_s,
            last_at_s=event.at_s,
            first_step=event.step,
            last_step=event.step,
        )
    if event.kind == "started":
        price, pid = event.values.get("price_usd_per_hour"), event.values.get("pid")
        attempt = replace(
            attempt,
            price_usd_per_hour=usd(str(price)) if price is not None else None,
            host=str(event.values.get("host") or ""),
            device=str(event.values.get("device") or ""),
            pid=pid if isinstance(pid, int) else None,
        )
    if event.kind == "resumed":
        attempt = replace(attempt, first_step=event.step)
    reading = reading_from(event.values) if event.kind in ("step", "measured") else None
    return replace(
        attempt,
        energy=attempt.energy if reading is None else reading,
        # A clock that was set back must not shorten what was already seen.
        last_at_s=max(attempt.last_at_s, event.at_s),
        last_step=event.step,
        ending=event.kind if event.kind in _ENDINGS else attempt.ending,
    )


def _evaluation(event: RunEvent) -> Evaluation:
    return Evaluation(
        step=event.step,
        when=str(event.values.get("when", "during")),
        loss=_number(event.values.get("loss")),
        perplexity=_number(event.values.get("perplexity")),
    )


def _with_answer(sample: Sample | None, event: RunEvent) -> Sample:
    answer = str(event.values.get("answer", ""))
    sample = sample or Sample(prompt=str(event.values.get("prompt", "")), before=None, after=None)
    return replace(sample, before=answer) if event.values.get("when") == "before" else replace(sample, after=answer)


def _with_outcome(history: RunHistory, event: RunEvent) -> RunHistory:
    if event.kind == "started":
        return replace(history, started=event.values)
    if event.kind == "loaded":
        return replace(history, loaded=event.values)
    if event.kind == "probed":
        return replace(history, probed=event.values)
    if event.kind == "replanned":
        # What was probed was another recipe.
        return replace(history, probed={}, replanned=(*history.replanned, event))
    if event.kind == "finished":
        return replace(history, finished=event.values)
    if event.kind == "failed":
        return replace(history, failure=str(event.values.get("error", "")))
    if event.kind == "measured":
        return _with_measurement(history, event)
    return history


def _with_measurement(history: RunHistory, event: RunEvent) -> RunHistory:
    """The highest peak of all attempts."""
    peak = _number(event.values.get("peak_bytes"))
    if peak is not None and peak > (history.peak_bytes or 0):
        history = replace(history, peak_bytes=peak, peak_kind=str(event.values.get("peak_kind", "")))
    return history


def _number(value: EventValue) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
