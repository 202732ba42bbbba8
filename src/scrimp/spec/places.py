"""Where something in a spec was written, what is wrong with it, and the error that says so."""

from collections.abc import Sequence
from dataclasses import dataclass

from scrimp.core.errors import SpecError

_EXCERPT_CHARS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A spot in a file (`line` and `column` count from 1, `text` is that line), or an override, which has no lines."""

    source: str
    line: int | None = None
    column: int | None = None
    text: str = ""

    def __str__(self) -> str:
        """`job.yaml:7:3`, or the source alone; editors and terminals make the first form a link."""
        return ":".join(str(part) for part in (self.source, self.line, self.column) if part is not None)

    @property
    def excerpt(self) -> str:
        """The line with its number and a mark under the column; empty for an override."""
        if self.line is None or not self.text.strip():
            return ""
        index = (self.column or 1) - 1
        # Of a very long line the part around the column; a tab before the column keeps its width under the mark.
        start = max(0, index - _EXCERPT_CHARS // 2) if len(self.text) > _EXCERPT_CHARS else 0
        text = self.text[start : start + _EXCERPT_CHARS]
        before = "".join("\t" if char == "\t" else " " for char in self.text[start:index])
        gutter = f"{self.line:>5}"
        return f"\n{gutter} | {text}\n{' ' * len(gutter)} | {before}^"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One thing that is wrong: where, what happened, what was expected, a correct line."""

    place: Place
    what: str
    expected: str
    example: str


def spec_error(mistakes: Sequence[Mistake]) -> SpecError:
    """All mistakes as one error: a single one in the usual three parts, several as a list of such."""
    if len(mistakes) == 1:
        only = mistakes[0]
        return SpecError(
            what=f"{only.place}: {only.what}{only.place.excerpt}",
            expected=only.expected,
            next_step=f"write, for example:  {only.example}",
        )
    blocks = [
        f"{item.place}: {item.what}{item.place.excerpt}\n  expected: {item.expected}\n  example:  {item.example}"
        for item in sorted(mistakes, key=_order)
    ]
    return SpecError(
        what=f"{len(mistakes)} mistakes in the spec\n\n" + "\n\n".join(blocks) + "\n",
        expected="each as its example shows",
        next_step="correct them all, then run the same command again",
    )


def _order(mistake: Mistake) -> tuple[bool, str, int, int]:
    """Files before overrides, each from top to bottom."""
    place = mistake.place
    return place.line is None, place.source, place.line or 0, place.column or 0
