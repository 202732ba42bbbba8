"""A forecast is never a bare number: it is a value, an interval and the reason to believe it."""

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Generic, TypeVar

Number = TypeVar("Number", float, Decimal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(Generic[Number]):
    """`value` with an 80% interval `low`..`high` and its `basis` (formula, measurement, table).

    The unit stands in the name of the field that holds the estimate.
    """

    value: Number
    low: Number
    high: Number
    basis: str

    def __post_init__(self) -> None:
        """Refuse an interval that does not hold its own value.

        Raises:
            ValueError: not low <= value <= high, or not a finite number.
        """
        if not self.low <= self.value <= self.high:
            raise ValueError(f"interval {self.low}..{self.high} does not hold {self.value} ({self.basis})")

    def scaled(self, factor: Number) -> "Estimate[Number]":
        """Value and interval times a factor that is known exactly and not negative."""
        return replace(self, value=self.value * factor, low=self.low * factor, high=self.high * factor)

    def plus(self, other: "Estimate[Number]") -> "Estimate[Number]":
        """The sum, with intervals added end to end: errors of one job's parts go together."""
        return Estimate(
            value=self.value + other.value,
            low=self.low + other.low,
            high=self.high + other.high,
            basis=self.basis if self.basis == other.basis else f"{self.basis}; {other.basis}",
        )

    def holds(self, measured: Number) -> bool:
        """Whether a later measurement fell inside the interval."""
        return self.low <= measured <= self.high


def exact(value: Number, *, basis: str) -> Estimate[Number]:
    """An estimate without doubt: a count, a list price."""
    return Estimate(value=value, low=value, high=value, basis=basis)


def within(value: float, *, low_ratio: float, high_ratio: float, basis: str) -> Estimate[float]:
    """`value` with an interval given as ratios of it, as fitted errors usually are."""
    return Estimate(value=value, low=value * low_ratio, high=value * high_ratio, basis=basis)
