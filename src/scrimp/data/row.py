"""The nouns of this room: a row as read, as a conversation, and as tokens with their mask."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from scrimp.core.data import DropReason

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a row stands: file, row number in it from 1 and, in text files, the line it starts on."""

    file: str
    row: int
    line: int | None = None

    def __str__(self) -> str:
        """`train.jsonl, line 17`; the row number where there are no lines."""
        return f"{self.file}, line {self.line}" if self.line is not None else f"{self.file}, row {self.row}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """A row as the file has it. `split` is the split its file or data set stands for, None when neither says."""

    values: Mapping[str, object]
    place: Place
    split: str | None = None

    def column(self, names: Sequence[str]) -> str | None:
        """The first of `names` that this row has, as the row spells it; case does not matter."""
        for name in names:
            if name in self.values:
                return name
        folded = {key.strip().casefold(): key for key in self.values}
        return next((folded[name] for name in names if name in folded), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn. `extra` holds what else the template may read (name, tool_calls, reasoning_content ...).

    `trained` is False for an answer that its row marks with weight 0.
    """

    role: Role
    content: str
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    trained: bool = True

    @property
    def says_nothing(self) -> bool:
        """Neither text nor a tool call."""
        return not self.content.strip() and not self.extra.get("tool_calls")

    def for_template(self) -> dict[str, Any]:
        """The dict that a chat template reads."""
        return {"role": self.role, "content": self.content, **self.extra}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The turns of one row, and the tools its assistant may call (JSON schemas)."""

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...] = ()

    def with_system(self, prompt: str | None) -> "Conversation":
        """The same with a system message in front, unless it has one or `prompt` is None."""
        if prompt is None or any(message.role == "system" for message in self.messages):
            return self
        return Conversation(messages=(Message(role="system", content=prompt), *self.messages), tools=self.tools)


# A conversation, or plain text.
Content = Conversation | str


@dataclass(frozen=True, slots=True, kw_only=True)
class DataRow:
    """A row that a shape has understood. `number` counts from 1 over the whole source; `key` hashes the content."""

    number: int
    place: Place
    content: Content
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedRow:
    """A row that trains. `labels_mask[i]` is 1 where token i is a target; the first token never is.

    `tokens` is an array of 32-bit ints, which numpy and torch read without a copy.
    """

    number: int
    tokens: "array[int]"
    labels_mask: bytes
    truncated: bool = False

    @property
    def total_tokens(self) -> int:
        """All tokens of the row."""
        return len(self.tokens)

    @property
    def trained_tokens(self) -> int:
        """Tokens that carry a label."""
        return self.labels_mask.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedRow:
    """A row that does not train. `total_tokens` is 0 when it was dropped before it became tokens."""

    number: int
    place: Place
    reason: DropReason
    total_tokens: int = 0
