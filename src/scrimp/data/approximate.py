"""Token counts without a tokenizer, for planning with models whose files are not here."""

from collections.abc import Sequence
from dataclasses import dataclass

from scrimp.data.encode import EncodeOptions, is_empty
from scrimp.data.row import DataRow, DroppedRow

# Measured with the 49,152-token tokenizer of SmolLM2: 4.34 on The Devil's Dictionary, 4.21 on WordNet glosses, 4.28 on
# the Jargon File, 3.90 on the Python FAQ, 3.78 on Python functions. Larger vocabularies need up to a tenth fewer tokens
# on such text; other scripts vary more. Bytes rather than characters, because scripts with few characters a word have
# many bytes a character.
BYTES_PER_TOKEN = 4.1
# ChatML: <|im_start|>, role, newline; <|im_end|>, newline.
TOKENS_AROUND_A_TURN = 5
APPROXIMATE_BASIS = (
    f"estimated at {BYTES_PER_TOKEN} UTF-8 bytes a token and {TOKENS_AROUND_A_TURN} tokens around each turn "
    "(measured on English text and Python with a 49k vocabulary, within 10%)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximateRow:
    """The likely size of a row that trains."""

    number: int
    total_tokens: int
    trained_tokens: int
    truncated: bool


def approximate_rows(rows: Sequence[DataRow], options: EncodeOptions) -> list[ApproximateRow | DroppedRow]:
    """Likely sizes under the same length policy as the real encoding, one result for each row."""
    return [_approximate(row, options) for row in rows]


def _approximate(row: DataRow, options: EncodeOptions) -> ApproximateRow | DroppedRow:
    if is_empty(row.content):
        return DroppedRow(number=row.number, place=row.place, reason="empty")
    total, trained = _sizes(row, options)
    limit = options.max_length_tokens
    too_long = total > limit
    if too_long and options.overlong in ("drop", "error"):
        return DroppedRow(number=row.number, place=row.place, reason="too_long", total_tokens=total)
    if too_long:
        # An answer usually stands at the end: cutting on the right takes it first.
        lost = total - limit
        trained = trained - lost if options.overlong == "truncate_right" else min(trained, limit - 1)
    if trained <= 0:
        return DroppedRow(number=row.number, place=row.place, reason="no_trained_tokens", total_tokens=total)
    return ApproximateRow(number=row.number, total_tokens=min(total, limit), trained_tokens=trained, truncated=too_long)


def _sizes(row: DataRow, options: EncodeOptions) -> tuple[int, int]:
    """(all tokens, trained tokens)."""
    if isinstance(row.content, str):
        total = _tokens(row.content) + 1
        return total, total - 1
    messages = row.content.with_system(options.system_prompt).messages
    total = sum(_tokens(message.content) + TOKENS_AROUND_A_TURN for message in messages)
    if options.train_on == "all":
        return total, total - 1
    # The token that ends the turn is trained too.
    answers = [
        _tokens(message.content) + 1
        for message in messages
        if message.role == "assistant" and message.trained and not message.says_nothing
    ]
    return total, sum(answers[-1:] if options.train_on == "last_answer" else answers)


def _tokens(text: str) -> int:
    return round(len(text.encode()) / BYTES_PER_TOKEN)
