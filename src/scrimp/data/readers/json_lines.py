"""JSON Lines: one object a line."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

from scrimp.core.errors import DataError
from scrimp.data.readers.reader import FormatReader, lines_of

_AROUND = 30


def parse_lines(lines: Iterable[tuple[int, str]], *, label: str) -> Iterator[tuple[int | None, Mapping[str, object]]]:
    """Objects out of numbered lines; blank lines are skipped.

    Raises:
        DataError: a line that is not JSON, or not an object.
    """
    for number, line in lines:
        if not line.strip():
            continue
        try:
            values: object = json.loads(line)
        except ValueError as error:
            raise _broken(line, error, where=f"{label}, line {number}") from error
        if not isinstance(values, dict):
            raise DataError(
                what=f"{label}, line {number} holds a {type(values).__name__}, not an object",
                expected='one JSON object a line, such as {"prompt": "...", "completion": "..."}',
                next_step="if the whole file is one JSON array, name it .json",
            )
        yield number, cast("dict[str, object]", values)


def show_part(text: str, position: int) -> str:
    """The characters around `position`, with >>> before the one that cannot be read."""
    start, end = max(0, position - _AROUND), position + _AROUND
    before = ("..." if start else "") + text[start:position]
    after = text[position:end] + ("..." if end < len(text.rstrip()) else "")
    return f"{before}>>>{after}".replace("\n", "\\n").strip()


def _broken(line: str, error: ValueError, *, where: str) -> DataError:
    reason, part = str(error), line[:_AROUND]
    if isinstance(error, json.JSONDecodeError):
        reason, part = error.msg, show_part(line, error.pos)
        where = f"{where}, column {error.pos + 1}"
    hint = "if the whole file is one JSON array, name it .json" if line.strip() in {"[", "{"} else "repair that line"
    return DataError(
        what=f"{where} is not valid JSON ({reason}): {part}",
        expected="one whole JSON object a line",
        next_step=hint,
    )


class JsonLines(FormatReader):
    """`.jsonl` and `.ndjson`."""

    suffixes = (".jsonl", ".ndjson")
    text = True

    def rows(self, path: Path, *, label: str) -> Iterator[tuple[int | None, Mapping[str, object]]]:
        """See `parse_lines`."""
        return parse_lines(lines_of(path, label=label), label=label)


READER = JsonLines()
