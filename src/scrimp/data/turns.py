"""One conversation under one template: where its prompts end and where its answers end, by rendering parts of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from scrimp.core.errors import DataError
from scrimp.data.row import Conversation, Message
from scrimp.data.tokenizer import AddedTokens, ChatTokenizer

# What a template does with messages that it was not written for, besides raising its own errors.
_REFUSALS = (TypeError, ValueError, LookupError)
# Stands behind an answer to see where it ends; no text holds it.
_SENTINEL = "\ue000"
# Characters shown where a prompt and a conversation part.
_AROUND = 40

Mark = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Renders a conversation up to its turns. `where` names the row in messages."""

    conversation: Conversation
    tokenizer: ChatTokenizer
    where: str

    def text_and_marks(self, *, generation_prompt: bool) -> tuple[str, dict[int, Mark | None]]:
        """The whole conversation as text, and for each assistant turn what the template marks as generated.

        The marks are None without generation tags, or when there are not as many as turns.

        Raises:
            DataError: the template refuses the conversation.
        """
        messages = self.conversation.messages
        turns = [index for index, message in enumerate(messages) if message.role == "assistant"]
        if not self.tokenizer.template.marks_answers:
            return self._render(messages, generation_prompt=generation_prompt), dict.fromkeys(turns)
        from jinja2.exceptions import TemplateError

        try:
            text, spans = self.tokenizer.template.render_marked(
                [message.for_template() for message in messages],
                tools=self.conversation.tools,
                generation_prompt=generation_prompt,
            )
        except (TemplateError, *_REFUSALS) as error:
            raise self._refused(error) from error
        return text, dict(zip(turns, spans if len(spans) == len(turns) else [None] * len(turns), strict=True))

    def prompt_end(self, index: int, text: str) -> int | None:
        """Where the prompt for the answer `index` ends; None if `text` does not begin with that prompt."""
        try:
            prompt = self._render(self.conversation.messages[:index], generation_prompt=True)
        except DataError:
            # Some templates refuse the beginning of a conversation, for one without a user's turn.
            return None
        return len(prompt) if text.startswith(prompt) else None

    def answer_end(self, index: int, start: int, text: str) -> int:
        """Where the answer `index`, which starts at `start`, ends: behind its end-of-turn token if it has one.

        Raises:
            DataError: it cannot be told.
        """
        messages, added = self.conversation.messages, self.tokenizer.added
        if index == len(messages) - 1:
            return closed(text, len(text), added)
        upto = self._render(messages[: index + 1], generation_prompt=False)
        if text.startswith(upto):
            return closed(text, len(upto), added)
        # The template renders this turn differently when it is the last: with a reasoning part in front, or with
        # another token at the end.
        if messages[index].extra.get("tool_calls"):
            return self._end_of_same_part(index, start, text, upto)
        behind = self._content_end(index, start, text)
        rest = upto.rpartition(messages[index].content.strip())[2]
        same = common_length(text[behind : behind + len(rest)], rest)
        end = next((end for end in range(same, 0, -1) if added.ending(rest[:end], end) is not None), 0)
        return closed(text, behind + end, added)

    def has_no_question(self, index: int) -> bool:
        """Whether nobody has said anything before the answer `index`: a greeting, which is context."""
        return not any(message.role in ("user", "tool") for message in self.conversation.messages[:index])

    def no_prefix(self, index: int, text: str) -> DataError:
        """The error for an answer whose prompt is not how the conversation begins."""
        messages = self.conversation.messages
        try:
            prompt = self._render(messages[:index], generation_prompt=True)
        except DataError as error:
            return error
        same = common_length(prompt, text)
        is_last = all(message.role != "assistant" for message in messages[index + 1 :])
        ways = ["data.train_on: last_answer"] if not is_last else []
        ways.append("a chat_template.jinja in the model's folder that marks answers with {% generation %}")
        return DataError(
            what=f"{self.where}: the chat template renders the prompt for turn {index + 1} differently from the "
            f"beginning of the conversation ({prompt[same : same + _AROUND]!r} against "
            f"{text[same : same + _AROUND]!r}), so what would be trained is not what the model is asked with",
            expected="a template whose prompts are the beginning of the conversation, or one with generation tags",
            next_step=", or ".join(ways),
        )

    def left_out(self, index: int) -> DataError:
        """The error for an answer that the template does not render."""
        return DataError(
            what=f"{self.where}: the chat template of {self.tokenizer.name} leaves the answer in turn {index + 1} out",
            expected="a template that renders answers given as text",
            next_step="look at it: scrimp data show DATA --model NAME data.train_on=all",
        )

    def _content_end(self, index: int, start: int, text: str) -> int:
        """Where the words of the answer `index` end: where a sentinel behind them would show."""
        messages = self.conversation.messages
        content = messages[index].content.strip()
        if text.startswith(content, start):
            return start + len(content)
        marked = replace(messages[index], content=messages[index].content.rstrip() + _SENTINEL)
        other = self._render((*messages[:index], marked, *messages[index + 1 :]), generation_prompt=False)
        if _SENTINEL not in other:
            raise self.left_out(index)
        return common_length(text, other)

    def _end_of_same_part(self, index: int, start: int, text: str, upto: str) -> int:
        """Where a turn with tool calls ends: up to there it is the same when it is the last."""
        end = start
        for found in self.tokenizer.added.ends(text, start):
            if text[start:found] not in upto:
                break
            end = found
        if end == start:
            raise self.no_prefix(index, text)
        return end

    def _render(self, messages: Sequence[Message], *, generation_prompt: bool) -> str:
        from jinja2.exceptions import TemplateError

        shown: list[dict[str, Any]] = [message.for_template() for message in messages]
        try:
            return self.tokenizer.template.render(
                shown, tools=self.conversation.tools, generation_prompt=generation_prompt
            )
        except (TemplateError, *_REFUSALS) as error:
            raise self._refused(error) from error

    def _refused(self, error: Exception) -> DataError:
        roles = ", ".join(message.role for message in self.conversation.messages)
        return DataError(
            what=f"{self.where}: the chat template of {self.tokenizer.name} refuses this conversation ({error}); "
            f"its turns are: {roles}",
            expected="turns in an order that the model's template allows",
            next_step="repair or leave out such rows; a system prompt that the template does not know can go into the "
            "first user turn",
        )


def closed(text: str, end: int, added: AddedTokens) -> int:
    """`end` of an answer, moved to its end-of-turn token.

    Blanks behind that token go: the model stops there and never writes them. If there is none, the token that follows
    is taken: it is where the model has to stop (GLM ends a turn with the next role).
    """
    bare = len(text[:end].rstrip())
    if added.ending(text, bare) is not None:
        return bare
    return end + len(added.starting(text, end) or "")


def common_length(a: str, b: str) -> int:
    """How many characters two texts begin with in common."""
    # Halving with slices is far faster than a loop over characters.
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
