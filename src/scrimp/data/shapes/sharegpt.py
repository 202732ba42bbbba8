"""sharegpt: a list of turns with from and value."""

import json
from typing import Any, cast

from scrimp.core.errors import DataError
from scrimp.data.row import Conversation, Message, Role, SourceRow
from scrimp.data.shapes.messages import carries
from scrimp.data.shapes.shape import RowShape, not_text, optional_text, role_of, system_message, tools_of, turns

_TURNS = ("conversations", "conversation", "messages")
_SYSTEM = ("system", "system_prompt")


class ShareGpt(RowShape):
    """Turns of {from, value}; `function_call` turns hold the call as JSON."""

    name = "sharegpt"
    columns = "a column conversations with a list of {from, value}"
    example = {  # noqa: RUF012
        "conversations": [{"from": "human", "value": "Hello"}, {"from": "gpt", "value": "Hi! How can I help?"}]
    }

    def recognises(self, row: SourceRow) -> bool:
        """A list of turns that carry `from`."""
        return carries(row, _TURNS, key="from")

    def content(self, row: SourceRow) -> Conversation:
        """The system column if there is one, then one message a turn."""
        found = turns(row, row.column(_TURNS), required_by=self)
        messages = [_message(row, item, turn=turn) for turn, item in enumerate(found, start=1)]
        system = system_message(optional_text(row, _SYSTEM))
        return Conversation(messages=(*system, *messages), tools=tools_of(row))

    def roles(self, row: SourceRow) -> tuple[tuple[str, Role], ...]:
        """The tags of the turns."""
        found = turns(row, row.column(_TURNS), required_by=self)
        return tuple(
            (str(item.get("from")), role_of(row, item.get("from"), turn=turn))
            for turn, item in enumerate(found, start=1)
        )


def _message(row: SourceRow, item: dict[str, Any], *, turn: int) -> Message:
    tag, value = item.get("from"), item.get("value")
    role = role_of(row, tag, turn=turn)
    if value is None:
        return Message(role=role, content="")
    if not isinstance(value, str):
        raise not_text(row, f"value of turn {turn}", value)
    if str(tag).lower() == "function_call":
        return Message(role=role, content="", extra={"tool_calls": _calls(row, value, turn=turn)})
    return Message(role=role, content=value)


def _calls(row: SourceRow, value: str, *, turn: int) -> list[dict[str, Any]]:
    try:
        parsed: object = json.loads(value)
    except ValueError:
        parsed = None
    calls = cast("list[Any]", parsed if isinstance(parsed, list) else [parsed])
    if not calls or not all(isinstance(call, dict) and "name" in call for call in calls):
        raise DataError(
            what=f"{row.place}, turn {turn} is a function_call that is no JSON call: {value[:60]}",
            expected='{"name": "...", "arguments": {...}}, or a list of such calls',
            next_step="repair that row",
        )
    return [{"type": "function", "function": call} for call in calls]


SHAPE = ShareGpt()
