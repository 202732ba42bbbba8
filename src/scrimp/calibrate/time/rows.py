"""Measured speed as inputs of the formulas: one row to its arithmetic, its micro-step and its chip."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import nan

from scrimp.calibrate.table import Row
from scrimp.calibrate.time.shape import plausible, work_of
from scrimp.catalog.devices import devices, find_device
from scrimp.core.errors import SpecError, UnknownNameError
from scrimp.core.market import Device
from scrimp.core.units import TFLOPS
from scrimp.estimate.stack import SpeedStack
from scrimp.estimate.time.arithmetic import Arithmetic, Passes, training_passes
from scrimp.estimate.time.fitted import FittedTime, Spread, spread_of
from scrimp.estimate.time.roofline import Chip, MicroStep, chip_at, nodes_of

# What is read where a row does not say: the usual length and batch of the rows that do.
USUAL_LENGTH_TOKENS, USUAL_ROWS = 2048.0, 1.0
_FP8 = ("fp8", "amp_fp8", "mxfp8", "fp4")
_NODES = re.compile(r"(\d+) nodes", re.IGNORECASE)
_NO_FLASH = "flash attention no"
_STACKS: Mapping[str, SpeedStack] = {
    "eager": "eager",
    "compile": "compiled",
    "fused": "fused",
    "unsloth": "fused",
    "megatron": "megatron",
}
_METHODS_OF_FULL = ("full", "pretrain", "sft")
_SHARDED = ("fsdp", "zero3", "zero-3", "full_shard", "shard_grad")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRow:
    """A run with its measured speed per GPU (not a number: it gives none).

    `micro_batches` is how many of them an optimizer step takes, `trained_params` what one card updates then. `notes`
    says what was assumed where the row is blank.
    """

    row: Row
    work: Arithmetic
    step: MicroStep
    chip: Chip
    device: Device
    fp8: bool
    stack: SpeedStack
    software: str
    micro_batches: float
    trained_params: float
    tokens_per_s_per_gpu: float
    mixture: bool = False
    notes: tuple[str, ...] = ()

    @property
    def spread(self) -> Spread:
        """How it is spread over cards and nodes."""
        return spread_of(tokens=self.step.tokens, cards=self.step.gpus, nodes=self.step.nodes)

    @property
    def group(self) -> str:
        """Source, GPU, model and method."""
        return self.row["group"]

    @property
    def peak_flops(self) -> float:
        """Rated, in the precision of the run."""
        return self.chip.peak_flops


def time_rows(rows: Iterable[Row]) -> Iterator[TimeRow]:
    """Rows of a table of measured speed that are marked for scoring.

    Raises:
        SpecError: a row does not say enough, or says something impossible.
    """
    for row in rows:
        if row["scored"] == "yes":
            yield time_row(row)


def time_row(row: Row, *, fitted: FittedTime | None = None) -> TimeRow:
    """One row; cells may be blank or absent where something usual can be read instead.

    Raises:
        SpecError: the row does not say enough, or says something impossible.
    """
    cells = defaultdict(str, {name: (value or "").strip() for name, value in row.items()})
    notes: list[str] = []
    work, mixture = work_of(cells, notes)
    device, peak_flops, fp8 = _card(cells, notes)
    step = _micro_step(cells, notes)
    return TimeRow(
        row=row,
        work=work,
        step=step,
        chip=chip_at(device, peak_flops=peak_flops, fp8=fp8, fitted=fitted),
        device=device,
        fp8=fp8,
        stack=_speed_stack(cells, notes),
        software=cells["framework"],
        micro_batches=_micro_batches(cells, step),
        trained_params=0.0 if step.frozen_base else work.stored_params / _update_shards(cells, step),
        tokens_per_s_per_gpu=plausible(cells, "tokens_per_s_per_gpu") or nan,
        mixture=mixture,
        notes=tuple(notes),
    )


def under(row: TimeRow, fitted: FittedTime) -> TimeRow:
    """The row with its chip under other constants."""
    return replace(row, chip=chip_at(row.device, peak_flops=row.peak_flops, fp8=row.fp8, fitted=fitted))


def _or(cells: Row, column: str, usual: float, notes: list[str]) -> float:
    found = plausible(cells, column)
    if found is None:
        notes.append(f"{column} read as {usual:g}")
        return usual
    return found


def _card(cells: Row, notes: list[str]) -> tuple[Device, float, bool]:
    """The catalogue's card, its rated peak in the precision of the run, and whether that is fp8."""
    device = _device(cells, notes)
    fp8 = any(word in cells["precision"] for word in _FP8)
    rated = device.fp8_flops if fp8 else device.bf16_flops
    stated = plausible(cells, "peak_tflops")
    peak = stated * TFLOPS if stated else rated or device.fp32_flops
    if not peak or not device.bandwidth_bytes_per_s:
        raise SpecError(
            what=f"neither speed nor bandwidth of {device.name} is established",
            expected="peak_tflops, or another GPU",
            next_step="fill the column peak_tflops",
        )
    if fp8 and not stated and not rated:
        notes.append(f"{device.name} has no fp8 rate: read as 16 bit")
        fp8 = False
    return device, peak, fp8


def _device(cells: Row, notes: list[str]) -> Device:
    """By name; a card that the catalogue does not know stands in for by one of its class."""
    name, device_class = cells["gpu"], cells["gpu_class"]
    alike = sorted((one for one in devices().values() if one.device_class == device_class), key=lambda one: one.name)
    try:
        if name:
            return find_device(name)
    except UnknownNameError as error:
        if not alike:
            raise SpecError(what=error.what, expected=error.expected, next_step=error.next_step) from None
    if not alike:
        raise SpecError(
            what="gpu is blank" if not device_class else f'gpu is blank and gpu_class "{device_class}" is not known',
            expected="a GPU of the catalogue, or the class of one",
            next_step="fill the column gpu; list all: scrimp gpus",
        )
    stated = (plausible(cells, "peak_tflops") or 0.0) * TFLOPS
    found = min(alike, key=lambda one: abs((one.bf16_flops or 0.0) - stated)) if stated else alike[0]
    notes.append(f"{name or 'the GPU'} read as {found.name} by its class")
    return found


def _micro_step(cells: Row, notes: list[str]) -> MicroStep:
    length = _or(cells, "seq_len", USUAL_LENGTH_TOKENS, notes)
    tokens = length * _or(cells, "micro_batch", USUAL_ROWS, notes)
    gpus = max(1, round(_or(cells, "n_gpus", 1.0, notes)))
    frozen = _frozen(cells, notes)
    full = cells["checkpointing"].startswith("yes")
    passes = training_passes(frozen_base=frozen, checkpointing="full" if full else "none")
    if cells["checkpointing"] == "selective":
        # Megatron's kind, which computes attention again; this trainer's keeps it.
        passes = Passes(products=passes.products, attention=passes.attention + 1, weights=passes.weights)
    named_nodes = _NODES.search(cells["notes"])
    return MicroStep(
        tokens=tokens,
        scored_tokens=tokens,
        context_tokens=length,
        passes=passes,
        frozen_base=frozen,
        four_bit=_four_bit(cells),
        sharded_gpus=gpus if any(word in cells["parallel"] for word in _SHARDED) else 1,
        gpus=gpus,
        nodes=max(int(named_nodes[1]) if named_nodes else 1, nodes_of(gpus)),
        offloads_params="params" in cells["offload"],
        writes_scores=_NO_FLASH in cells["notes"].lower(),
    )


def _frozen(cells: Row, notes: list[str]) -> bool:
    method = cells["method"].lower()
    if not method:
        notes.append("method read from rank and quant")
        return bool(cells["rank"]) or bool(_four_bit(cells))
    return not method.startswith(_METHODS_OF_FULL)


def _four_bit(cells: Row) -> str:
    quant = cells["quant"].lower()
    if not quant and cells["method"].lower() == "qlora":
        return "nf4"
    if any(word in quant for word in ("gptq", "awq", "int4")):
        return "gptq"
    return "nf4" if any(word in quant for word in ("nf4", "fp4", "bnb", "4bit")) else ""


def _micro_batches(cells: Row, step: MicroStep) -> float:
    """Of one optimizer step; 1 where the row gives no global batch."""
    rows = step.tokens / step.context_tokens * step.gpus
    return max(1.0, (plausible(cells, "global_batch") or rows) / rows)


def _update_shards(cells: Row, step: MicroStep) -> int:
    """Over how many cards the optimizer's states are spread."""
    spread = step.sharded_gpus > 1 or "zero2" in cells["parallel"] or cells["stack"] == "megatron"
    return step.gpus if spread else 1


def _speed_stack(cells: Row, notes: list[str]) -> SpeedStack:
    name = cells["stack"].lower()
    if not name:
        notes.append("stack read as eager")
        return "eager"
    try:
        return _STACKS[name]
    except KeyError:
        raise SpecError(
            what=f'stack "{name}" is not known',
            expected=f"one of {', '.join(_STACKS)}",
            next_step="correct the column stack, or leave it blank",
        ) from None
