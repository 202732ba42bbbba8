"""prompt_completion: one question and one answer, under any of their usual names."""

from typing import Any, cast

from scrimp.data.row import Conversation, Message, SourceRow
from scrimp.data.shapes.messages import message_of
from scrimp.data.shapes.shape import RowShape, optional_text, system_message, text_cell, tools_of

_PROMPT = ("prompt", "question", "query", "input", "instruction")
_COMPLETION = ("completion", "answer", "response", "output")
_SYSTEM = ("system", "system_prompt")


class PromptCompletion(RowShape):
    """Texts, or (as TRL writes them) lists of messages in both columns."""

    name = "prompt_completion"
    columns = "a question (prompt, question, query, input) and an answer (completion, answer, response, output)"
    example = {"prompt": "What is the capital of France?", "completion": "Paris."}  # noqa: RUF012

    def recognises(self, row: SourceRow) -> bool:
        """One column of each kind."""
        return row.column(_PROMPT) is not None and row.column(_COMPLETION) is not None

    def content(self, row: SourceRow) -> Conversation:
        """System, question, answer."""
        question, answer = row.column(_PROMPT), row.column(_COMPLETION)
        if question is not None and answer is not None and _are_messages(row.values[question]):
            found = [*cast("list[Any]", row.values[question]), *_as_messages(row.values[answer])]
            messages = tuple(message_of(row, item, turn=turn) for turn, item in enumerate(found, start=1))
            return Conversation(messages=messages, tools=tools_of(row))
        return Conversation(
            messages=(
                *system_message(optional_text(row, _SYSTEM)),
                Message(role="user", content=text_cell(row, question, required_by=self)),
                Message(role="assistant", content=text_cell(row, answer, required_by=self)),
            )
        )


def _are_messages(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in cast("list[object]", value))


def _as_messages(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [{"role": "assistant", "content": value}]


SHAPE = PromptCompletion()
