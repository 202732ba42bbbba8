"""Intervals from errors alone: the ratios measured / forecast between which 80% of runs not yet seen will fall.

No shape of the errors is assumed. A group (one source, model and method) has one vote, spread over its rows, because
rows of a group repeat each other's error; the run to come is a group that was not seen, and its vote counts as an
error beyond every other. With n groups the interval therefore reaches from the (n+1) x 10% smallest to the (n+1) x 90%
largest vote and holds with at least 80% chance when groups are exchangeable.
Source: Lee, Barber and Willett, "Distribution-free inference with hierarchical data", arXiv:2306.06342, theorem 1 (a
row of a new group), equal tails.

Nine groups are the fewest with a finite interval, and at that their whole range. A region with fewer than `ENOUGH`
groups borrows the missing votes from its nearest relatives: from the rest of its parent, then of its grandparent, to
the whole. What is borrowed is shared equally among the relatives of one degree, so that a region's own groups always
weigh the most.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp

from scrimp.calibrate.outcome import Outcome

LEVEL = 0.80
# From so many groups on a region speaks for itself: the fewest at which the interval leaves a group out at either end.
# Fewer gave wider intervals on published rows and no better coverage by region; more borrowed so much that regions
# unlike their relatives fell below 80%.
ENOUGH = 19
WHOLE = ""
_SEPARATOR = ", "


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioInterval:
    """Measured / forecast in one region: the middle, and the ends of the 80% interval.

    `rows` and `groups` are the region's own, `borrowed` the share of the votes that came from its relatives. `median`
    is the value's bias: a forecast times `median` is too high as often as too low.
    """

    low: float
    high: float
    median: float
    rows: int
    groups: int
    region: str
    borrowed: float = 0.0


@dataclass(frozen=True, slots=True)
class _Vote:
    """One row's part of its group's vote."""

    log_ratio: float
    weight: float


def parent(region: str) -> str:
    """The next more general region; the whole is its own parent."""
    return region.rpartition(_SEPARATOR)[0]


@cache
def lineage(region: str) -> tuple[str, ...]:
    """The region, its parent, and so on to the whole."""
    found = [region]
    while found[-1] != WHOLE:
        found.append(parent(found[-1]))
    return tuple(found)


def ratio_interval(
    outcomes: Sequence[Outcome], region: str = WHOLE, *, level: float = LEVEL, enough: int = ENOUGH
) -> RatioInterval:
    """The interval of one region. With too few groups for a finite one it reaches from the lowest to the highest.

    Raises:
        ValueError: there is no outcome, or `level` is not between 0 and 1.
    """
    if not outcomes:
        raise ValueError("an interval needs at least one outcome")
    if not 0 < level < 1:
        raise ValueError(f"the level of an interval lies between 0 and 1, not at {level}")
    degrees = _by_degree(outcomes, region)
    votes: list[_Vote] = []
    cast = 0.0
    for relatives in degrees:
        share = min(1.0, (enough - cast) / len(relatives)) if cast else 1.0
        if share <= 0:
            break
        votes += [_Vote(ratio, share / len(ratios)) for ratios in relatives.values() for ratio in ratios]
        cast += share * len(relatives)
    own = [outcome for outcome in outcomes if _within(outcome.region, region)]
    own_groups = len({outcome.group for outcome in own})
    tail = (cast + 1) * (1 + level) / 2
    return RatioInterval(
        low=exp(-_reaching([_Vote(-vote.log_ratio, vote.weight) for vote in votes], tail)),
        high=exp(_reaching(votes, tail)),
        median=exp(_middle(votes)),
        rows=len(own),
        groups=own_groups,
        region=region,
        borrowed=max(0.0, 1 - own_groups / cast),
    )


def region_intervals(
    outcomes: Sequence[Outcome], *, level: float = LEVEL, enough: int = ENOUGH
) -> dict[str, RatioInterval]:
    """The intervals of every region that occurs and of all its ancestors, the whole (`""`) among them.

    Raises:
        ValueError: see `ratio_interval`.
    """
    regions = {ancestor for outcome in outcomes for ancestor in lineage(outcome.region)}
    return {region: ratio_interval(outcomes, region, level=level, enough=enough) for region in sorted(regions)}


def median_ratio(outcomes: Sequence[Outcome]) -> float:
    """The middle of measured / forecast with one vote a group.

    Raises:
        ValueError: there is no outcome.
    """
    return ratio_interval(outcomes, enough=0).median


def _within(region: str, ancestor: str) -> bool:
    return ancestor in lineage(region)


def _by_degree(outcomes: Iterable[Outcome], region: str) -> list[dict[str, list[float]]]:
    """Log ratios by group: the region's own, then what its parent has besides, then its grandparent.

    A group votes where it is nearest, and there alone.
    """
    ancestors = lineage(region)
    degrees: list[dict[str, list[float]]] = [defaultdict(list) for _ in ancestors]
    for outcome in outcomes:
        degree = next(n for n, ancestor in enumerate(ancestors) if _within(outcome.region, ancestor))
        degrees[degree][outcome.group].append(outcome.log_ratio)
    nearer: set[str] = set()
    found: list[dict[str, list[float]]] = []
    for relatives in degrees:
        found.append({group: ratios for group, ratios in relatives.items() if group not in nearer})
        nearer |= relatives.keys()
    return [relatives for relatives in found if relatives]


def _reaching(votes: Sequence[_Vote], tail: float) -> float:
    """The smallest log ratio with at least `tail` votes at or below it; the largest of all where there are too few."""
    ordered = sorted(votes, key=lambda vote: vote.log_ratio)
    below = 0.0
    for vote in ordered:
        below += vote.weight
        # Weights are fractions: their sum may miss a whole number by rounding.
        if below >= tail - 1e-9:
            return vote.log_ratio
    return ordered[-1].log_ratio


def _middle(votes: Sequence[_Vote]) -> float:
    """The weighted median: the mean of the lower and the upper one."""
    half = sum(vote.weight for vote in votes) / 2
    lower = _reaching(votes, half)
    upper = -_reaching([_Vote(-vote.log_ratio, vote.weight) for vote in votes], half)
    return (lower + upper) / 2
