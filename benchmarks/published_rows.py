"""Published runs as inputs of the formulas: one row of calibration/ to the model, recipe and software it stands for.

What differs between trainers is said here and nowhere else, as a `Stack`; the formulas are the product's own.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from scrimp.catalog.local import cpu_device
from scrimp.core.job import MethodChoice
from scrimp.core.market import Device
from scrimp.core.model import ModelShape
from scrimp.core.recipe import LossCode, Recipe, WeightDtype
from scrimp.core.units import GIB
from scrimp.estimate.arithmetic import Arithmetic, Passes, training_passes
from scrimp.estimate.memory_case import MemoryCase
from scrimp.estimate.roofline import CONSTANTS, Chip, MicroStep
from scrimp.estimate.stack import TRAINER_ON_CPU, AdapterMath, OptimizerStep, SpeedStack, Stack
from scrimp.estimate.tuning import Tuning, tuning_of
from scrimp.methods.linear import Linear, linears

_WEIGHTS: dict[str, WeightDtype] = {"bf16": "bf16", "fp32": "fp32"}
CALIBRATION = Path(__file__).parents[1] / "calibration"
Row = Mapping[str, str]

# Memory that a driver reports, for cards whose rows give the nominal size: GiB by nominal GB.
USABLE_GIB = {80.0: 79.15, 40.0: 39.4, 24.0: 22.0, 48.0: 44.4, 32.0: 31.7}
_ATTENTION = ("q_proj", "k_proj", "v_proj")
_TARGETS = {
    "q,v": ("q_proj", "v_proj"),
    "q_proj|v_proj": ("q_proj", "v_proj"),
    "q,k,v,o": (*_ATTENTION, "o_proj"),
    "attention qkv (DEFAULT)": _ATTENTION,
    "c_attn": _ATTENTION,
    "down_proj|gate_proj|up_proj": ("gate_proj", "up_proj", "down_proj"),
}
# lit-gpt and litgpt set this in their scripts and in every file of config_hub/finetune.
_LITGPT_DROPOUT = 0.05
# Experts and how many of them a token passes.
_EXPERTS = {"mistralai/Mixtral-8x7B": (8, 2)}
_KNOWN_METHODS = {"full", "lora", "qlora"}
# LoRA-FA and MiCA keep or train other tensors than LoRA does.
_VARIANTS = ("lora-fa", "mica")


# What no formula of memory or speed reads is filled in here.
_BLANK = Recipe(
    model="",
    method=MethodChoice(name="lora"),
    weight_dtype="bf16",
    compute_dtype="bf16",
    layout="packed",
    loss="full",
    sharding="none",
    optimizer="adamw",
    gradient_checkpointing=False,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    """A run with its measured peak. `ran` is False for a run that ended out of memory on `capacity_gib`."""

    row: Row
    case: MemoryCase
    measured_gib: float
    smi_gib: float | None
    capacity_gib: float | None
    ran: bool

    @property
    def group(self) -> str:
        """Errors are averaged within a group first: some have 60 rows of one model."""
        return self.row["group"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    """A run of this project's trainer on a CPU, with the class of machine it ran on."""

    row: Row
    case: MemoryCase
    device: Device


def read(name: str) -> list[Row]:
    """Rows of a table in calibration/."""
    with (CALIBRATION / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def memory_rows() -> Iterator[MemoryRow]:
    """Rows of measured_memory.csv that the formulas can speak of: known shape, known method, 16-bit or NF4 weights."""
    for row in read("measured_memory.csv"):
        if row["method"] not in _KNOWN_METHODS or not row["hidden"] or not row["measured_gib"]:
            continue
        quant_known = row["quant"] in {"none", "nf4", "nf4+dq"}
        variant = any(word in row["optimizer"] or word in row["notes"] for word in _VARIANTS)
        if not quant_known or variant or not row["micro_batch"] or not row["seq_len"]:
            continue
        yield MemoryRow(
            row=row,
            case=memory_case(row),
            measured_gib=float(row["measured_gib"]),
            smi_gib=float(row["smi_gib"]) if row["smi_gib"] else None,
            capacity_gib=_capacity_gib(row),
            ran=row["metric"] != "OOM on",
        )


def memory_case(row: Row) -> MemoryCase:
    """The model, recipe and software of one row."""
    shape = shape_of(row)
    full = row["method"] == "full"
    adapted = () if full else _adapted(row, shape)
    tokens = int(row["seq_len"].removeprefix("<="))
    return MemoryCase(
        shape=shape,
        recipe=_recipe(row, micro_batch_tokens=tokens * int(row["micro_batch"])),
        tuning=Tuning(
            frozen_base=not full,
            trainable_params=shape.params if full else _adapter_params(row, shape, adapted),
            adapted=adapted,
            dropout=_LITGPT_DROPOUT if _is_litgpt(row) else 0.0,
        ),
        gpus=int(row["n_gpus"]),
        longest_row_tokens=tokens,
        trained_share=1.0,
        stack=stack_of(row),
    )


def shape_of(row: Row) -> ModelShape:
    """The model's shape; the head width is the one of three usual ones that reproduces the parameter count best."""
    hidden, heads = int(row["hidden"]), int(row["heads"])
    tied = row["tied_embeddings"] == "1"
    experts, active = _EXPERTS.get(row["model"], (0, 0))
    shapes = [
        ModelShape(
            name=row["model"],
            family="",
            hidden=hidden,
            layers=int(row["layers"]),
            heads=heads,
            kv_heads=int(row["kv_heads"]),
            head_dim=head_dim,
            intermediate=int(row["intermediate"]),
            vocab=int(row["vocab"]),
            max_positions_tokens=int(row["seq_len"].removeprefix("<=")),
            tied_embeddings=tied,
            gated_mlp=row["gated_mlp"] == "1",
            experts=experts,
            experts_active=active,
        )
        for head_dim in (hidden // heads, 128, 256)
    ]
    best = min(shapes, key=lambda shape: abs(shape.params / 1e9 - float(row["params_b"])))
    # lit-gpt keeps embedding and head apart whatever the model's own files say.
    return replace(best, tied_embeddings=tied and not _is_litgpt(row))


def stack_of(row: Row) -> Stack:
    """What the row says of its software."""
    litgpt = _is_litgpt(row)
    adapter_math: AdapterMath = "base" if litgpt else "autocast" if row["amp"] == "bf16" else "fp32"
    optimizer: OptimizerStep = "foreach"
    if "backward" in row["optimizer"]:
        optimizer = "in_backward"
    elif "Paged" in row["optimizer"]:
        optimizer = "paged"
    elif row["source"] == "torchtune-flags":
        optimizer = "fused"
    return Stack(
        name=row["source"],
        adapter_math=adapter_math,
        optimizer_step=optimizer,
        full_loss_bytes=_loss_bytes(row),
        accumulates=row["grad_accum"] not in {"", "1"},
        kernels="fused" if "compile" in row["framework"] else "eager",
        upcasts_16bit="baseline-peft-bnb" in row["notes"],
        keeps_packed_inputs="before 0.43.2 keeps" in row["notes"],
        # All published rows are older than transformers 5.
        packs_experts=True,
        fused_qkv=litgpt,
        repeats_kv=litgpt,
    )


def time_rows() -> Iterator[TimeRow]:
    """Rows of measured_time.csv that are marked for scoring."""
    bandwidths = {row["gpu"]: float(row["bandwidth_gb_s"]) * 1e9 for row in read("gpu_bandwidth.csv")}
    for row in read("measured_time.csv"):
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


def process_rows() -> Iterator[ProcessRow]:
    """Rows of measured_process.csv."""
    for row in read("measured_process.csv"):
        yield ProcessRow(row=row, case=_process_case(row), device=_measured_cpu(int(row["threads"])))


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
        _BLANK,
        method=MethodChoice(name=row["method"]),
        weight_dtype=_WEIGHTS[row["weight_dtype"]],
        compute_dtype="fp32" if row["compute_dtype"] == "fp32" else "bf16",
        loss="selected",
        gradient_checkpointing=row["checkpointing"] == "y",
        micro_batch_tokens=tokens,
    )
    return MemoryCase(
        shape=shape,
        recipe=recipe,
        tuning=tuning_of(shape, recipe.method),
        gpus=1,
        longest_row_tokens=int(row["longest_row_tokens"]),
        trained_share=float(row["scored_share"]),
        stack=TRAINER_ON_CPU,
    )


def _measured_cpu(threads: int) -> Device:
    """The machine of those rows, as the catalogue knows its class."""
    return cpu_device("flags : avx512_bf16", memory_bytes=24 * GIB, cores=threads)


def _is_litgpt(row: Row) -> bool:
    return "litgpt" in row["framework"] or "lit-gpt" in row["framework"]


def _loss_bytes(row: Row) -> float:
    note, framework = row["loss_note"], row["framework"]
    if "fused CE" in note and "linear" not in note:
        return 8.0
    if "chunk" in note.lower():
        return 4.0
    keeps_16bit_logits = any(f"transformers 4.{minor}" in framework for minor in range(46, 58))
    return 14.0 if keeps_16bit_logits else 12.0


def _adapted(row: Row, shape: ModelShape) -> tuple[Linear, ...]:
    """Adapters sit on all layers when the row names the feed-forward block too, and on q and v when it says nothing."""
    named = row["target_modules"]
    everything = tuple(linear.name for linear in linears(shape))
    whole = named.startswith("q,k,v,o,mlp") or named in {"c_attn,c_proj,w1,w2", "all linear"}
    names = everything if whole else _TARGETS.get(named, ("q_proj", "v_proj"))
    return tuple(linear for linear in linears(shape) if linear.name in names)


def _adapter_params(row: Row, shape: ModelShape, adapted: tuple[Linear, ...]) -> int:
    rank = int(float(row["lora_rank"] or 8))
    head = rank * (shape.hidden + shape.vocab) if "lm_head" in row["target_modules"] else 0
    return head + sum(rank * (linear.in_width + linear.out_width) * linear.copies for linear in adapted)


def _recipe(row: Row, *, micro_batch_tokens: int) -> Recipe:
    sharded = "fsdp" in row["sharding"] and int(row["n_gpus"]) > 1
    weights: WeightDtype = (
        "nf4" if row["quant"].startswith("nf4") else "fp32" if row["weight_dtype"] == "fp32" else "bf16"
    )
    if sharded and row["method"] == "full" and row["amp"] == "bf16":
        # Accelerate's FSDP with mixed precision keeps trained weights in fp32.
        weights = "fp32"
    liger = "liger" in row["loss_note"] or "cut cross" in row["loss_note"]
    loss: LossCode = "fused" if liger else "full"
    return replace(
        _BLANK,
        model=row["model"],
        method=MethodChoice(name=row["method"]),
        weight_dtype=weights,
        loss=loss,
        sharding="fsdp" if sharded else "none",
        gradient_checkpointing=row["grad_checkpointing"] == "y",
        micro_batch_tokens=micro_batch_tokens,
    )


def _capacity_gib(row: Row) -> float | None:
    """Usable memory of the card: from the row that ran out of it, else from the size in the card's name."""
    if row["metric"] == "OOM on":
        nominal = float(row["measured_gib"])
    else:
        nominal = next((float(size) for size in ("80", "48", "40", "24") if f"{size}GB" in row["gpu"]), 0.0)
    return USABLE_GIB.get(nominal)


def _micro_step(row: Row) -> MicroStep:
    """An unknown length is read as 2,048, an unknown micro-batch as 1 (as when the constants were fitted)."""
    length, gpus = float(row["seq_len"] or 2048), int(row["n_gpus"])
    tokens = length * float(row["micro_batch"] or 1)
    frozen = row["method"] != "full"
    passes = training_passes(frozen_base=frozen, checkpointing=row["checkpointing"].startswith("yes"))
    if row["checkpointing"] == "selective":
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
