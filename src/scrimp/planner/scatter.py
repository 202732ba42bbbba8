"""Money against time as text: a plot that fits a terminal, a log file and an issue."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ON_FRONT, OFF_FRONT = "●", "·"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One plan. `x` and `y` are above zero; `marked` points are drawn over the others."""

    x: float
    y: float
    marked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Size in characters, and the words at the ends of both axes."""

    width: int
    height: int
    x_low: str
    x_high: str
    y_low: str
    y_high: str


def scatter(points: Sequence[Point], frame: Frame) -> tuple[str, ...]:
    """Both axes are logarithmic: plans differ by factors. At most `frame.width` characters wide."""
    margin = max(len(frame.y_low), len(frame.y_high))
    columns = max(1, frame.width - margin - 2)
    x_span, y_span = _log_span(point.x for point in points), _log_span(point.y for point in points)
    grid = [[" "] * columns for _ in range(frame.height)]
    for point in sorted(points, key=lambda point: point.marked):
        column = round(_share(point.x, x_span) * (columns - 1))
        row = frame.height - 1 - round(_share(point.y, y_span) * (frame.height - 1))
        grid[row][column] = ON_FRONT if point.marked else OFF_FRONT
    lines: list[str] = []
    for index, cells in enumerate(grid):
        label = frame.y_high if index == 0 else frame.y_low if index == frame.height - 1 else ""
        lines.append(f"{label:>{margin}} {'┤' if label else '│'}{''.join(cells)}".rstrip())
    lines.append(f"{'':>{margin}} └{'─' * columns}")
    gap = columns - len(frame.x_low) - len(frame.x_high)
    lines.append(f"{'':>{margin}}  {frame.x_low}{' ' * max(1, gap)}{frame.x_high}")
    return tuple(lines)


def _log_span(values: Iterable[float]) -> tuple[float, float]:
    logs = [math.log(value) for value in values]
    return min(logs), max(logs)


def _share(value: float, span: tuple[float, float]) -> float:
    """Where a value lies between the ends, 0 to 1; in the middle when the ends are one."""
    low, high = span
    return 0.5 if high == low else (math.log(value) - low) / (high - low)
