"""A recipe: every decision that training needs, resolved. Nothing in it is `auto`."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from scrimp.core.data import StepPlan
from scrimp.core.job import DataSpec, MethodChoice, ProbeChoice, Schedule

WeightDtype = Literal["bf16", "fp32", "fp16", "nf4", "int8"]
ComputeDtype = Literal["bf16", "fp32", "fp16"]
Layout = Literal["packed", "padded"]
LossCode = Literal["selected", "full", "fused"]
# `fsdp` slices weights, gradients and states (ZeRO-3 does the same), `zero2` gradients and states alone.
Sharding = Literal["none", "ddp", "zero2", "fsdp"]
Checkpointing = Literal["none", "selective", "full"]
Optimizer = Literal["adamw", "adamw_8bit", "paged_adamw", "paged_adamw_8bit", "sgd"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one job is trained on one kind of machine.

    One optimizer step takes `batch_rows` rows (or fills `batch_tokens`), split into micro-batches of at most
    `micro_batch_tokens` tokens (one row always fits). `packed` lays the rows of a micro-batch end to end without
    padding and keeps them apart in attention; `padded` is for models whose attention cannot be told so.
    `loss`: `selected` computes logits only where there is a label, `full` everywhere. `checkpointing`: what backward
    needs is kept (`none`), kept where it is dear to compute and computed again elsewhere (`selective`), or computed
    again from the inputs of the layers (`full`); the result is the same.
    """

    model: str
    method: MethodChoice
    weight_dtype: WeightDtype
    compute_dtype: ComputeDtype
    layout: Layout
    loss: LossCode
    sharding: Sharding
    optimizer: Optimizer
    checkpointing: Checkpointing
    max_length_tokens: int
    batch_rows: int
    batch_tokens: int | None
    micro_batch_tokens: int
    epochs: float
    max_steps: int | None
    learning_rate: float
    schedule: Schedule
    warmup_steps: int
    weight_decay: float
    clip_norm: float
    seed: int
    eval_every_steps: int | None
    checkpoint_every_steps: int | None
    keep_checkpoints: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedJob:
    """All that `scrimp train` reads on the machine that trains: no price list and no planner behind it.

    `steps` was counted by the planner; the trainer counts again and refuses to start when the two differ. `probe`: see
    `TrainingSpec`; `only` ends the attempt after the probe.
    """

    run_id: str
    name: str
    recipe: Recipe
    data: DataSpec
    steps: StepPlan
    run_folder: str
    sample_prompts: tuple[str, ...] = ()
    price_usd_per_hour: Decimal | None = None
    spent_before_usd: Decimal = Decimal(0)
    budget_usd: Decimal | None = None
    deadline_s: float | None = None
    forecast_peak_bytes: float | None = None
    threads: int | None = None
    probe: ProbeChoice = "auto"
