"""Builders with defaults: a Llama shape, a recipe, devices, a load, an offer, terms."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

from scrimp.core.data import DataProfile, StepPlan
from scrimp.core.job import MethodChoice
from scrimp.core.market import Device, GridFactor, GridMethod, Offer, ProviderTerms
from scrimp.core.model import ModelShape
from scrimp.core.recipe import Recipe
from scrimp.core.units import GIB
from scrimp.estimate.memory.case import MemoryCase
from scrimp.estimate.stack import TRAINER
from scrimp.estimate.time.token_load import TokenLoad
from scrimp.estimate.tuning import tuning_of

TODAY = date(2026, 12, 1)

LLAMA_8B = ModelShape(
    name="8B",
    family="llama",
    hidden=4096,
    layers=32,
    heads=32,
    kv_heads=8,
    head_dim=128,
    intermediate=14336,
    vocab=128256,
    max_positions_tokens=8192,
    tied_embeddings=False,
)

RECIPE = Recipe(
    model="8B",
    method=MethodChoice(name="lora"),
    weight_dtype="bf16",
    compute_dtype="bf16",
    layout="packed",
    loss="selected",
    sharding="none",
    optimizer="adamw",
    checkpointing="none",
    max_length_tokens=2048,
    batch_rows=8,
    batch_tokens=None,
    micro_batch_tokens=4096,
    epochs=1.0,
    max_steps=None,
    learning_rate=2e-4,
    schedule="cosine",
    warmup_steps=3,
    weight_decay=0.0,
    clip_norm=1.0,
    seed=0,
    eval_every_steps=None,
    checkpoint_every_steps=50,
    keep_checkpoints=2,
)

A100 = Device(
    name="A100-SXM4-80GB",
    kind="gpu",
    vendor="NVIDIA",
    architecture="Ampere",
    device_class="dc_ampere",
    memory_bytes=80 * GIB,
    bandwidth_bytes_per_s=2.039e12,
    bf16_flops=312e12,
    fp32_flops=19.5e12,
    fp8_flops=None,
    power_w=400.0,
    nvlink_bytes_per_s=600e9,
    supports_bf16=True,
    supports_flash_attention=True,
    aliases=(),
    source="test",
)

CPU = replace(
    A100,
    name="CPU 2 cores (AMX)",
    kind="cpu",
    device_class="cpu",
    memory_bytes=24 * GIB,
    bandwidth_bytes_per_s=24e9,
    bf16_flops=2.1e12,
    fp32_flops=0.294e12,
    power_w=None,
    nvlink_bytes_per_s=0.0,
    supports_flash_attention=False,
)

OFFER = Offer(
    provider="somewhere",
    tier="specialised",
    region="any",
    instance_type="gpu_1x",
    gpu="A100-SXM4-80GB",
    gpu_form="SXM",
    gpu_count=1.0,
    gpu_memory_bytes=80 * GIB,
    vcpus=30.0,
    host_memory_bytes=200 * GIB,
    market="on_demand",
    price_usd_per_hour=Decimal("2.00"),
    price_source="test",
    price_date=TODAY,
)

TERMS = ProviderTerms(
    provider="somewhere",
    kind="specialised",
    billing_unit_s=60.0,
    billing_minimum_s=600.0,
    offers_spot=True,
    preemption_notice_s=30.0,
    billed_when_stopped=None,
    disk_usd_per_gb_month=Decimal("0.10"),
    object_usd_per_gb_month=None,
    egress_usd_per_gb=Decimal("0"),
    startup_s=120.0,
    engines=(),
    source="test",
    checked=TODAY,
)

GRID = GridFactor(
    place="aws us-east-1",
    carbon_gco2e_per_kwh=396.0,
    pue_ratio=1.15,
    year=2024,
    method=GridMethod.ZONE_CONSUMPTION,
    source="test",
)


def recipe(**changes) -> Recipe:
    """The usual recipe with changes."""
    return replace(RECIPE, **changes)


def case(*, shape: ModelShape = LLAMA_8B, stack=TRAINER, gpus: int = 1, trained_share: float = 0.4, **changes):
    """A memory case of the usual recipe with changes."""
    made = recipe(**changes)
    return MemoryCase(
        shape=shape,
        recipe=made,
        tuning=tuning_of(shape, made.method),
        gpus=gpus,
        longest_row_tokens=2048,
        trained_share=trained_share,
        stack=stack,
    )


def load(*, steps: int = 100, rows: int = 800, row_tokens: int = 300, **changes) -> TokenLoad:
    """A job of equal rows."""
    plan = StepPlan(
        steps=steps,
        epochs=1.0,
        rows=rows,
        total_tokens=rows * row_tokens,
        trained_tokens=rows * row_tokens // 3,
        largest_step_tokens=8 * row_tokens,
        longest_row_tokens=row_tokens,
    )
    usual = TokenLoad(
        steps=plan,
        eval_tokens=40 * row_tokens,
        trained_share=1 / 3,
        context_tokens=float(row_tokens),
        quantiles_tokens=(row_tokens,) * 64,
    )
    return replace(usual, **changes)


def profile(histogram: tuple[tuple[int, int], ...]) -> DataProfile:
    """A data profile with that length histogram, half of every row trained."""
    rows = sum(count for _, count in histogram)
    tokens = sum(length * count for length, count in histogram)
    return DataProfile(
        path="rows.jsonl",
        shape="messages",
        sha256="0" * 64,
        rows_in=rows,
        rows_trained=rows,
        dropped=(),
        eval_rows=2,
        eval_total_tokens=500,
        total_tokens=tokens,
        trained_tokens=tokens // 2,
        truncated_rows=0,
        duplicate_rows=0,
        length_histogram=histogram,
        mask_method="template_markers",
        tokenizer="test",
    )


def of_method(name: str, **options) -> MethodChoice:
    """A method with options."""
    return MethodChoice(name=name, options=options)
