"""What the user asks for: a JobSpec, with every option and its default."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

Scalar = str | int | float | bool | None
OptionValue = Scalar | tuple[str, ...]
OverlongPolicy = Literal["drop", "truncate_left", "truncate_right", "error"]
TrainOn = Literal["answers", "last_answer", "all"]
Schedule = Literal["constant", "linear", "cosine"]
Precision = Literal["auto", "bf16", "fp32", "fp16"]
Switch = Literal["auto", "on", "off"]
ProbeChoice = Literal["auto", "on", "off", "only"]
SpotChoice = Literal["auto", "only", "never"]
Where = Literal["local", "cloud", "any"]
Objective = Literal["cheapest", "fastest"]
Tier = Literal["hyperscaler", "specialised", "community", "marketplace", "aggregator", "serverless", "local"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSpec:
    """Which rows to learn from and how they become tokens."""

    path: str
    eval_path: str | None = None
    eval_share: float = 0.05
    split: str = "train"
    shape: Literal["auto", "alpaca", "sharegpt", "messages", "prompt_completion", "text"] = "auto"
    max_length_tokens: int = 2048
    overlong: OverlongPolicy = "drop"
    train_on: TrainOn = "answers"
    system_prompt: str | None = None
    max_rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodChoice:
    """A tuning method by its file name in `methods/`, and that method's own options; `auto` tries them all."""

    name: str = "auto"
    options: Mapping[str, OptionValue] = field(default_factory=dict[str, OptionValue])


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSpec:
    """How to optimise. `None` means: chosen by the planner from the method, the data and the machine.

    `batch_rows` rows make one optimizer step; `batch_tokens`, when given, fills steps by tokens instead.
    """

    epochs: float = 1.0
    max_steps: int | None = None
    batch_rows: int = 8
    batch_tokens: int | None = None
    micro_batch_tokens: int | None = None
    learning_rate: float | None = None
    schedule: Schedule = "cosine"
    warmup_share: float = 0.03
    weight_decay: float = 0.0
    clip_norm: float = 1.0
    seed: int = 0
    precision: Precision = "auto"
    packing: Switch = "auto"
    checkpointing: Literal["auto", "none", "selective", "full"] = "auto"
    optimizer: Literal["auto", "adamw", "adamw_8bit", "paged_adamw", "paged_adamw_8bit", "sgd"] = "auto"
    eval_every_steps: int | None = None
    checkpoint_every_steps: int | None = None
    keep_checkpoints: int = 2
    probe: Switch = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsSpec:
    """Caps that the plan must meet and the run must hold."""

    budget_usd: Decimal | None = None
    deadline_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketSpec:
    """Which offers may be considered. Empty tuples mean: all."""

    where: Where = "any"
    gpus: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    tiers: tuple[Tier, ...] = ()
    max_gpus: int = 8
    spot: SpotChoice = "auto"
    max_price_usd_per_hour: Decimal | None = None
    max_price_age_s: float | None = None
    objective: Objective = "cheapest"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalMachineSpec:
    """What an hour of this machine costs: its own price, plus electricity at the given load.

    Defaults: a 2-vCPU cloud machine of the class that CI runs on (about 0.10 USD an hour), US average electricity
    for commercial users (0.13 USD per kWh, EIA Electric Power Monthly 2025), world-average grid (475 g, IEA 2019).
    """

    price_usd_per_hour: Decimal = Decimal("0.10")
    power_w: float = 60.0
    electricity_usd_per_kwh: Decimal = Decimal("0.13")
    grid_gco2e_per_kwh: float = 475.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """One fine-tuning job as the user wrote it."""

    model: str
    data: DataSpec
    name: str = "job"
    project: str = "default"
    method: MethodChoice = MethodChoice()
    training: TrainingSpec = TrainingSpec()
    limits: LimitsSpec = LimitsSpec()
    market: MarketSpec = MarketSpec()
    local: LocalMachineSpec = LocalMachineSpec()
    sample_prompts: tuple[str, ...] = ()
    output_dir: str = "runs"
