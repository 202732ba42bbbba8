"""A scatter of forecast against measured on logarithmic axes, as a small SVG without any library."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from pathlib import Path

_SIZE, _MARGIN = 420, 56


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One run; `label` is its tooltip."""

    measured: float
    forecast: float
    label: str


def write_chart(path: Path, points: Sequence[Point], *, title: str, unit: str) -> None:
    """Draw the points, the diagonal and lines 25% off it."""
    values = [value for point in points for value in (point.measured, point.forecast)]
    low, high = floor(log10(min(values)) * 2) / 2, ceil(log10(max(values)) * 2) / 2
    parts = [_frame(title, unit, low, high)]
    parts += [_diagonal(ratio, low, high) for ratio in (1.0, 1.25, 0.8)]
    for point in points:
        x, y = _place(log10(point.measured), low, high), _place(log10(point.forecast), low, high)
        error = point.forecast / point.measured - 1
        tip = escape(f"{point.label}: measured {point.measured:.3g}, forecast {point.forecast:.3g} ({error:+.0%})")
        parts.append(
            f'<circle cx="{_MARGIN + x:.1f}" cy="{_MARGIN + _SIZE - y:.1f}" r="3" fill="#1f6f8b" fill-opacity="0.45">'
            f"<title>{tip}</title></circle>"
        )
    side = _SIZE + 2 * _MARGIN
    body = "\n".join(parts)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side} {side}" font-family="sans-serif" '
        f'font-size="12">\n<rect width="{side}" height="{side}" fill="white"/>\n{body}\n</svg>\n',
        encoding="utf-8",
    )


def _place(value: float, low: float, high: float) -> float:
    return (value - low) / (high - low) * _SIZE


def _frame(title: str, unit: str, low: float, high: float) -> str:
    """Box, ticks at 1, 2 and 5 times powers of ten, names of the axes."""
    bottom, right = _MARGIN + _SIZE, _MARGIN + _SIZE
    parts = [
        f'<text x="{_MARGIN}" y="{_MARGIN - 24}" font-size="14">{escape(title)}</text>',
        f'<rect x="{_MARGIN}" y="{_MARGIN}" width="{_SIZE}" height="{_SIZE}" fill="none" stroke="#888"/>',
        f'<text x="{right}" y="{bottom + 40}" text-anchor="end">measured, {escape(unit)}</text>',
        f'<text x="{_MARGIN}" y="{_MARGIN - 8}">forecast, {escape(unit)}</text>',
    ]
    for tick in (digit * 10**power for power in range(floor(low), ceil(high) + 1) for digit in (1, 2, 5)):
        if not low <= log10(tick) <= high:
            continue
        offset = _place(log10(tick), low, high)
        label = f"{tick / 1000:g}k" if tick >= 1000 else f"{tick:g}"
        parts.append(f'<text x="{_MARGIN + offset:.0f}" y="{bottom + 18}" text-anchor="middle">{label}</text>')
        parts.append(f'<text x="{_MARGIN - 6}" y="{bottom - offset + 4:.0f}" text-anchor="end">{label}</text>')
    return "\n".join(parts)


def _diagonal(ratio: float, low: float, high: float) -> str:
    """The line forecast = ratio x measured, clipped to the box."""
    shift = log10(ratio)
    start, end = max(low, low - shift), min(high, high - shift)
    xs = [_MARGIN + _place(value, low, high) for value in (start, end)]
    ys = [_MARGIN + _SIZE - _place(value + shift, low, high) for value in (start, end)]
    dash = "" if ratio == 1.0 else ' stroke-dasharray="4 4"'
    return f'<line x1="{xs[0]:.1f}" y1="{ys[0]:.1f}" x2="{xs[1]:.1f}" y2="{ys[1]:.1f}" stroke="#b33"{dash}/>'
