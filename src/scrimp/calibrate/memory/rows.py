"""Measured memory as inputs of the formulas: one row to the model, recipe and software it stands for."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from scrimp.calibrate.memory.shape import shape_of
from scrimp.calibrate.memory.software import (
    checkpointing_of,
    is_litgpt,
    loss_of,
    optimizer_of,
    sharding_of,
    stack_of,
    weight_dtype_of,
)
from scrimp.calibrate.table import BLANK_RECIPE, Row, number
from scrimp.catalog.devices import find_device
from scrimp.core.errors import SpecError, UnknownNameError
from scrimp.core.job import MethodChoice
from scrimp.core.model import ModelShape
from scrimp.estimate.memory.case import MemoryCase
from scrimp.estimate.tuning import Tuning
from scrimp.methods.linear import Linear, linears

Figure = Literal["allocated", "reserved", "device", "unstated"]

# Memory that a driver reports, for cards whose rows give the nominal size: GiB by nominal GB.
USABLE_GIB = {80.0: 79.15, 96.0: 95.0, 64.0: 61.0, 48.0: 44.4, 40.0: 39.4, 32.0: 31.7, 24.0: 22.0, 16.0: 14.6, 8.0: 7.6}
_USABLE_SHARE = 0.92
_SIZE_OF_CARD = re.compile(r"(?<!\d)(\d+)\s*GB", re.IGNORECASE)
_CARD_GB = {"T4": 16.0, "A10G": 24.0, "4090": 24.0, "3090": 24.0, "4070Ti SUPER": 16.0, "A6000": 48.0, "A40": 48.0}
_ATTENTION = ("q_proj", "k_proj", "v_proj")
_TARGETS = {
    "q,v": ("q_proj", "v_proj"),
    "q_proj|v_proj": ("q_proj", "v_proj"),
    "q,k,v": _ATTENTION,
    "q,k,v,o": (*_ATTENTION, "o_proj"),
    "q,k,v,gate,up,down": (*_ATTENTION, "gate_proj", "up_proj", "down_proj"),
    "attention qkv (DEFAULT)": _ATTENTION,
    "c_attn": _ATTENTION,
    "down_proj|gate_proj|up_proj": ("gate_proj", "up_proj", "down_proj"),
}
_ALL_LINEARS = ("q,k,v,o,mlp", "c_attn,c_proj,w1,w2", "all linear", "all-linear")
# lit-gpt and litgpt set this in their scripts and in every file of config_hub/finetune.
_LITGPT_DROPOUT = 0.05
# What is trained where the name does not say so: all weights, or all in turn. Everything else freezes the base.
_LIKE_FULL = {"full", "galore", "lisa", "badam", "osf", "llamapro"}
_MODELLED = {"full", "lora", "qlora", "lora+emb"}
# LoRA-FA and MiCA keep or train other tensors than LoRA does.
_VARIANTS = ("lora-fa", "mica")
_LENGTH_UNKNOWN = ("not stated", "not recorded", "assumed")
# A batch whose length nobody wrote down is as long as most published ones; rows one at a time.
_USUAL_LENGTH_TOKENS, _USUAL_ROWS = 2048, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    """A run as a case for the formulas, with what its `metric` names and how it is to be read.

    `figure` is which of the forecast's figures answers the row; `lengths_vary` says that batches differed in length;
    `method` is what was trained, `modelled` whether the formulas know it or take it for its nearest kin; `notes` name
    what was assumed. `measured_gib` is None in a row without an answer; `ran` is False for a run that ended out of
    memory on `capacity_gib`, what a card of `nominal_gb` lets a job have.
    """

    row: Row
    case: MemoryCase
    figure: Figure
    lengths_vary: bool
    method: str
    modelled: bool
    notes: tuple[str, ...]
    measured_gib: float | None
    smi_gib: float | None
    nominal_gb: float | None
    capacity_gib: float | None
    ran: bool

    @property
    def fills_card(self) -> bool:
        """Whether the run was made as long as the card just held: its figure is the card's size."""
        return self.row["metric"].startswith("fits on")

    @property
    def group(self) -> str:
        """Errors are averaged within a group first: some have 60 rows of one model."""
        return self.row["group"]


def memory_rows(rows: Iterable[Row]) -> Iterator[MemoryRow]:
    """The rows that forecasts are graded on: all that a case can be made of."""
    for row in rows:
        try:
            yield memory_row(row)
        except SpecError:
            continue


def memory_row(row: Row) -> MemoryRow:
    """One row as a case.

    Raises:
        SpecError: the row does not say enough, or says something impossible.
    """
    shape, shape_note = shape_of(row)
    method, nominal_gb = _method(row), _nominal_gb(row)
    length, length_note = _length_tokens(row)
    assumed = [shape_note, length_note, "" if row["micro_batch"] else f"{_USUAL_ROWS} row a micro-batch assumed"]
    return MemoryRow(
        row=row,
        case=_case(row, shape, method, length),
        figure=_figure(row),
        lengths_vary="vary" in row["length_note"] or row["length_note"].startswith("variable"),
        method=method,
        modelled=method in _MODELLED,
        notes=tuple(note for note in assumed if note),
        measured_gib=number(row, "measured_gib") if row["measured_gib"] else None,
        smi_gib=number(row, "smi_gib") if row["smi_gib"] else None,
        nominal_gb=nominal_gb,
        capacity_gib=_capacity_gib(nominal_gb),
        ran=row["metric"] != "OOM on",
    )


def figure_of(metric: str) -> Figure:
    """Which figure a metric names: torch's peaks, what the driver says, or what was printed without saying what."""
    if metric.startswith("torch"):
        return "reserved" if "reserved" in metric and "active" not in metric else "allocated"
    return "device" if metric == "nvidia-smi" else "unstated"


def _figure(row: Row) -> Figure:
    """As the metric says; but what a driver saw of batches nobody knows the length of says little about the driver."""
    figure = figure_of(row["metric"])
    unknown = any(word in row["length_note"] for word in _LENGTH_UNKNOWN)
    return "unstated" if figure == "device" and unknown else figure


def _case(row: Row, shape: ModelShape, method: str, length_tokens: int) -> MemoryCase:
    full = method in _LIKE_FULL
    adapted = () if full else _adapted(row, shape)
    rows = int(number(row, "micro_batch", default=float(_USUAL_ROWS)))
    recipe = replace(
        BLANK_RECIPE,
        model=row["model"],
        method=MethodChoice(name="full" if full else "lora"),
        weight_dtype=weight_dtype_of(row),
        loss=loss_of(row),
        sharding=sharding_of(row),
        optimizer=optimizer_of(row),
        checkpointing=checkpointing_of(row),
        micro_batch_tokens=length_tokens * rows,
    )
    return MemoryCase(
        shape=shape,
        recipe=recipe,
        tuning=Tuning(
            frozen_base=not full,
            trainable_params=shape.params if full else _adapter_params(row, shape, adapted),
            adapted=adapted,
            dropout=_LITGPT_DROPOUT if is_litgpt(row) else 0.0,
        ),
        gpus=int(number(row, "n_gpus", default=1.0)),
        longest_row_tokens=length_tokens,
        trained_share=1.0,
        stack=stack_of(row),
    )


def _method(row: Row) -> str:
    variant = any(word in row["optimizer"] or word in row["notes"] for word in _VARIANTS)
    if variant:
        return "lora-fa"
    if not row["method"]:
        raise SpecError(what="method is blank", expected="full, lora, qlora ...", next_step="fill the column method")
    return row["method"]


def _length_tokens(row: Row) -> tuple[int, str]:
    if not row["seq_len"]:
        return _USUAL_LENGTH_TOKENS, f"{_USUAL_LENGTH_TOKENS} tokens a row assumed"
    length = int(number(row, "seq_len"))
    return length, f"rows of the limit, {length} tokens, assumed" if row["seq_len"].startswith("<=") else ""


def _adapted(row: Row, shape: ModelShape) -> tuple[Linear, ...]:
    """Adapters sit on all layers when the row names the feed-forward block too, and on q and v when it says nothing."""
    named = row["target_modules"]
    everything = tuple(linear.name for linear in linears(shape))
    names = everything if named.startswith(_ALL_LINEARS) else _TARGETS.get(named, ("q_proj", "v_proj"))
    return tuple(linear for linear in linears(shape) if linear.name in names)


def _adapter_params(row: Row, shape: ModelShape, adapted: tuple[Linear, ...]) -> int:
    """As stated, else rank x (in + out); `lora+emb` trains embedding and head besides."""
    embeddings = 2 * shape.embedding_params if row["method"] == "lora+emb" else 0
    if row["trainable_params"]:
        return int(number(row, "trainable_params")) + embeddings
    rank = int(number(row, "lora_rank", default=8.0))
    head = rank * (shape.hidden + shape.vocab) if "lm_head" in row["target_modules"] else 0
    return embeddings + head + sum(rank * (linear.in_width + linear.out_width) * linear.copies for linear in adapted)


def _nominal_gb(row: Row) -> float | None:
    """The card's size in GB-class: from the row that ran out of it, else from the card's name."""
    if row["metric"] == "OOM on" and row["measured_gib"]:
        return number(row, "measured_gib")
    gpu = row["gpu"]
    sized = _SIZE_OF_CARD.search(gpu)
    if sized:
        return float(sized[1])
    named = next((size for name, size in _CARD_GB.items() if name in gpu), None)
    if named or not gpu:
        return named
    try:
        return round(find_device(gpu.partition(" (")[0]).memory_bytes / 0.94 / 1e9)
    except UnknownNameError:
        return None


def _capacity_gib(nominal_gb: float | None) -> float | None:
    """What a driver reports of a card of that size: measured for the usual ones."""
    return None if nominal_gb is None else USABLE_GIB.get(nominal_gb, nominal_gb * _USABLE_SHARE)
