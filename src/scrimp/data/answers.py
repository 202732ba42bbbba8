"""Where in a rendered conversation the assistant's answers lie.

Two ways. Templates with generation tags say it themselves. For all others the conversation is rendered up to each
answer, as it would be when the model is asked for it: the answer starts where that prompt ends. This holds only if the
prompt really is the beginning of the whole text, which is checked for every answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from scrimp.core.errors import DataError
from scrimp.core.job import TrainOn
from scrimp.data.row import Conversation, Message
from scrimp.data.tokenizer import AddedTokens, ChatTokenizer
from scrimp.data.turns import Mark, Turns, closed

_PROBE = Conversation(messages=(Message(role="user", content="question"), Message(role="assistant", content="answer")))


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
    turns = Turns(conversation=conversation, tokenizer=tokenizer, where=where)
    text, marks = turns.text_and_marks(generation_prompt=False)
    wanted = _wanted(messages, train_on)
    cuts: list[int] = []
    trained: list[tuple[int, int]] = []
    for index, mark in marks.items():
        prompt_end = turns.prompt_end(index, text)
        cuts += _cuts(prompt_end, mark)
        if index not in wanted:
            continue
        if mark is not None:
            start = prompt_end if prompt_end is not None and mark[0] <= prompt_end <= mark[1] else mark[0]
            end = closed(text, mark[1], tokenizer.added)
        elif prompt_end is not None:
            start, end = prompt_end, turns.answer_end(index, prompt_end, text)
        elif turns.has_no_question(index):
            continue
        else:
            raise turns.no_prefix(index, text)
        if not _words(text[start:end], tokenizer.added):
            raise turns.left_out(index)
        trained.append((start, end))
    answered = messages[-1].role == "assistant" and (train_on == "all" or len(messages) - 1 in wanted)
    is_closed = tokenizer.added.ending(text, len(text.rstrip())) is not None
    return Rendered(text=text, cuts=tuple(cuts), trained=tuple(trained), ends_open=answered and not is_closed)


def render_prompt(conversation: Conversation, tokenizer: ChatTokenizer, *, where: str) -> Rendered:
    """The conversation with the generation prompt behind it, cut at the same places as in training.

    Raises:
        DataError: the template refuses the conversation.
    """
    turns = Turns(conversation=conversation, tokenizer=tokenizer, where=where)
    text, marks = turns.text_and_marks(generation_prompt=True)
    found = [cut for index, mark in marks.items() for cut in _cuts(turns.prompt_end(index, text), mark)]
    return Rendered(text=text, cuts=tuple(found))


def prompt_stands_in_front(conversation: Conversation, tokenizer: ChatTokenizer) -> bool:
    """Whether the last answer of a conversation stands behind the very prompt that the model would be asked with.

    Without generation tags `render` makes sure of it; with them the template's author decides what is trained.
    """
    turns = Turns(conversation=conversation, tokenizer=tokenizer, where="a row")
    text, marks = turns.text_and_marks(generation_prompt=False)
    return not marks or turns.prompt_end(max(marks), text) is not None


def end_of_turn_ids(tokenizer: ChatTokenizer) -> tuple[int, ...]:
    """Ids at which a generated answer ends: the token behind the words of an answer, and the end-of-text token."""
    found: list[int | None] = []
    try:
        text = render(_PROBE, tokenizer, train_on="answers", where="a probe").text
        behind = text[text.rfind(_PROBE.messages[-1].content) + len(_PROBE.messages[-1].content) :].lstrip()
        token = tokenizer.added.starting(behind, 0)
        found.append(None if token is None else tokenizer.backend.token_to_id(token))
    except DataError:
        # A template that cannot render a plain exchange says nothing about its end of turn.
        pass
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


def _cuts(prompt_end: int | None, mark: Mark | None) -> list[int]:
    """Where to cut for one answer: where its prompt ends, and where its mark begins if that is later."""
    starts = [] if mark is None or (prompt_end is not None and mark[0] <= prompt_end) else [mark[0]]
    return starts if prompt_end is None else [prompt_end, *starts]


def _words(text: str, added: AddedTokens) -> str:
    """The text without blanks and end-of-turn tokens at its end."""
    text = text.strip()
    while token := added.ending(text, len(text)):
        text = text[: -len(token)].rstrip()
    return text
