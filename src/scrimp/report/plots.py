"""Figures of a plan: money against time of all that could have been chosen, and the lengths of the rows."""

from collections.abc import Sequence

from scrimp.core.data import DataProfile
from scrimp.core.plan import PlanPoint
from scrimp.core.units import format_count, format_count_of, format_duration, format_usd
from scrimp.report.figure import Axis, Figure, Look, Series, time_unit

# The front and the chosen plan are always drawn; of the others the cheapest.
MAX_OTHER_PLANS = 400
_BINS = 32
# From this ratio of the largest to the smallest on, an axis is logarithmic.
_LOGARITHMIC_FROM = 20


def money_against_time(alternatives: Sequence[PlanPoint]) -> Figure | None:
    """The plans as points, the chosen one and the front marked; nothing where there was no choice."""
    if len(alternatives) < 2:
        return None
    others = sorted((point for point in alternatives if _look(point) == "other"), key=lambda point: point.cost_usd)
    drawn = [point for point in alternatives if _look(point) != "other"] + others[:MAX_OTHER_PLANS]
    drawn.sort(key=lambda point: (point.duration_s, point.cost_usd))
    unit_s, unit = time_unit(max(point.duration_s for point in drawn))
    times = [point.duration_s / unit_s for point in drawn]
    costs = [float(point.cost_usd) for point in drawn]
    labels: dict[Look, str] = {"other": "other plans", "front": "none is cheaper and faster", "chosen": "chosen"}
    series = [
        Series(
            label=label,
            look=look,
            values=tuple(cost if _look(point) == look else None for point, cost in zip(drawn, costs, strict=True)),
        )
        for look, label in labels.items()
        if any(_look(point) == look for point in drawn)
    ]
    hidden = len(alternatives) - len(drawn)
    return Figure(
        name="plans",
        title="Money against time: what could have been chosen",
        summary=_plans_in_words(alternatives),
        x=tuple(times),
        x_axis=Axis(label=f"time, {unit}", after=f" {unit}", logarithmic=_spreads(times)),
        y_axis=Axis(label="cost, USD", before="$", logarithmic=_spreads(costs)),
        series=tuple(series),
        names=tuple(f"{point.label}, {point.method}, {point.market.replace('_', '-')}" for point in drawn),
        note=f"{hidden} dearer plans are not drawn" if hidden else "",
    )


def row_lengths(profile: DataProfile) -> Figure | None:
    """How many rows have how many tokens."""
    histogram = profile.length_histogram
    if not histogram:
        return None
    width = max(1, -(-profile.longest_row_tokens // _BINS))
    counts = [0] * (profile.longest_row_tokens // width + 1)
    for length_tokens, rows in histogram:
        counts[length_tokens // width] += rows
    return Figure(
        name="lengths",
        title="Lengths of the training rows",
        summary=(
            f"{format_count_of(profile.rows_trained, 'row')}, {format_count(profile.mean_row_tokens)} tokens on "
            "average, "
            f"the longest {format_count(profile.longest_row_tokens)}."
        ),
        x=tuple(float((index + 0.5) * width) for index in range(len(counts))),
        x_axis=Axis(label="tokens of a row"),
        y_axis=Axis(label="rows"),
        series=(Series(label="rows", look="bars", values=tuple(float(count) for count in counts)),),
        note=f"each bar is {width} tokens wide" if width > 1 else "",
    )


def _look(point: PlanPoint) -> Look:
    if point.chosen:
        return "chosen"
    return "front" if point.on_front else "other"


def _spreads(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) / min(values) >= _LOGARITHMIC_FROM


def _plans_in_words(points: Sequence[PlanPoint]) -> str:
    cheapest = min(points, key=lambda point: (point.cost_usd, point.duration_s))
    fastest = min(points, key=lambda point: (point.duration_s, point.cost_usd))
    words = [f"{format_count_of(len(points), 'plan')} met the limits"]
    for name, point in (("cheapest", cheapest), ("fastest", fastest)):
        words.append(f"the {name}, {point.label}: {format_usd(point.cost_usd)}, {format_duration(point.duration_s)}")
    chosen = next((point for point in points if point.chosen), None)
    if chosen is not None:
        words.append(f"chosen, {chosen.label}: {format_usd(chosen.cost_usd)}, {format_duration(chosen.duration_s)}")
    return "; ".join(words) + "."
