"""Where in a rendered conversation the assistant's answers lie.

Two ways. Templates with generation tags say it themselves. For all others the conversation is rendered up to each
answer, as it would be when the model is asked for it: the answer starts where that prompt ends. This holds only if the
prompt really is the beginning of the whole text, which is checked for every answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scrimp.core.errors import DataError
from scrimp.core.job import TrainOn
from scrimp.data.row import Conversation, Message
from scrimp.data.tokenizer import AddedTokens, ChatTokenizer

# What a template does with messages that it was not written for, besides raising its own errors.
_REFUSALS = (TypeError, ValueError, LookupError)
# Characters shown where a prompt and a conversation part.
_AROUND = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A conversation as text.

    `trained`: the (start, end) characters of the answers that carry labels, end-of-turn tokens included, in order.
    `cuts`: where a prompt ends, for each answer in the text; the text is encoded in pieces between them.
    `ends_open`: the text ends with a trained answer that no end-of-turn token closes.
    """

    text: str
    cuts: tuple[int, ...] = ()
    trained: tuple[tuple[int, int], ...] = ()
    ends_open: bool = False


def render(conversation: Conversation, tokenizer: ChatTokenizer, *, train_on: TrainOn, where: str) -> Rendered:
    """The whole conversation with its answers; `where` names the row in messages.

    Raises:
        DataError: the template refuses the conversation, or an answer that should be trained cannot be located.
    """
    messages = conversation.messages
    source = _Prompts(conversation=conversation, tokenizer=tokenizer, where=where)
    text, marks = source.text_and_marks(len(messages), generation_prompt=False)
    wanted = _wanted(messages, train_on)
    cuts: list[int] = []
    trained: list[tuple[int, int]] = []
    for index, mark in marks.items():
        prompt_end = source.prompt_end(index, text)
        cuts += _cuts(prompt_end, mark)
        if index not in wanted:
            continue
        if mark is not None:
            span = _marked_span(mark, prompt_end, text, tokenizer.added)
        elif prompt_end is not None:
            span = (prompt_end, source.answer_end(index, prompt_end, text))
        elif source.has_no_question(index):
            continue
        else:
            raise source.no_prefix(index, text)
        if span[0] < span[1]:
            trained.append(span)
    answered = messages[-1].role == "assistant" and (train_on == "all" or len(messages) - 1 in wanted)
    closed = tokenizer.added.ending(text, len(text.rstrip())) is not None
    return Rendered(text=text, cuts=tuple(cuts), trained=tuple(trained), ends_open=answered and not closed)


def render_prompt(conversation: Conversation, tokenizer: ChatTokenizer, *, where: str) -> Rendered:
    """The conversation with the generation prompt behind it, cut at the same places as in training.

    Raises:
        DataError: the template refuses the conversation.
    """
    source = _Prompts(conversation=conversation, tokenizer=tokenizer, where=where)
    text, marks = source.text_and_marks(len(conversation.messages), generation_prompt=True)
    found = [cut for index, mark in marks.items() for cut in _cuts(source.prompt_end(index, text), mark)]
    return Rendered(text=text, cuts=tuple(found))


def end_of_turn_ids(tokenizer: ChatTokenizer) -> tuple[int, ...]:
    """Ids at which a generated answer ends: the token that closes an assistant turn, and the end-of-text token."""
    turn = Conversation(messages=(Message(role="user", content="a"), Message(role="assistant", content="b")))
    found: list[int | None] = []
    try:
        rendered = render(turn, tokenizer, train_on="answers", where="a probe")
    except DataError:
        # A template that cannot render a plain exchange says nothing about its end of turn.
        rendered = Rendered(text="")
    for _, end in rendered.trained:
        token = tokenizer.added.ending(rendered.text, end)
        found.append(None if token is None else tokenizer.backend.token_to_id(token))
    found.append(tokenizer.eos_id)
    return tuple(dict.fromkeys(item for item in found if item is not None))


def _wanted(messages: Sequence[Message], train_on: TrainOn) -> set[int]:
    """Indices of the turns to locate: answers that say something and are not marked as context."""
    turns = [
        index
        for index, message in enumerate(messages)
        if message.role == "assistant" and message.trained and not message.says_nothing
    ]
    return {"answers": set(turns), "last_answer": set(turns[-1:]), "all": set[int]()}[train_on]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prompts:
    """Renderings of one conversation up to its turns."""

    conversation: Conversation
    tokenizer: ChatTokenizer
    where: str

    def text_and_marks(self, count: int, *, generation_prompt: bool) -> tuple[str, dict[int, tuple[int, int] | None]]:
        """The first `count` turns as text, and for each assistant turn what the template marks as generated.

        The marks are None without generation tags, or when there are not as many as turns.
        """
        messages = self.conversation.messages[:count]
        turns = [index for index, message in enumerate(messages) if message.role == "assistant"]
        if not self.tokenizer.template.marks_answers:
            text = self._render(count, generation_prompt=generation_prompt)
            return text, dict.fromkeys(turns)
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
            prompt = self._render(index, generation_prompt=True)
        except DataError:
            # Some templates refuse the beginning of a conversation, for one without a user's turn.
            return None
        return len(prompt) if text.startswith(prompt) else None

    def answer_end(self, index: int, start: int, text: str) -> int:
        """Where the answer `index`, which starts at `start`, ends: behind its end-of-turn token if it has one."""
        messages, added = self.conversation.messages, self.tokenizer.added
        if index == len(messages) - 1:
            return _without_blanks(text, len(text), added)
        upto = self._render(index + 1, generation_prompt=False)
        if text.startswith(upto):
            return _without_blanks(text, len(upto), added)
        # The template renders this turn differently when it is the last (with a reasoning part, say). The token
        # that ends it is the same; those that the answer itself quotes are skipped.
        mark = added.ending(upto, len(upto.rstrip()))
        position = start
        for _ in range(messages[index].content.count(mark) + 1 if mark else 0):
            found = text.find(mark or "", position)
            position = found + len(mark or "") if found >= 0 else position
        if position == start:
            raise self.no_prefix(index, text)
        return position

    def has_no_question(self, index: int) -> bool:
        """Whether nobody has said anything before the answer `index`: a greeting, which is context."""
        return not any(message.role in ("user", "tool") for message in self.conversation.messages[:index])

    def no_prefix(self, index: int, text: str) -> DataError:
        """The error for an answer that cannot be located."""
        try:
            prompt = self._render(index, generation_prompt=True)
        except DataError as error:
            return error
        same = next((i for i, (a, b) in enumerate(zip(prompt, text, strict=False)) if a != b), len(text))
        return DataError(
            what=f"{self.where}: the chat template renders the prompt for turn {index + 1} differently from the "
            f"beginning of the conversation ({prompt[same : same + _AROUND]!r} against "
            f"{text[same : same + _AROUND]!r}), so what would be trained is not what the model is asked with",
            expected="a template whose prompts are the beginning of the conversation, or one with generation tags",
            next_step="set data.train_on: last_answer; or mark the answers in the model's chat_template.jinja with "
            "{% generation %} ... {% endgeneration %}",
        )

    def _render(self, count: int, *, generation_prompt: bool) -> str:
        from jinja2.exceptions import TemplateError

        messages: list[dict[str, Any]] = [message.for_template() for message in self.conversation.messages[:count]]
        try:
            return self.tokenizer.template.render(
                messages, tools=self.conversation.tools, generation_prompt=generation_prompt
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


def _cuts(prompt_end: int | None, mark: tuple[int, int] | None) -> list[int]:
    """Where to cut for one answer: where its prompt ends, and where its mark begins if that is later."""
    starts = [] if mark is None or (prompt_end is not None and mark[0] <= prompt_end) else [mark[0]]
    return starts if prompt_end is None else [prompt_end, *starts]


def _marked_span(mark: tuple[int, int], prompt_end: int | None, text: str, added: AddedTokens) -> tuple[int, int]:
    """What a generation tag marks, without what the model is always given and with its end-of-turn token."""
    start, end = mark
    if prompt_end is not None and start <= prompt_end <= end:
        start = prompt_end
    end = _without_blanks(text, end, added)
    if added.ending(text, end) is None:
        # The tag closes before the token that ends the turn; untrained, the model would never stop.
        end += len(added.starting(text, end) or "")
    return start, end


def _without_blanks(text: str, end: int, added: AddedTokens) -> int:
    """`end` without the blanks behind an end-of-turn token: the model stops there and never writes them."""
    bare = len(text[:end].rstrip())
    return end if added.ending(text, bare) is None else bare
