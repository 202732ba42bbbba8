"""A forecast held against its measurement, and what many of them say about the forecaster."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from statistics import fmean, median


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One forecast against its measurement, in any unit.

    `group` is who votes: rows of one source, model and method repeat each other's error. `region` is a path from the
    general to the particular, `single card, allocated, lora`: its relatives lend it rows where it has few of its own
    (see `conformal`).
    """

    group: str
    label: str
    forecast: float
    low: float
    high: float
    measured: float
    region: str = ""

    @property
    def error(self) -> float:
        """forecast / measured - 1: negative when the forecast was too low."""
        return self.forecast / self.measured - 1

    @property
    def ratio(self) -> float:
        """measured / forecast: what the forecast has to be multiplied with to be right."""
        return self.measured / self.forecast

    @property
    def inside(self) -> bool:
        """Whether the interval held."""
        return self.low <= self.measured <= self.high

    @property
    def log_ratio(self) -> float:
        """Natural logarithm of `ratio`: 0 when right, and twice too high is as far off as half."""
        return log(self.ratio)


def error_figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Count, errors, bias and how often the interval held."""
    errors = [outcome.error for outcome in outcomes]
    groups: dict[str, list[float]] = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.group].append(abs(outcome.error))
    return rounded(
        {
            "rows": len(outcomes),
            "groups": len(groups),
            "mape_of_groups": fmean(fmean(found) for found in groups.values()),
            "mape": fmean(map(abs, errors)),
            "median": median(map(abs, errors)),
            "within_25": share(abs(error) <= 0.25 for error in errors),
            "under": share(error < 0 for error in errors),
            "under_by_10": share(error < -0.10 for error in errors),
            "interval_holds": share(outcome.inside for outcome in outcomes),
        }
    )


def share(flags: Iterable[bool]) -> float:
    """How many of them, 0 to 1."""
    found = list(flags)
    return sum(found) / len(found) if found else 0.0


def rounded(figures: dict[str, float]) -> dict[str, float]:
    """Four digits after the point: what a grade is recorded with."""
    return {name: round(value, 4) for name, value in figures.items()}
