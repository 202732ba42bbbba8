"""Judging a fit by what it has not seen: whole groups are left out, never single rows of one.

Rows of a group share their source, model and method and therefore their error: a fit that saw one of them knows the
others, and an interval made from one of them holds the others too easily.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TypeVar

from scrimp.calibrate.conformal import ENOUGH, LEVEL, RatioInterval, lineage, ratio_interval
from scrimp.calibrate.outcome import Outcome, share

Row = TypeVar("Row")
FOLDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How often the interval made from the other groups held, in one region.

    `by_row` counts every row alike, `by_group` every group alike: the promise of 80% is about the second.
    `width` is the mean of high / low over the rows: an interval that holds because it says nothing is wide.
    """

    region: str
    rows: int
    groups: int
    by_row: float
    by_group: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """A row beside the interval that the other groups gave its forecast."""

    outcome: Outcome
    interval: RatioInterval

    @property
    def inside(self) -> bool:
        """Whether the interval held."""
        return self.interval.low <= self.outcome.ratio <= self.interval.high

    @property
    def with_interval(self) -> Outcome:
        """The outcome with that interval in place of what the forecaster says."""
        forecast = self.outcome.forecast
        return replace(self.outcome, low=forecast * self.interval.low, high=forecast * self.interval.high)


def fold_of(groups: Iterable[str], *, folds: int = FOLDS) -> dict[str, int]:
    """The fold of every group, folds alike in rows. The same rows always give the same folds.

    `groups` names the group of every row, so that a large one counts for what it is.

    Raises:
        ValueError: less than two folds.
    """
    if folds < 2:
        raise ValueError(f"cross-validation needs at least two folds, not {folds}")
    sizes = Counter(groups)
    loads = [0] * folds
    found: dict[str, int] = {}
    for group in sorted(sizes, key=lambda name: (-sizes[name], name)):
        found[group] = loads.index(min(loads))
        loads[found[group]] += sizes[group]
    return found


def cross_validate(
    rows: Sequence[Row],
    *,
    group_of: Callable[[Row], str],
    fit: Callable[[Sequence[Row]], Callable[[Row], Outcome]],
    folds: int = FOLDS,
) -> list[Outcome]:
    """The outcome of every row under a fit that saw no row of its group, in the order of `rows`.

    Raises:
        ValueError: less than two groups or folds.
    """
    fold = fold_of((group_of(row) for row in rows), folds=folds)
    if len(fold) < 2:
        raise ValueError("cross-validation by group needs at least two groups")
    predictors = {
        left_out: fit([row for row in rows if fold[group_of(row)] != left_out]) for left_out in sorted({*fold.values()})
    }
    return [predictors[fold[group_of(row)]](row) for row in rows]


def unseen(outcomes: Sequence[Outcome], *, level: float = LEVEL, enough: int = ENOUGH) -> list[Unseen]:
    """Every outcome beside the interval that all other groups give its region, in the order given.

    Raises:
        ValueError: less than two groups.
    """
    groups: Mapping[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.group].append(outcome)
    if len(groups) < 2:
        raise ValueError("intervals from the other groups need at least two groups")
    intervals: dict[tuple[str, str], RatioInterval] = {}
    for group, left_out in groups.items():
        others = [outcome for outcome in outcomes if outcome.group != group]
        for region in {outcome.region for outcome in left_out}:
            intervals[group, region] = ratio_interval(others, region, level=level, enough=enough)
    return [Unseen(outcome=outcome, interval=intervals[outcome.group, outcome.region]) for outcome in outcomes]


def cross_coverage(outcomes: Sequence[Outcome], *, level: float = LEVEL, enough: int = ENOUGH) -> dict[str, Coverage]:
    """How often intervals hold rows that they were not made from: see `coverage`.

    Raises:
        ValueError: less than two groups.
    """
    return coverage(one.with_interval for one in unseen(outcomes, level=level, enough=enough))


def coverage(outcomes: Iterable[Outcome]) -> dict[str, Coverage]:
    """How often the outcomes' own intervals held: by region, ancestors and the whole (`""`) included."""
    by_region: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        for region in lineage(outcome.region):
            by_region[region].append(outcome)
    return {region: _coverage(region, by_region[region]) for region in sorted(by_region)}


def with_unseen_intervals(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes, in the same order, with `low` and `high` from the other groups' errors.

    Raises:
        ValueError: less than two groups.
    """
    return [held.with_interval for held in unseen(outcomes)]


def _coverage(region: str, outcomes: Sequence[Outcome]) -> Coverage:
    groups: dict[str, list[bool]] = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.group].append(outcome.inside)
    return Coverage(
        region=region,
        rows=len(outcomes),
        groups=len(groups),
        by_row=share(outcome.inside for outcome in outcomes),
        by_group=fmean(share(flags) for flags in groups.values()),
        width=fmean(outcome.high / outcome.low for outcome in outcomes),
    )
