"""Measured speed as inputs of the formulas: one row to its arithmetic, its micro-step and its chip."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from scrimp.calibrate.table import Row
from scrimp.estimate.stack import SpeedStack
from scrimp.estimate.time.arithmetic import Arithmetic, Passes, training_passes
from scrimp.estimate.time.roofline import CONSTANTS, Chip, MicroStep


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRow:
    """A run with its measured speed per GPU."""

    row: Row
    work: Arithmetic
    step: MicroStep
    chip: Chip
    stack: SpeedStack
    tokens_per_s_per_gpu: float

    @property
    def group(self) -> str:
        """Source, GPU, model and method."""
        return self.row["group"]


def time_rows(rows: Iterable[Row], *, bandwidths: Mapping[str, float]) -> Iterator[TimeRow]:
    """Rows of a table of measured speed that are marked for scoring; `bandwidths` in bytes a second by GPU name."""
    for row in rows:
        if row["scored"] == "yes":
            yield TimeRow(
                row=row,
                work=Arithmetic(
                    linear_params=float(row["matmul_params_b"]) * 1e9,
                    head_params=0.0,
                    stored_params=float(row["params_b"]) * 1e9,
                    layers=int(row["n_layers"]),
                    attention_width=int(row["attn_dim"]),
                ),
                step=_micro_step(row),
                chip=_chip(row, bandwidths[row["gpu"]]),
                stack=_speed_stack(row),
                tokens_per_s_per_gpu=float(row["tokens_per_s_per_gpu"]),
            )


def _micro_step(row: Row) -> MicroStep:
    """An unknown length is read as 2,048, an unknown micro-batch as 1 (as when the constants were fitted)."""
    length, gpus = float(row["seq_len"] or 2048), int(row["n_gpus"])
    tokens = length * float(row["micro_batch"] or 1)
    frozen = row["method"] != "full"
    full = row["checkpointing"].startswith("yes")
    passes = training_passes(frozen_base=frozen, checkpointing="full" if full else "none")
    if row["checkpointing"] == "selective":
        # Megatron's kind, which computes attention again; this trainer's keeps it.
        passes = Passes(products=passes.products, attention=passes.attention + 1, weights=passes.weights)
    sharded = any(word in row["parallel"] for word in ("fsdp", "zero3", "full_shard", "shard_grad"))
    return MicroStep(
        tokens=tokens,
        scored_tokens=tokens,
        context_tokens=length,
        passes=passes,
        frozen_base=frozen,
        four_bit={"nf4": "nf4", "gptq-int4": "gptq"}.get(row["quant"], ""),
        sharded_gpus=gpus if sharded else 1,
        gpus=gpus,
        offloads_params="params" in row["offload"],
    )


def _chip(row: Row, bandwidth_bytes_per_s: float) -> Chip:
    gpu, device_class = row["gpu"], row["gpu_class"]
    if row["precision"] in {"fp8", "amp_fp8"} and f"{device_class}_fp8" in CONSTANTS.efficiency:
        device_class = f"{device_class}_fp8"
    nearest = CONSTANTS.nearest_class.get(device_class, "")
    own = CONSTANTS.efficiency.get(device_class)
    nvlink = "SXM" in gpu or gpu.startswith("MI3") or gpu in {"H200-NVL-141GB", "GB200", "GB300", "H20"}
    return Chip(
        peak_flops=float(row["peak_tflops"]) * 1e12,
        efficiency=CONSTANTS.efficiency.get(nearest, CONSTANTS.unmeasured) if own is None else own,
        bandwidth_bytes_per_s=bandwidth_bytes_per_s,
        link_bytes_per_s=CONSTANTS.nvlink_bytes_per_s if nvlink else CONSTANTS.pcie_bytes_per_s,
        measured=own is not None,
    )


def _speed_stack(row: Row) -> SpeedStack:
    stacks: dict[str, SpeedStack] = {"eager": "eager", "megatron": "megatron"}
    return stacks.get(row["stack"], "fused")
