"""How often the 80% intervals held, a bar a region, as a small SVG without any library."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import comb
from pathlib import Path

_LEFT, _WIDTH, _RIGHT = 350, 340, 120
_ROW, _TOP, _BOTTOM = 20, 58, 34
_PROMISE = 0.80
_GOOD, _SHORT, _GREY = "#1f6f8b", "#b3541e", "#999"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One region: how many groups were held out in turn, and the share of them that the interval held."""

    name: str
    groups: int
    held: float


def write_coverage_chart(path: Path, bars: Sequence[Bar], *, title: str) -> None:
    """Bars, the promised 80% as a line, and in grey where a true 80% shows itself 9 times in 10 with so few groups."""
    height = _TOP + _ROW * len(bars) + _BOTTOM
    bottom = _TOP + _ROW * len(bars)
    parts = [
        f'<text x="16" y="24" font-size="14">{escape(title)}</text>',
        '<text x="16" y="42" fill="#555">one vote a group; grey: where a true 80% falls 9 times in 10</text>',
        *(_tick(share, bottom) for share in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        *(part for index, bar in enumerate(bars) for part in _row(bar, _TOP + _ROW * index)),
        f'<line x1="{_x(_PROMISE)}" y1="{_TOP - 6}" x2="{_x(_PROMISE)}" y2="{bottom + 4}" stroke="#b33"/>',
    ]
    body = "\n".join(parts)
    width = _LEFT + _WIDTH + _RIGHT
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="12">\n<rect width="{width}" height="{height}" fill="white"/>\n{body}\n</svg>\n',
        encoding="utf-8",
    )


def expected_range(groups: int, *, share: float = _PROMISE, chance: float = 0.90) -> tuple[float, float]:
    """Between which shares a true `share` shows itself with that chance, by whole groups: binomial, equal tails."""
    tail = (1 - chance) / 2
    chances = [comb(groups, hits) * share**hits * (1 - share) ** (groups - hits) for hits in range(groups + 1)]
    below = 0.0
    low = high = groups
    for hits, one in enumerate(chances):
        if below <= tail < below + one:
            low = hits
        if below < 1 - tail <= below + one:
            high = hits
            break
        below += one
    return low / groups, high / groups


def _row(bar: Bar, top: float) -> list[str]:
    low, high = expected_range(bar.groups)
    middle = top + _ROW / 2
    fill = _GOOD if bar.held >= low else _SHORT
    few = f"{bar.groups} group{'' if bar.groups == 1 else 's'}"
    return [
        _block(low, high, top=top + 1, height=_ROW - 2, fill="#e6e6e6"),
        _block(0.0, bar.held, top=top + 5, height=_ROW - 10, fill=fill),
        f'<text x="{_LEFT - 8}" y="{middle + 4}" text-anchor="end">{escape(bar.name)}</text>',
        f'<text x="{_LEFT + _WIDTH + 8}" y="{middle + 4}" fill="#555">{bar.held:.0%}, {few}</text>',
    ]


def _block(start: float, end: float, *, top: float, height: float, fill: str) -> str:
    """A rectangle from one share to another."""
    width = (end - start) * _WIDTH
    return f'<rect x="{_x(start):.1f}" y="{top}" width="{width:.1f}" height="{height}" fill="{fill}"/>'


def _tick(share: float, bottom: float) -> str:
    return (
        f'<line x1="{_x(share)}" y1="{_TOP}" x2="{_x(share)}" y2="{bottom}" stroke="#ddd"/>'
        f'<text x="{_x(share)}" y="{bottom + 18}" text-anchor="middle" fill="{_GREY}">{share:.0%}</text>'
    )


def _x(share: float) -> float:
    return _LEFT + share * _WIDTH
