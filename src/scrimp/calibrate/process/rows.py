"""Measured runs of this project's own trainer on CPUs as inputs of the formulas."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from scrimp.calibrate.table import BLANK_RECIPE, Row
from scrimp.catalog.local import cpu_device
from scrimp.core.job import MethodChoice
from scrimp.core.market import Device
from scrimp.core.model import ModelShape
from scrimp.core.recipe import WeightDtype
from scrimp.core.units import GIB
from scrimp.estimate.memory.case import MemoryCase
from scrimp.estimate.stack import ONE_MICRO_BATCH_ON_CPU
from scrimp.estimate.tuning import tuning_of

_WEIGHTS: dict[str, WeightDtype] = {"bf16": "bf16", "fp32": "fp32", "nf4": "nf4"}
# What the trainer keeps of oneDNN's kernels (train/process.py).
_KERNELS_KEPT = "64"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    """A run of this project's trainer on a CPU, with the class of machine it ran on."""

    row: Row
    case: MemoryCase
    device: Device

    @property
    def is_of_this_trainer(self) -> bool:
        """Whether its memory is the trainer's as it is now: rows of all lengths took more while all kernels were kept.

        With equal rows there is one set of kernels, however many are kept.
        """
        return self.row["rows"] == "equal" or self.row["kernels_kept"] == _KERNELS_KEPT

    @property
    def growing_steps(self) -> int:
        """Steps with rows of all lengths, which let the heap grow."""
        return 0 if self.row["rows"] == "equal" else int(self.row["steps"])


def process_rows(rows: Iterable[Row]) -> Iterator[ProcessRow]:
    """Rows of a table of measured processes."""
    for row in rows:
        yield ProcessRow(row=row, case=_process_case(row), device=_measured_cpu(row["isa"], int(row["threads"])))


def _process_case(row: Row) -> MemoryCase:
    shape = ModelShape(
        name=row["model"],
        family="llama",
        hidden=int(row["hidden"]),
        layers=int(row["layers"]),
        heads=int(row["heads"]),
        kv_heads=int(row["kv_heads"]),
        head_dim=int(row["head_dim"]),
        intermediate=int(row["intermediate"]),
        vocab=int(row["vocab"]),
        max_positions_tokens=8192,
        tied_embeddings=True,
    )
    tokens = int(row["micro_batch_tokens"])
    recipe = replace(
        BLANK_RECIPE,
        method=MethodChoice(name=row["method"]),
        weight_dtype=_WEIGHTS[row["weight_dtype"]],
        compute_dtype="fp32" if row["compute_dtype"] == "fp32" else "bf16",
        loss="selected",
        checkpointing="full" if row["checkpointing"] == "y" else "none",
        micro_batch_tokens=tokens,
    )
    return MemoryCase(
        shape=shape,
        recipe=recipe,
        tuning=tuning_of(shape, recipe.method),
        gpus=1,
        longest_row_tokens=int(row["longest_row_tokens"]),
        trained_share=float(row["scored_share"]),
        # Every step of theirs was one micro-batch.
        stack=ONE_MICRO_BATCH_ON_CPU,
    )


def _measured_cpu(isa: str, threads: int) -> Device:
    """A machine of those rows, as the catalogue knows its class."""
    return cpu_device(f"flags : {isa}", memory_bytes=24 * GIB, cores=threads)
