"""What is known of a data set before training: the profile that plans are made from."""

from dataclasses import dataclass
from typing import Literal

DataShape = Literal["alpaca", "sharegpt", "messages", "prompt_completion", "text"]
DropReason = Literal["too_long", "no_trained_tokens", "empty"]
MaskMethod = Literal["template_markers", "prefix_rendering", "all_tokens"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedRows:
    """Rows left out of training and why; `first_rows` are row numbers from 1 in the file, a few of them."""

    reason: DropReason
    rows: int
    first_rows: tuple[int, ...]
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DataProfile:
    """Counts of one data set under one tokenizer. rows_in = rows_trained + rows dropped, always.

    `length_histogram` holds (tokens of a row, rows of that length), ascending, for the rows that train. `notes` are
    lines for people: rows left aside on purpose, evaluation rows that stand in the training rows too.
    """

    path: str
    shape: DataShape
    sha256: str
    rows_in: int
    rows_trained: int
    dropped: tuple[DroppedRows, ...]
    eval_rows: int
    eval_total_tokens: int
    total_tokens: int
    trained_tokens: int
    truncated_rows: int
    duplicate_rows: int
    length_histogram: tuple[tuple[int, int], ...]
    mask_method: MaskMethod
    tokenizer: str
    roles: tuple[str, ...] = ()
    token_basis: str = "counted with the model's tokenizer"
    notes: tuple[str, ...] = ()

    @property
    def longest_row_tokens(self) -> int:
        """Tokens of the longest row that trains."""
        return self.length_histogram[-1][0] if self.length_histogram else 0

    @property
    def mean_row_tokens(self) -> float:
        """Mean tokens of a row that trains."""
        return self.total_tokens / self.rows_trained if self.rows_trained else 0.0

    @property
    def trained_share(self) -> float:
        """Share of all tokens that carry a label."""
        return self.trained_tokens / self.total_tokens if self.total_tokens else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlan:
    """The steps that will really be taken, counted from the batches and not estimated.

    `rows`, `trained_tokens` and `total_tokens` are over the whole run (all epochs, without padding).
    `largest_step_tokens` is the fullest optimizer step.
    """

    steps: int
    epochs: float
    rows: int
    total_tokens: int
    trained_tokens: int
    largest_step_tokens: int
    longest_row_tokens: int
