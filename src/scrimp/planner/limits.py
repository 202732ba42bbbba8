"""Limits: budget and deadline as constraints, and how likely a plan that meets them breaks them after all."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from scrimp.core.estimate import Estimate
from scrimp.core.job import LimitsSpec
from scrimp.core.plan import Candidate, Rejected
from scrimp.core.units import format_duration, format_usd
from scrimp.planner.order import cost_usd, duration_s, tie_break
from scrimp.planner.question import machine_of

# An interval of a forecast covers 80%: its ends are 1.2816 standard deviations from the middle of a normal.
_Z_OF_80_PERCENT = 1.2816


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Candidates that meet the limits, those that do not, and the classes of the latter."""

    within: tuple[Candidate, ...]
    beyond: tuple[Candidate, ...]
    rejected: tuple[Rejected, ...]


def judge(candidates: Iterable[Candidate], limits: LimitsSpec) -> Judged:
    """Split by the values (not the high ends) of cost and time."""
    within: list[Candidate] = []
    over: list[Candidate] = []
    late: list[Candidate] = []
    for candidate in candidates:
        if limits.budget_usd is not None and cost_usd(candidate) > limits.budget_usd:
            over.append(candidate)
        elif limits.deadline_s is not None and duration_s(candidate) > limits.deadline_s:
            late.append(candidate)
        else:
            within.append(candidate)
    return Judged(
        within=tuple(within),
        beyond=(*over, *late),
        rejected=(*_over_budget(over, limits), *_past_deadline(late, limits)),
    )


def chance_over(forecast: Estimate[float] | Estimate[Decimal], limit: float | Decimal) -> float:
    """Probability that the outcome is above `limit`, by a lognormal on each side of the value.

    The value is taken as the median and the 80% interval as the 10th and 90th percentile.
    """
    value, limit = float(forecast.value), float(limit)
    end = float(forecast.high if limit >= value else forecast.low)
    if limit <= 0 or value <= 0:
        return float(value > limit)
    if end <= 0 or end == value:
        return float(value > limit)
    spread = abs(math.log(end / value)) / _Z_OF_80_PERCENT
    return 0.5 * math.erfc(math.log(limit / value) / spread / math.sqrt(2))


def _over_budget(over: Sequence[Candidate], limits: LimitsSpec) -> tuple[Rejected, ...]:
    return tuple(
        Rejected(kind="over_budget", subject=subject, reason=_broken(best, limits), offers=count)
        for subject, best, count in _classes(over, lambda c: (cost_usd(c), tie_break(c)))
    )


def _past_deadline(late: Sequence[Candidate], limits: LimitsSpec) -> tuple[Rejected, ...]:
    return tuple(
        Rejected(kind="past_deadline", subject=subject, reason=_broken(best, limits), offers=count)
        for subject, best, count in _classes(late, lambda c: (duration_s(c), tie_break(c)))
    )


def _broken(best: Candidate, limits: LimitsSpec) -> str:
    """`$0.11 at best, $0.01 over the budget of $0.10; 11.9 min, 5.9 min past the deadline of 6.0 min`."""
    cost, time = cost_usd(best), duration_s(best)
    parts: list[str] = []
    if limits.budget_usd is not None and cost > limits.budget_usd:
        excess, limit = format_usd(cost - limits.budget_usd), format_usd(limits.budget_usd)
        parts.append(f"{format_usd(cost)} at best, {excess} over the budget of {limit}")
    if limits.deadline_s is not None and time > limits.deadline_s:
        excess, limit = format_duration(time - limits.deadline_s), format_duration(limits.deadline_s)
        at_best = "" if parts else " at best"
        parts.append(f"{format_duration(time)}{at_best}, {excess} past the deadline of {limit}")
    return "; ".join(parts)


def _classes(candidates: Iterable[Candidate], badness: Callable[[Candidate], Any]) -> list[tuple[str, Candidate, int]]:
    """By machine and method: the words for the class, its least bad member, how many there are."""
    classes: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        subject = f"{machine_of(candidate).label}, {candidate.recipe.method.name}"
        classes.setdefault(subject, []).append(candidate)
    found = [(subject, min(members, key=badness), len(members)) for subject, members in classes.items()]
    return sorted(found, key=lambda item: (badness(item[1]), item[0]))
