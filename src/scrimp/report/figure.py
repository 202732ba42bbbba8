"""A figure as data: what is drawn, in which unit, and the same again in words and as a table.

A browser draws it (assets/figures.js). Values are scaled before they come here, so that a figure carries its unit in
its labels and the browser only prints numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from scrimp.core.units import HOUR_S, MINUTE_S

T = TypeVar("T")

Look = Literal["line", "marked", "dashed", "faint", "limit", "other", "front", "chosen", "bars"]
# More points than pixels help nobody; longer series are thinned out or averaged.
MAX_POINTS = 600
MAX_TABLE_ROWS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line, or one kind of point; None where it has no value."""

    label: str
    look: Look
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """`before` and `after` stand around every number: `$`, ` min`."""

    label: str
    before: str = ""
    after: str = ""
    logarithmic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Series over common x values, ascending.

    `summary` says in a sentence what the figure shows, `names` what single points are, `note` how values were made.
    """

    name: str
    title: str
    summary: str
    x: tuple[float, ...]
    x_axis: Axis
    y_axis: Axis
    series: tuple[Series, ...]
    names: tuple[str, ...] = ()
    note: str = ""

    @property
    def headings(self) -> tuple[str, ...]:
        """Of the figure's numbers as a table."""
        return (*(["what"] if self.names else []), self.x_axis.label, *(item.label for item in self.series))

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The figure's numbers, evenly thinned out."""
        return [self._row(index) for index in thinned(range(len(self.x)), MAX_TABLE_ROWS)]

    def _row(self, index: int) -> tuple[str, ...]:
        named = [self.names[index]] if self.names else []
        numbers = [_in_words(item.values[index], self.y_axis) for item in self.series]
        return (*named, _in_words(self.x[index], self.x_axis), *numbers)


def level(label: str, value: float, *, points: int, look: Look = "dashed") -> Series:
    """A horizontal line."""
    return Series(label=label, look=look, values=(value,) * points)


def time_unit(longest_s: float) -> tuple[float, str]:
    """(seconds in it, its name) of the unit that times up to this long are read in."""
    if longest_s <= 2 * MINUTE_S:
        return 1.0, "s"
    return (MINUTE_S, "min") if longest_s <= 2 * HOUR_S else (HOUR_S, "h")


def thinned(items: Sequence[T], at_most: int) -> list[T]:
    """At most so many of them, evenly spread, the first and the last among them."""
    if len(items) <= at_most:
        return list(items)
    step = (len(items) - 1) / (at_most - 1)
    return [items[round(position * step)] for position in range(at_most)]


def _in_words(value: float | None, axis: Axis) -> str:
    return "" if value is None else f"{axis.before}{value:,.4g}{axis.after}"
