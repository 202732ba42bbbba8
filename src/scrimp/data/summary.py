"""Counts of a data set: from rows with their sizes to a DataProfile."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from scrimp.core.data import DataProfile, DroppedRows, DropReason, MaskMethod
from scrimp.core.errors import DataError
from scrimp.core.job import DataSpec
from scrimp.data.content import DataContent
from scrimp.data.row import DroppedRow

_FIRST_ROWS = 5


class SizedRow(Protocol):
    """A row that trains, as far as counting goes: encoded, or estimated."""

    @property
    def number(self) -> int:
        """From 1 over the whole source."""
        ...

    @property
    def total_tokens(self) -> int:
        """All tokens."""
        ...

    @property
    def trained_tokens(self) -> int:
        """Tokens with a label."""
        ...

    @property
    def truncated(self) -> bool:
        """Whether the length policy cut it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """How the tokens were found: the mask, the tokenizer, and whether they were counted or estimated."""

    mask_method: MaskMethod
    tokenizer: str
    token_basis: str
    notes: tuple[str, ...] = ()


def summarise(
    content: DataContent,
    spec: DataSpec,
    *,
    train: Sequence[SizedRow | DroppedRow],
    evaluation: Sequence[SizedRow | DroppedRow],
    basis: Basis,
) -> DataProfile:
    """The profile of a data set whose rows became `train` and `evaluation`, one result for each row of `content`.

    Raises:
        DataError: no row trains.
    """
    kept = [row for row in train if not isinstance(row, DroppedRow)]
    dropped = [row for row in train if isinstance(row, DroppedRow)]
    if not kept:
        raise _nothing_trains(dropped, spec)
    held_out = [row for row in evaluation if not isinstance(row, DroppedRow)]
    lengths = Counter(row.total_tokens for row in kept)
    return DataProfile(
        path=spec.path,
        shape=content.shape.name,
        sha256=content.sha256,
        rows_in=len(train),
        rows_trained=len(kept),
        dropped=tuple(_by_reason(dropped, spec)),
        eval_rows=len(held_out),
        eval_total_tokens=sum(row.total_tokens for row in held_out),
        total_tokens=sum(row.total_tokens for row in kept),
        trained_tokens=sum(row.trained_tokens for row in kept),
        truncated_rows=sum(row.truncated for row in kept),
        duplicate_rows=len(content.train) - len({row.key for row in content.train}),
        length_histogram=tuple(sorted(lengths.items())),
        mask_method=basis.mask_method,
        tokenizer=basis.tokenizer,
        roles=content.roles,
        token_basis=basis.token_basis,
        notes=(*content.notes, *basis.notes, *_evaluation_notes(evaluation, spec)),
    )


def explain(reason: DropReason, *, longest_tokens: int, spec: DataSpec) -> str:
    """A drop reason in words; `longest_tokens` is the longest of the dropped rows."""
    if reason == "too_long":
        return f"longer than data.max_length_tokens = {spec.max_length_tokens:,}; the longest has {longest_tokens:,}"
    if reason == "empty":
        return "the answer (or the text) is empty"
    return "no assistant answer to train on, or none left after truncation"


def _by_reason(dropped: Sequence[DroppedRow], spec: DataSpec) -> list[DroppedRows]:
    groups: dict[DropReason, list[DroppedRow]] = {}
    for row in dropped:
        groups.setdefault(row.reason, []).append(row)
    return [
        DroppedRows(
            reason=reason,
            rows=len(rows),
            first_rows=tuple(row.number for row in rows[:_FIRST_ROWS]),
            detail=explain(reason, longest_tokens=max(row.total_tokens for row in rows), spec=spec),
        )
        for reason, rows in groups.items()
    ]


def _evaluation_notes(evaluation: Sequence[SizedRow | DroppedRow], spec: DataSpec) -> list[str]:
    groups = _by_reason([row for row in evaluation if isinstance(row, DroppedRow)], spec)
    return [f"{group.rows:,} evaluation rows are left out: {group.detail}" for group in groups]


def _nothing_trains(dropped: Sequence[DroppedRow], spec: DataSpec) -> DataError:
    groups = _by_reason(dropped, spec)
    reasons = "; ".join(f"{group.rows:,} {group.reason} ({group.detail})" for group in groups)
    longest = max((row.total_tokens for row in dropped if row.reason == "too_long"), default=0)
    if longest:
        next_step = f"data.max_length_tokens={longest}, or data.overlong=truncate_left"
    elif any(group.reason == "no_trained_tokens" for group in groups):
        next_step = "look at the mask of a row: scrimp data show DATA --model NAME --row 1"
    else:
        next_step = "fill in the answers"
    return DataError(
        what=f"none of the {len(dropped):,} rows of {spec.path} can be trained on: {reasons}",
        expected="rows with an answer that fits into data.max_length_tokens",
        next_step=next_step,
    )
