"""Which rows make each optimizer step, and how a step is laid into micro-batches: pure functions.

Everything follows from the row sizes and five numbers, so a run that resumes at any step computes its place instead of
replaying, and the plan counts the very batches that the trainer takes.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import Protocol

from scrimp.core.data import StepPlan
from scrimp.core.recipe import Layout


class _Batched(Protocol):
    """What a TrainingSpec and a Recipe have in common."""

    @property
    def seed(self) -> int: ...
    @property
    def epochs(self) -> float: ...
    @property
    def batch_rows(self) -> int: ...
    @property
    def batch_tokens(self) -> int | None: ...
    @property
    def max_steps(self) -> int | None: ...


class _Sized(Protocol):
    @property
    def total_tokens(self) -> int: ...
    @property
    def trained_tokens(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOptions:
    """A step takes `batch_rows` rows; with `batch_tokens` it is filled with rows up to so many tokens instead.

    `epochs` may be a fraction: 1.5 ends with the first half of the second epoch's order. `max_steps` ends the run
    early; it never makes it longer.
    """

    seed: int = 0
    epochs: float = 1.0
    batch_rows: int = 8
    batch_tokens: int | None = None
    max_steps: int | None = None

    @classmethod
    def of(cls, source: _Batched) -> "StepOptions":
        """Out of a TrainingSpec or a Recipe."""
        return cls(
            seed=source.seed,
            epochs=source.epochs,
            batch_rows=source.batch_rows,
            batch_tokens=source.batch_tokens,
            max_steps=source.max_steps,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSizes:
    """Tokens of each training row, and how many of them carry labels."""

    total_tokens: tuple[int, ...]
    trained_tokens: tuple[int, ...]

    @classmethod
    def of(cls, rows: Sequence[_Sized]) -> "RowSizes":
        """Of encoded (or estimated) rows."""
        return cls(
            total_tokens=tuple(row.total_tokens for row in rows),
            trained_tokens=tuple(row.trained_tokens for row in rows),
        )


def step_rows(lengths_tokens: Sequence[int], *, options: StepOptions, start_step: int = 0) -> Iterator[tuple[int, ...]]:
    """The row indices of each optimizer step, from step `start_step` (counted from 0) to the end of the run.

    Each epoch goes through a permutation of all rows that depends on (seed, epoch) alone. Steps do not reach across
    epochs, so the last step of an epoch may be smaller.
    """
    step = 0
    for epoch, rows_of_epoch in enumerate(_rows_by_epoch(len(lengths_tokens), options.epochs)):
        if options.batch_tokens is None:
            steps = -(-rows_of_epoch // options.batch_rows)
            if step + steps <= start_step:
                step += steps
                continue
        order = epoch_order(len(lengths_tokens), seed=options.seed, epoch=epoch)[:rows_of_epoch]
        for rows in _filled(order, lengths_tokens, options):
            if options.max_steps is not None and step >= options.max_steps:
                return
            if step >= start_step:
                yield rows
            step += 1


def epoch_order(rows: int, *, seed: int, epoch: int) -> list[int]:
    """A permutation of range(rows) that depends on (seed, epoch) alone, the same on every version and platform.

    Rows are sorted by random keys: Python promises that random() of one seed never changes, and does not promise
    this of shuffle().
    """
    mixed = int.from_bytes(sha256(f"scrimp rows {seed} {epoch}".encode()).digest(), "big")
    draw = Random(mixed).random
    keys = [draw() for _ in range(rows)]
    return sorted(range(rows), key=keys.__getitem__)


def micro_batches(
    rows: Sequence[int], lengths_tokens: Sequence[int], *, micro_batch_tokens: int, layout: Layout
) -> tuple[tuple[int, ...], ...]:
    """The rows of one step, divided into micro-batches of at most `micro_batch_tokens` tokens.

    `packed` lays rows end to end: from the longest to the shortest, each goes where it leaves the least room (best fit
    decreasing, never more than 11/9 of the fewest possible; Johnson 1974). `padded` fills rows up to the longest,
    padding counted. One row always fits, however long. The longest rows come first.
    """
    longest_first = sorted(rows, key=lambda row: (-lengths_tokens[row], row))
    if layout == "padded":
        return tuple(_padded(longest_first, lengths_tokens, micro_batch_tokens))
    bins: list[list[int]] = []
    room: list[tuple[int, int]] = []  # (free tokens, index of the bin), ascending
    for row in longest_first:
        length = lengths_tokens[row]
        place = bisect_left(room, (length, -1))
        if place == len(room):
            bins.append([row])
            insort(room, (micro_batch_tokens - length, len(bins) - 1))
        else:
            free, index = room.pop(place)
            bins[index].append(row)
            insort(room, (free - length, index))
    return tuple(tuple(rows) for rows in bins)


def count_steps(sizes: RowSizes, *, options: StepOptions) -> StepPlan:
    """The steps that `step_rows` takes, counted; tokens are those of the whole run, without padding."""
    steps = rows = total = trained = largest = longest = 0
    for step in step_rows(sizes.total_tokens, options=options):
        tokens = sum(sizes.total_tokens[row] for row in step)
        steps += 1
        rows += len(step)
        total += tokens
        trained += sum(sizes.trained_tokens[row] for row in step)
        largest = max(largest, tokens)
        longest = max(longest, *(sizes.total_tokens[row] for row in step))
    return StepPlan(
        steps=steps,
        epochs=rows / len(sizes.total_tokens) if sizes.total_tokens else 0.0,
        rows=rows,
        total_tokens=total,
        trained_tokens=trained,
        largest_step_tokens=largest,
        longest_row_tokens=longest,
    )


def _rows_by_epoch(rows: int, epochs: float) -> Iterator[int]:
    """How many rows each epoch takes; a last fraction is rounded up to whole rows."""
    whole = int(epochs)
    for _ in range(whole):
        yield rows
    # The rounding guards against 0.1 * 10 rows becoming 2 of them.
    part = -int(-round((epochs - whole) * rows, 6) // 1)
    if part:
        yield min(part, rows)


def _filled(order: Sequence[int], lengths_tokens: Sequence[int], options: StepOptions) -> Iterator[tuple[int, ...]]:
    if options.batch_tokens is None:
        for start in range(0, len(order), options.batch_rows):
            yield tuple(order[start : start + options.batch_rows])
        return
    step: list[int] = []
    tokens = 0
    for row in order:
        if step and tokens + lengths_tokens[row] > options.batch_tokens:
            yield tuple(step)
            step, tokens = [], 0
        step.append(row)
        tokens += lengths_tokens[row]
    if step:
        yield tuple(step)


def _padded(longest_first: Sequence[int], lengths_tokens: Sequence[int], budget: int) -> Iterator[tuple[int, ...]]:
    batch: list[int] = []
    for row in longest_first:
        # The first row of a batch is its longest, so it sets the width of all.
        if batch and (len(batch) + 1) * lengths_tokens[batch[0]] > budget:
            yield tuple(batch)
            batch = []
        batch.append(row)
    if batch:
        yield tuple(batch)
