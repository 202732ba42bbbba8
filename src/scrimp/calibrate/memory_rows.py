"""Measured memory as inputs of the formulas: one row to the model, recipe and software it stands for.

What differs between trainers is said here and nowhere else, as a `Stack`; the formulas are the product's own.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from scrimp.calibrate.table import BLANK_RECIPE, Row
from scrimp.core.job import MethodChoice
from scrimp.core.model import ModelShape
from scrimp.core.recipe import LossCode, Recipe, WeightDtype
from scrimp.estimate.memory.case import MemoryCase
from scrimp.estimate.stack import AdapterMath, OptimizerStep, Stack
from scrimp.estimate.tuning import Tuning
from scrimp.methods.linear import Linear, linears

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


def memory_rows(rows: Iterable[Row]) -> Iterator[MemoryRow]:
    """Rows that the formulas can speak of: known shape, known method, 16-bit or NF4 weights."""
    for row in rows:
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
        BLANK_RECIPE,
        model=row["model"],
        method=MethodChoice(name=row["method"]),
        weight_dtype=weights,
        loss=loss,
        sharding="fsdp" if sharded else "none",
        checkpointing="full" if row["grad_checkpointing"] == "y" else "none",
        micro_batch_tokens=micro_batch_tokens,
    )


def _capacity_gib(row: Row) -> float | None:
    """Usable memory of the card: from the row that ran out of it, else from the size in the card's name."""
    if row["metric"] == "OOM on":
        nominal = float(row["measured_gib"])
    else:
        nominal = next((float(size) for size in ("80", "48", "40", "24") if f"{size}GB" in row["gpu"]), 0.0)
    return USABLE_GIB.get(nominal)
