"""Rows to token ids and label masks: the one encode function of training, evaluation and serving."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from scrimp.core.data import MaskMethod
from scrimp.core.errors import DataError
from scrimp.core.job import DataSpec, OverlongPolicy, TrainOn
from scrimp.data.answers import Rendered, render, render_prompt
from scrimp.data.pieces import Piece, PieceIds
from scrimp.data.row import Content, Conversation, DataRow, DroppedRow, EncodedRow, Message, Place
from scrimp.data.tokenizer import ChatTokenizer

# Rows encoded in one call: enough to keep the tokenizer busy, few enough to keep its results out of the way.
_CHUNK_ROWS = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeOptions:
    """How rows become tokens; see DataSpec for each."""

    max_length_tokens: int = 2048
    overlong: OverlongPolicy = "drop"
    train_on: TrainOn = "answers"
    system_prompt: str | None = None

    @classmethod
    def of(cls, spec: DataSpec) -> "EncodeOptions":
        """The options that a data spec holds."""
        return cls(
            max_length_tokens=spec.max_length_tokens,
            overlong=spec.overlong,
            train_on=spec.train_on,
            system_prompt=spec.system_prompt,
        )


def encode(content: Content, tokenizer: ChatTokenizer, options: EncodeOptions) -> EncodedRow | DroppedRow:
    """One conversation or text as it trains, or why it does not.

    Raises:
        DataError: the template refuses it, an answer cannot be located, or it is too long under `overlong: error`.
    """
    row = DataRow(number=1, place=Place(file="the row", row=1), content=content, key=b"")
    return encode_rows([row], tokenizer, options)[0]


def encode_rows(
    rows: Sequence[DataRow], tokenizer: ChatTokenizer, options: EncodeOptions
) -> list[EncodedRow | DroppedRow]:
    """`encode` for many rows, one result for each, in order.

    Raises:
        DataError: as `encode`, naming the first row; under `overlong: error` also how many and the longest.
    """
    done: list[EncodedRow | DroppedRow] = []
    for start in range(0, len(rows), _CHUNK_ROWS):
        chunk = rows[start : start + _CHUNK_ROWS]
        drafts = [None if is_empty(row.content) else _draft(row, tokenizer, options) for row in chunk]
        found = iter(tokenizer.pieces.encode([piece for draft in drafts if draft for piece in draft.pieces]))
        for row, draft in zip(chunk, drafts, strict=True):
            if draft is None:
                done.append(DroppedRow(number=row.number, place=row.place, reason="empty"))
                continue
            tokens, mask = _joined(draft, [next(found) for _ in draft.pieces])
            done.append(_fitted(row, tokens, mask, options))
    if options.overlong == "error":
        _refuse_overlong([item for item in done if isinstance(item, DroppedRow)], options)
    return done


def encode_prompt(prompt: Content | Sequence[Message], tokenizer: ChatTokenizer) -> list[int]:
    """Ids that the model is asked with: a conversation and its generation prompt, or the beginning of a text.

    For a conversation out of the training data these are exactly the ids in front of the answer there.

    Raises:
        DataError: the template refuses the conversation.
    """
    if isinstance(prompt, str):
        return [*_bos(prompt, tokenizer), *tokenizer.encode_text(prompt)]
    conversation = prompt if isinstance(prompt, Conversation) else Conversation(messages=tuple(prompt))
    rendered = render_prompt(conversation, tokenizer, where="the prompt")
    return [token for piece in tokenizer.pieces.encode(_pieces(rendered, tokenizer)) for token in piece.ids]


def user_prompt(text: str, *, system_prompt: str | None = None) -> tuple[Message, ...]:
    """The turns that ask one question."""
    return Conversation(messages=(Message(role="user", content=text),)).with_system(system_prompt).messages


def mask_method(tokenizer: ChatTokenizer, *, is_text: bool, train_on: TrainOn) -> MaskMethod:
    """How the labels of a data set are found."""
    if is_text or train_on == "all":
        return "all_tokens"
    return "template_markers" if tokenizer.template.marks_answers else "prefix_rendering"


def is_empty(content: Content) -> bool:
    """No text; or a conversation with answers, none of which says anything."""
    if isinstance(content, str):
        return not content.strip()
    answers = [message for message in content.messages if message.role == "assistant"]
    return not content.messages or (bool(answers) and all(message.says_nothing for message in answers))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A row on its way: ids in front, pieces of text, ids behind (which carry labels)."""

    pieces: list[Piece]
    before: list[int]
    after: list[int]


def _draft(row: DataRow, tokenizer: ChatTokenizer, options: EncodeOptions) -> _Draft:
    if isinstance(row.content, str):
        text = row.content
        ended = tokenizer.added.ending(text, len(text)) == tokenizer.special.get("eos_token")
        return _Draft(
            pieces=[Piece(text, trained_chars=len(text), first=True)],
            before=_bos(text, tokenizer),
            after=[] if ended else _eos(tokenizer),
        )
    conversation = row.content.with_system(options.system_prompt)
    _check_tools(conversation, tokenizer, where=str(row.place))
    rendered = render(conversation, tokenizer, train_on=options.train_on, where=str(row.place))
    if options.train_on == "all":
        rendered = replace(rendered, trained=((0, len(rendered.text)),))
    return _Draft(pieces=_pieces(rendered, tokenizer), before=[], after=_eos(tokenizer) if rendered.ends_open else [])


def _pieces(rendered: Rendered, tokenizer: ChatTokenizer) -> list[Piece]:
    """The text cut where prompts end and where labels begin; also behind end-of-turn tokens, if no id changes there.

    The first turn, which is often a system prompt that all rows share, becomes a piece of its own and is encoded once.
    """
    text = rendered.text
    borders = {0, len(text), *rendered.cuts}
    for start, end in rendered.trained:
        borders.add(start)
        token = tokenizer.added.ending(text, end)
        if token is not None and tokenizer.pieces.may_cut_after(token):
            borders |= {end, text.find(token) + len(token)}
    pieces: list[Piece] = []
    for start, end in pairwise(sorted(borders)):
        trained = max((min(end, stop) - start for begin, stop in rendered.trained if begin <= start < stop), default=0)
        pieces.append(Piece(text[start:end], trained_chars=trained, first=start == 0))
    return pieces


def _joined(draft: _Draft, found: Sequence[PieceIds]) -> tuple["array[int]", bytearray]:
    tokens = array("i", draft.before)
    mask = bytearray(len(draft.before))
    for ids, trained in found:
        tokens.extend(ids)
        mask += b"\1" * trained + bytes(len(ids) - trained)
    tokens.extend(draft.after)
    mask += b"\1" * len(draft.after)
    return tokens, mask


def _fitted(row: DataRow, tokens: "array[int]", mask: bytearray, options: EncodeOptions) -> EncodedRow | DroppedRow:
    """Apply the length policy; what is left without a label is dropped, never trained on nothing."""
    limit, total = options.max_length_tokens, len(tokens)
    overlong = total > limit
    if overlong and options.overlong in ("drop", "error"):
        return DroppedRow(number=row.number, place=row.place, reason="too_long", total_tokens=total)
    if overlong:
        part = slice(total - limit, None) if options.overlong == "truncate_left" else slice(None, limit)
        tokens, mask = tokens[part], mask[part]
    # Nothing predicts the first token.
    mask[:1] = bytes(len(mask[:1]))
    if not any(mask):
        return DroppedRow(number=row.number, place=row.place, reason="no_trained_tokens", total_tokens=total)
    return EncodedRow(number=row.number, tokens=tokens, labels_mask=bytes(mask), truncated=overlong)


def _refuse_overlong(dropped: Sequence[DroppedRow], options: EncodeOptions) -> None:
    long = [row for row in dropped if row.reason == "too_long"]
    if long:
        longest = max(row.total_tokens for row in long)
        raise DataError(
            what=f"{len(long):,} rows are longer than {options.max_length_tokens:,} tokens; the first is "
            f"{long[0].place} with {long[0].total_tokens:,}, the longest has {longest:,}",
            expected="no row over data.max_length_tokens, because data.overlong is error",
            next_step=f"data.max_length_tokens={longest}, or data.overlong=drop",
        )


def _check_tools(conversation: Conversation, tokenizer: ChatTokenizer, *, where: str) -> None:
    calls = any(message.extra.get("tool_calls") for message in conversation.messages)
    if calls and "tool_calls" not in tokenizer.template.text:
        raise DataError(
            what=f"{where} holds a tool call, and the chat template of {tokenizer.name} would leave it out",
            expected="a model whose template knows tool_calls, or calls written as text",
            next_step="choose such a model, or put the call into the content of its turn",
        )


def _bos(text: str, tokenizer: ChatTokenizer) -> list[int]:
    """What a document begins with, unless it brings it along."""
    wanted = tokenizer.adds_bos and not text.startswith(tokenizer.special.get("bos_token", ""))
    return [tokenizer.bos_id] if wanted and tokenizer.bos_id is not None else []


def _eos(tokenizer: ChatTokenizer) -> list[int]:
    return [] if tokenizer.eos_id is None else [tokenizer.eos_id]
