"""Figures of a run over its steps and over time: loss, learning rate, speed, money."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scrimp.core.plan import Plan
from scrimp.core.run import RunEvent
from scrimp.core.units import format_count, format_count_of, format_duration, format_usd, usd
from scrimp.ledger.history import RunHistory
from scrimp.report.figure import MAX_POINTS, Axis, Figure, Series, level, thinned, time_unit

_KEYS = ("loss", "learning_rate", "tokens_per_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """Numbers at steps, or means over neighbouring steps where there are very many."""

    x: tuple[float, ...]
    numbers: tuple[Mapping[str, float], ...]
    note: str

    def values(self, key: str) -> tuple[float | None, ...]:
        return tuple(mean.get(key) for mean in self.numbers)


def training_curves(history: RunHistory) -> list[Figure]:
    """Loss, learning rate and speed over the steps; what was never reported is left out."""
    steps = _steps(history.steps)
    found = [
        _loss(history, steps),
        _curve("rate", "Learning rate", steps, key="learning_rate", words=lambda value: f"{value:.3g}"),
        _curve("speed", "Speed", steps, key="tokens_per_s", words=lambda value: f"{format_count(value)} tokens/s"),
    ]
    return [figure for figure in found if figure is not None]


def spending(history: RunHistory, plan: Plan | None) -> Figure | None:
    """What the meter showed over the time under way, against the forecast and the budget."""
    points = thinned(_spent_over_time(history), MAX_POINTS)
    if len(points) < 2:
        return None
    last_s, last_usd = points[-1]
    unit_s, unit = time_unit(last_s)
    summary = f"{format_usd(usd(last_usd))} spent in {format_duration(last_s)} under way"
    series = [Series(label="spent", look="line", values=tuple(amount for _, amount in points))]
    if plan is not None and plan.chosen.money is not None:
        total = plan.chosen.money.total_usd
        series.append(level("forecast", float(total.value), points=len(points)))
        if total.low < total.high:
            series.append(level("forecast, low", float(total.low), points=len(points), look="faint"))
            series.append(level("forecast, high", float(total.high), points=len(points), look="faint"))
        summary += f"; the forecast for the whole job was {format_usd(total.value)}"
    if plan is not None and plan.spec.limits.budget_usd is not None:
        series.append(level("budget", float(plan.spec.limits.budget_usd), points=len(points), look="limit"))
        summary += f"; the budget is {format_usd(plan.spec.limits.budget_usd)}"
    return Figure(
        name="spend",
        title="Money over time",
        summary=f"{summary}.",
        x=tuple(at_s / unit_s for at_s, _ in points),
        x_axis=Axis(label=f"time under way, {unit}", after=f" {unit}"),
        y_axis=Axis(label="USD", before="$"),
        series=tuple(series),
    )


def _steps(events: Sequence[RunEvent]) -> _Steps:
    width = max(1, -(-len(events) // MAX_POINTS))
    buckets = [events[start : start + width] for start in range(0, len(events), width)]
    return _Steps(
        x=tuple(float(bucket[-1].step) for bucket in buckets),
        numbers=tuple(_means(bucket) for bucket in buckets),
        note=f"each point is the mean of {width} steps" if width > 1 else "",
    )


def _means(bucket: Sequence[RunEvent]) -> dict[str, float]:
    means: dict[str, float] = {}
    for key in _KEYS:
        known = [float(value) for event in bucket if isinstance(value := event.values.get(key), int | float)]
        if known:
            means[key] = sum(known) / len(known)
    return means


def _loss(history: RunHistory, steps: _Steps) -> Figure | None:
    trained = dict(zip(steps.x, steps.values("loss"), strict=True))
    held_out = {float(item.step): item.loss for item in history.evaluations if item.loss is not None}
    x = tuple(sorted(trained.keys() | held_out.keys()))
    if not x:
        return None
    series = [Series(label="training loss", look="line", values=tuple(trained.get(step) for step in x))]
    summary = f"Loss over {format_count_of(x[-1], 'step')}"
    if held_out:
        series.append(Series(label="held-out loss", look="marked", values=tuple(held_out.get(step) for step in x)))
        summary += f"; on held-out rows {held_out[min(held_out)]:.3f} at first, {held_out[max(held_out)]:.3f} at last"
    return Figure(
        name="loss",
        title="Loss",
        summary=f"{summary}.",
        x=x,
        x_axis=Axis(label="step"),
        y_axis=Axis(label="loss"),
        series=tuple(series),
        note=steps.note,
    )


def _curve(name: str, title: str, steps: _Steps, *, key: str, words: Callable[[float], str]) -> Figure | None:
    values = steps.values(key)
    known = [value for value in values if value is not None]
    if not known:
        return None
    mean = sum(known) / len(known)
    label = key.replace("_per_", "/").replace("_", " ")
    return Figure(
        name=name,
        title=title,
        summary=f"{title}: {words(mean)} on average, {words(max(known))} at most, {words(known[-1])} at last.",
        x=steps.x,
        x_axis=Axis(label="step"),
        y_axis=Axis(label=label),
        series=(Series(label=label, look="line", values=values),),
        note=steps.note,
    )


def _spent_over_time(history: RunHistory) -> list[tuple[float, float]]:
    """(seconds under way, USD); the time between attempts is left out, as it is in the bill."""
    before_s: dict[int, float] = {}
    started_s: dict[int, float] = {}
    so_far_s = 0.0
    for attempt in history.attempts:
        before_s[attempt.number], started_s[attempt.number] = so_far_s, attempt.started_at_s
        so_far_s += attempt.duration_s
    return [
        (before_s[event.attempt] + event.at_s - started_s[event.attempt], float(str(event.values["spent_usd"])))
        for event in history.steps
        if event.values.get("spent_usd") is not None
    ]
