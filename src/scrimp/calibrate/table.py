"""Tables of measured runs: read from CSV, and what no formula reads of a recipe."""

import csv
from collections.abc import Mapping, Sequence
from datetime import date
from math import inf, nan
from pathlib import Path

from scrimp.core.errors import SpecError
from scrimp.core.job import MethodChoice
from scrimp.core.recipe import Recipe

Row = Mapping[str, str]

# What no formula of memory or speed reads is filled in here.
BLANK_RECIPE = Recipe(
    model="",
    method=MethodChoice(name="lora"),
    weight_dtype="bf16",
    compute_dtype="bf16",
    layout="packed",
    loss="full",
    sharding="none",
    optimizer="adamw",
    checkpointing="none",
    max_length_tokens=8192,
    batch_rows=1,
    batch_tokens=None,
    micro_batch_tokens=1,
    epochs=1.0,
    max_steps=None,
    learning_rate=1e-4,
    schedule="cosine",
    warmup_steps=0,
    weight_decay=0.0,
    clip_norm=1.0,
    seed=0,
    eval_every_steps=None,
    checkpoint_every_steps=None,
    keep_checkpoints=1,
)


def read_table(path: Path) -> list[Row]:
    """Rows of a CSV file, every value as text."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def number(row: Row, column: str, *, default: float | None = None) -> float:
    """A number out of a cell; `default` where it is blank.

    Raises:
        SpecError: the cell is no finite positive number, or blank without a default.
    """
    text = row.get(column, "").strip()
    if not text and default is not None:
        return default
    try:
        value = float(text.removeprefix("<="))
    except ValueError:
        value = nan
    if not 0 < value < inf:
        raise SpecError(
            what=f'{column} is "{text}"' if text else f"{column} is blank",
            expected="a number above zero",
            next_step=f"fill the column {column}",
        )
    return value


def row_key(row: Row) -> str:
    """What the row is called: its `id` or `row_id`."""
    return row.get("id") or row.get("row_id") or ""


def source_of(groups: Sequence[str], *, table: str, today: date) -> dict[str, str | int]:
    """Where a fit comes from, for its file: `groups` names the group of every row."""
    return {
        "rows": len(groups),
        "groups": len({*groups}),
        "table": f"calibration/{table}",
        "date": today.isoformat(),
        "written_by": "make calibrate",
    }
