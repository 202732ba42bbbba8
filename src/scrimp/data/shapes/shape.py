"""What every row shape answers: the one abstract class of this folder, and how cells become text and turns."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, cast

from scrimp.core.data import DataShape
from scrimp.core.errors import DataError
from scrimp.data.row import Content, Message, Role, SourceRow

# Role tags that data sets really use, by the role that chat templates know.
ROLE_TAGS: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "prompter": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "ai": "assistant",
    "function_call": "assistant",
    "tool": "tool",
    "tool_response": "tool",
    "function": "tool",
    "observation": "tool",
    "ipython": "tool",
}


class RowShape(ABC):
    """One way in which examples are laid out in columns."""

    name: DataShape
    # What a row needs, in words, and one row of it: shown when nothing is recognised.
    columns: str
    example: Mapping[str, object]

    @abstractmethod
    def recognises(self, row: SourceRow) -> bool:
        """Whether the row has the columns of this shape."""

    @abstractmethod
    def content(self, row: SourceRow) -> Content:
        """The row as a conversation or as text; a row that `recognises` refused is refused here too.

        Raises:
            DataError: row, column, what was found and how to repair it.
        """

    def roles(self, row: SourceRow) -> tuple[tuple[str, Role], ...]:
        """(role tag as the row has it, role it is taken for), in order; shapes without tags have none."""
        return ()


def text_cell(row: SourceRow, column: str | None, *, required_by: RowShape) -> str:
    """The text of a cell; an empty text for a cell that is null.

    Raises:
        DataError: the row lacks the column, or the cell holds something else than text.
    """
    if column is None:
        raise missing_columns(row, required_by)
    value = row.values[column]
    if value is None:
        return ""
    if not isinstance(value, str):
        raise not_text(row, column, value)
    return value


def optional_text(row: SourceRow, names: Sequence[str]) -> str:
    """The text of an optional column, empty when the row has none.

    Raises:
        DataError: the cell holds something else than text.
    """
    column = row.column(names)
    value = None if column is None else row.values[column]
    if value is None:
        return ""
    if not isinstance(value, str):
        raise not_text(row, column or "", value)
    return value


def missing_columns(row: SourceRow, shape: RowShape) -> DataError:
    """The error for a row that lacks what its shape needs."""
    return DataError(
        what=f"{row.place} does not have the {shape.name} shape: its columns are {', '.join(row.values) or '(none)'}",
        expected=f"{shape.columns}, like the rows before it",
        next_step=f"make every row look like {json.dumps(shape.example, ensure_ascii=False)}",
    )


def not_text(row: SourceRow, column: str, value: object) -> DataError:
    """The error for a cell that is an object, a list or a number where text belongs."""
    kinds = {"dict": "an object", "list": "a list", "bool": "true or false", "int": "a number", "float": "a number"}
    name = type(value).__name__
    found = kinds.get(name, f"a {name}")
    shown = json.dumps(value, ensure_ascii=False, default=str)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return DataError(
        what=f'{row.place}, column "{column}" holds {found}: {shown}',
        expected="text",
        next_step="to train on it as JSON text: "
        f'jq -c \'."{column}" |= (if type == "string" then . else tojson end)\' {row.place.file} > as_text.jsonl',
    )


def role_of(row: SourceRow, tag: object, *, turn: int) -> Role:
    """The role that a tag stands for.

    Raises:
        DataError: the tag is unknown; the message names the row.
    """
    role = ROLE_TAGS.get(tag.strip().lower()) if isinstance(tag, str) else None
    if role is None:
        raise DataError(
            what=f"{row.place}, turn {turn}: the role {json.dumps(tag, default=str)} is not known",
            expected=f"one of {', '.join(ROLE_TAGS)}",
            next_step="rename the role in the data",
        )
    return role


def turns(row: SourceRow, column: str | None, *, required_by: RowShape) -> list[dict[str, Any]]:
    """The turns of a conversation column: a list of objects, or the same as JSON text (as CSV files have it).

    Raises:
        DataError: the cell holds anything else.
    """
    if column is None:
        raise missing_columns(row, required_by)
    value = row.values[column]
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    items = cast("list[object]", value) if isinstance(value, list) else None
    if items is None or not all(isinstance(item, dict) for item in items):
        found = row.values[column]
        raise DataError(
            what=f'{row.place}, column "{column}" holds {json.dumps(found, ensure_ascii=False, default=str)[:60]}',
            expected=f"a list of turns, such as {json.dumps(next(iter(required_by.example.values())))}",
            next_step="repair that row",
        )
    return cast("list[dict[str, Any]]", items)


def tools_of(row: SourceRow) -> tuple[Mapping[str, Any], ...]:
    """The tools of a `tools` column (JSON schemas, or the same as JSON text); none when there is no such column.

    Raises:
        DataError: the cell holds anything else.
    """
    column = row.column(("tools",))
    value = None if column is None else row.values[column]
    if value in (None, "", []):
        return ()
    try:
        parsed: object = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        parsed = None
    items = cast("list[object]", parsed) if isinstance(parsed, list) else []
    if not items or not all(isinstance(item, dict) for item in items):
        raise DataError(
            what=f'{row.place}, column "tools" holds {json.dumps(value, ensure_ascii=False, default=str)[:60]}',
            expected='a list of JSON schemas: [{"type": "function", "function": {"name": "...", ...}}]',
            next_step="repair that row, or leave the column out",
        )
    return tuple(cast("list[dict[str, Any]]", items))


def system_message(text: str) -> tuple[Message, ...]:
    """A system turn, or nothing when the text is empty."""
    return (Message(role="system", content=text),) if text.strip() else ()
