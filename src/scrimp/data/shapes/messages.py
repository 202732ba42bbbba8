"""messages: a list of turns with role and content, as chat APIs take them."""

from typing import Any, cast

from scrimp.core.errors import DataError
from scrimp.data.row import Conversation, Message, Role, SourceRow
from scrimp.data.shapes.shape import RowShape, not_text, role_of, tools_of, turns

_TURNS = ("messages", "conversations", "conversation", "chat", "dialogue", "dialog")
# OpenAI's fine-tuning format: an assistant turn with weight 0 is context and not trained.
_WEIGHT = "weight"


class Messages(RowShape):
    """Turns of {role, content}; name, tool_calls, reasoning_content and the like go on to the chat template."""

    name = "messages"
    columns = "a column messages with a list of {role, content}"
    example = {  # noqa: RUF012
        "messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi! How can I help?"}]
    }

    def recognises(self, row: SourceRow) -> bool:
        """A list of turns that carry `role`."""
        return carries(row, _TURNS, key="role")

    def content(self, row: SourceRow) -> Conversation:
        """One message a turn."""
        found = turns(row, row.column(_TURNS), required_by=self)
        messages = tuple(message_of(row, item, turn=turn) for turn, item in enumerate(found, start=1))
        return Conversation(messages=messages, tools=tools_of(row))

    def roles(self, row: SourceRow) -> tuple[tuple[str, Role], ...]:
        """The tags of the turns."""
        found = turns(row, row.column(_TURNS), required_by=self)
        return tuple(
            (str(item.get("role")), role_of(row, item.get("role"), turn=turn))
            for turn, item in enumerate(found, start=1)
        )


def carries(row: SourceRow, names: tuple[str, ...], *, key: str) -> bool:
    """Whether one of the columns holds a list whose first turn has `key` (or JSON text of such a list)."""
    column = row.column(names)
    if column is None:
        return False
    value = row.values[column]
    if isinstance(value, list):
        items = cast("list[object]", value)
        # An empty list says nothing against either kind; the other rows decide.
        return not items or (isinstance(items[0], dict) and key in items[0])
    return isinstance(value, str) and value.lstrip().startswith("[") and f'"{key}"' in value


def message_of(row: SourceRow, item: dict[str, Any], *, turn: int) -> Message:
    """One turn of role and content.

    Raises:
        DataError: an unknown role, or a content that is not text.
    """
    extra = {key: value for key, value in item.items() if key not in {"role", "content", _WEIGHT} and value is not None}
    return Message(
        role=role_of(row, item.get("role"), turn=turn),
        content=_text_of(row, item.get("content"), turn=turn),
        extra=extra,
        trained=item.get(_WEIGHT) != 0,
    )


def _text_of(row: SourceRow, content: object, *, turn: int) -> str:
    """Text, null (a turn that only calls a tool), or a list of text parts as chat APIs allow it."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = cast("list[Any]", content)
        texts = [text for part in parts if (text := _part_text(part)) is not None]
        if len(texts) == len(parts):
            return "".join(texts)
        raise DataError(
            what=f"{row.place}, turn {turn} has a part that is not text: {str(parts)[:60]}",
            expected="text parts alone: only text is trained on",
            next_step="leave rows with images or sound out",
        )
    raise not_text(row, f"content of turn {turn}", content)


def _part_text(part: object) -> str | None:
    text = cast("dict[str, Any]", part).get("text") if isinstance(part, dict) else part
    return text if isinstance(text, str) else None


SHAPE = Messages()
