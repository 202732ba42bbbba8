"""alpaca: an instruction, perhaps with an input to work on, and the output (Taori et al. 2023)."""

from typing import Any, cast

from scrimp.core.errors import DataError
from scrimp.data.row import Conversation, Message, SourceRow
from scrimp.data.shapes.shape import RowShape, optional_text, system_message, text_cell

_INSTRUCTION = ("instruction",)
_INPUT = ("input", "context")
_OUTPUT = ("output", "response", "answer", "completion")
_SYSTEM = ("system", "system_prompt")
_HISTORY = ("history",)


class Alpaca(RowShape):
    """The input goes below the instruction in the user's turn; `history` holds earlier [question, answer] pairs."""

    name = "alpaca"
    columns = "the columns instruction and output (input, system and history if there are any)"
    example = {"instruction": "Translate to French.", "input": "Good morning", "output": "Bonjour"}  # noqa: RUF012

    def recognises(self, row: SourceRow) -> bool:
        """`instruction` beside an output under one of its usual names."""
        return row.column(_INSTRUCTION) is not None and row.column(_OUTPUT) is not None

    def content(self, row: SourceRow) -> Conversation:
        """System, earlier turns, instruction with input, output."""
        instruction = text_cell(row, row.column(_INSTRUCTION), required_by=self)
        given = optional_text(row, _INPUT)
        question = f"{instruction}\n{given}" if given.strip() else instruction
        answer = text_cell(row, row.column(_OUTPUT), required_by=self)
        return Conversation(
            messages=(
                *system_message(optional_text(row, _SYSTEM)),
                *_history(row),
                Message(role="user", content=question),
                Message(role="assistant", content=answer),
            )
        )


def _history(row: SourceRow) -> list[Message]:
    column = row.column(_HISTORY)
    value = None if column is None else row.values[column]
    if value is None or value == "":
        return []
    messages: list[Message] = []
    pairs = cast("list[Any]", value) if isinstance(value, list) else [None]
    for pair in pairs:
        match pair:
            case [str(question), str(answer)]:
                messages += [Message(role="user", content=question), Message(role="assistant", content=answer)]
            case _:
                raise DataError(
                    what=f'{row.place}, column "history" holds {str(cast("object", pair))[:60]}',
                    expected='pairs of texts: [["earlier question", "earlier answer"], ...]',
                    next_step="repair that row",
                )
    return messages


SHAPE = Alpaca()
