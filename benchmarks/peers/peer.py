"""What an estimator of others is here, and what most of them ask of a measured run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scrimp.calibrate.memory.rows import MemoryRow
from scrimp.calibrate.time.rows import TimeRow

GIB = float(2**30)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPeer:
    """`gib`: memory of one card in GiB, or None when the rule does not cover the row. `source`: where it was read."""

    name: str
    source: str
    gib: Callable[[MemoryRow], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePeer:
    """`tokens_per_s`: speed of one GPU for a row, given all rows (a rule may learn from those of other groups)."""

    name: str
    source: str
    tokens_per_s: Callable[[TimeRow, Sequence[TimeRow]], float | None]


def speaks_of(row: MemoryRow) -> bool:
    """Whether a row is of the kind that these estimators ask for: full, LoRA or QLoRA, in 16 bit, fp32 or NF4."""
    return row.row["method"] in {"full", "lora", "qlora"} and row.row["quant"] in {"none", "nf4", "nf4+dq"}


def model_params(row: MemoryRow) -> float:
    """Parameters of the model as published: what a peer reads from the hub, whatever the trainer made of it."""
    return float(row.row["params_b"]) * 1e9


def ties_embeddings(row: MemoryRow) -> bool:
    """Whether the model's own config shares embedding and head (a trainer may keep them apart)."""
    return row.row["tied_embeddings"] == "1"


def rows_and_length(row: MemoryRow) -> tuple[int, int]:
    """Rows of a micro-batch on one card, and tokens of a row."""
    length = row.case.longest_row_tokens
    return row.case.recipe.micro_batch_tokens // length, length


def checkpoints(row: MemoryRow) -> bool:
    """Whether activations are recomputed."""
    return row.row["grad_checkpointing"] == "y"
