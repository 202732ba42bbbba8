"""A JSON document: an array of objects, or {"data": [...]}; JSON Lines under this name is read as such."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from scrimp.core.errors import DataError
from scrimp.data.readers.json_lines import parse_lines, show_part
from scrimp.data.readers.reader import FormatReader, lines_of


class JsonDocument(FormatReader):
    """`.json`."""

    suffixes = (".json",)
    text = True

    def rows(self, path: Path, *, label: str) -> Iterator[tuple[int | None, Mapping[str, object]]]:
        """Rows of the array; a document is parsed whole, so its rows have numbers and no lines."""
        lines = list(lines_of(path, label=label))
        if _is_json_lines([line for _, line in lines if line.strip()][:2]):
            yield from parse_lines(lines, label=label)
            return
        text = "".join(line for _, line in lines)
        if not text.strip():
            return
        for number, values in enumerate(_array(text, label=label), start=1):
            if not isinstance(values, dict):
                raise DataError(
                    what=f"{label}, row {number} is a {type(values).__name__}, not an object",
                    expected='an array of objects, such as [{"prompt": "...", "completion": "..."}]',
                    next_step="repair that row",
                )
            yield None, cast("dict[str, object]", values)


def _is_json_lines(first_two: list[str]) -> bool:
    """Whether two lines are an object each: many hubs and tools write JSON Lines under the name .json."""
    if len(first_two) < 2:
        return False
    try:
        return all(isinstance(json.loads(line), dict) for line in first_two)
    except ValueError:
        return False


def _array(text: str, *, label: str) -> list[object]:
    try:
        document: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(
            what=f"{label}, line {error.lineno}, column {error.colno} is not valid JSON "
            f"({error.msg}): {show_part(text, error.pos)}",
            expected="one JSON array of objects",
            next_step="repair that line, or name the file .jsonl when it holds one object a line",
        ) from error
    if isinstance(document, dict):
        keys = cast("dict[str, object]", document)
        if isinstance(keys.get("data"), list):
            return cast("list[object]", keys["data"])
        # One object alone is a data set of one row when its values are no columns of values.
        if keys and not all(isinstance(value, list | dict) for value in keys.values()):
            return [keys]
        found = f"an object with the keys {', '.join(list(keys)[:8]) or '(none)'}"
    elif isinstance(document, list):
        return cast("list[object]", document)
    else:
        found = f"a {type(document).__name__}"
    raise DataError(
        what=f"{label} holds {found}",
        expected='an array of objects, or {"data": [...]}',
        next_step="put the rows into one array, or one object a line into a .jsonl file",
    )


READER = JsonDocument()
