"""A whole Plan of a small local job, for the tests of the report and the verbs."""

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

from scrimp.core.data import DataProfile, StepPlan
from scrimp.core.estimate import Estimate, exact, within
from scrimp.core.forecast import (
    CarbonForecast,
    EnergyForecast,
    MemoryForecast,
    MemoryPhase,
    MemoryTerm,
    MoneyForecast,
    MoneyPart,
    TimeForecast,
    TimePart,
)
from scrimp.core.job import DataSpec, JobSpec, LimitsSpec, MethodChoice
from scrimp.core.market import Device, GridFactor, GridMethod, Offer
from scrimp.core.model import ModelShape
from scrimp.core.plan import Candidate, Plan, PlanPoint
from scrimp.core.recipe import Recipe

STEPS = StepPlan(
    steps=120, epochs=1.0, rows=960, total_tokens=61_440, trained_tokens=20_000, largest_step_tokens=640,
    longest_row_tokens=127,
)  # fmt: skip


def make_device():
    return Device(
        name="cpu", kind="cpu", vendor="generic", architecture="x86-64", device_class="cpu", memory_bytes=24 * 2**30,
        bandwidth_bytes_per_s=2e10, bf16_flops=1e11, fp32_flops=1e11, fp8_flops=None, power_w=60.0,
        nvlink_bytes_per_s=0.0, supports_bf16=True, supports_flash_attention=False, aliases=(), source="this machine",
    )  # fmt: skip


def make_offer():
    return Offer(
        provider="local", tier="local", region="here", instance_type="this machine", gpu="cpu", gpu_form="",
        gpu_count=1, gpu_memory_bytes=24 * 2**30, vcpus=2, host_memory_bytes=24 * 2**30, market="local",
        price_usd_per_hour=Decimal("0.10"), price_source="the spec", price_date=date(2025, 6, 1),
    )  # fmt: skip


def make_recipe():
    return Recipe(
        model="smollm2-135m-instruct", method=MethodChoice(name="lora", options={"rank": 16, "alpha": 32}),
        weight_dtype="fp32", compute_dtype="fp32", layout="packed", loss="selected", sharding="none",
        optimizer="adamw", checkpointing="none", max_length_tokens=512, batch_rows=8, batch_tokens=None,
        micro_batch_tokens=1024, epochs=1.0, max_steps=None, learning_rate=2e-4, schedule="cosine", warmup_steps=4,
        weight_decay=0.0, clip_norm=1.0, seed=0, eval_every_steps=20, checkpoint_every_steps=40, keep_checkpoints=2,
    )  # fmt: skip


def make_candidate():
    phase = MemoryPhase(
        name="forward_backward",
        terms=(MemoryTerm(name="weights", size_bytes=5.4e8), MemoryTerm(name="logits", size_bytes=9e8)),
    )
    peak = within(1.9e9, low_ratio=0.9, high_ratio=1.2, basis="sum over the peak's tensors")
    return Candidate(
        recipe=make_recipe(),
        offer=make_offer(),
        device=make_device(),
        memory=MemoryForecast(phases=(phase,), peak_bytes=peak, device_bytes=peak, need_bytes=peak),
        time=TimeForecast(
            total_s=within(150.0, low_ratio=0.7, high_ratio=1.4, basis="a probe of this machine"),
            train_s=within(120.0, low_ratio=0.7, high_ratio=1.4, basis="a probe of this machine"),
            step_s=within(1.0, low_ratio=0.7, high_ratio=1.4, basis="a probe of this machine"),
            steps=120,
            tokens_per_s=within(512.0, low_ratio=0.7, high_ratio=1.4, basis="a probe of this machine"),
            parts=(TimePart(name="steps", duration_s=120.0), TimePart(name="load", duration_s=30.0)),
        ),
        money=MoneyForecast(
            total_usd=Estimate(
                value=Decimal("0.0045"), low=Decimal("0.0031"), high=Decimal("0.0062"), basis="price x time"
            ),
            parts=(MoneyPart(name="machine", amount_usd=Decimal("0.0042")),),
        ),
        energy=EnergyForecast(
            energy_kwh=within(0.0025, low_ratio=0.6, high_ratio=1.5, basis="60 W x time"),
            carbon=(
                CarbonForecast(
                    mass_gco2e=exact(1.2, basis="grid"),
                    grid=GridFactor(
                        place="this machine",
                        carbon_gco2e_per_kwh=475.0,
                        pue_ratio=1.0,
                        year=None,
                        method=GridMethod.STATED,
                        source="local.grid of the spec",
                        reach="stated",
                        pue_reach="none",
                    ),
                ),
            ),
        ),
    )


def make_profile():
    return DataProfile(
        path="rows.jsonl", shape="messages", sha256="0" * 64, rows_in=1000, rows_trained=960, dropped=(), eval_rows=40,
        eval_total_tokens=2500, total_tokens=61_440, trained_tokens=20_000, truncated_rows=0, duplicate_rows=3,
        length_histogram=tuple((length, 1 + (length * 37) % 13) for length in range(12, 128)),
        mask_method="template_markers", tokenizer="smollm2",
    )  # fmt: skip


def make_shape():
    return ModelShape(
        name="smollm2-135m-instruct", family="llama", hidden=576, layers=30, heads=9, kv_heads=3, head_dim=64,
        intermediate=1536, vocab=49152, max_positions_tokens=8192, tied_embeddings=True, source="its config.json",
    )  # fmt: skip


def make_points(count=60):
    """A cloud of plans with a front; the first is the chosen one."""
    points = [
        PlanPoint(
            label=f"1x card {i}", method="lora" if i % 2 else "qlora", market="spot" if i % 3 else "on_demand",
            cost_usd=Decimal(str(round(0.4 * 1.07**i, 4))), duration_s=36_000 * 1.09 ** -(i * 7 % count),
            on_front=False, chosen=False,
        )
        for i in range(count)
    ]  # fmt: skip
    best: list[PlanPoint] = []
    for point in sorted(points, key=lambda item: (item.cost_usd, item.duration_s)):
        fast = not best or point.duration_s < min(item.duration_s for item in best)
        best += [point] if fast else []
    return tuple(replace(point, on_front=point in best, chosen=point == best[0]) for point in points)


def make_plan(**changes):
    spec = JobSpec(
        model="smollm2-135m-instruct",
        data=DataSpec(path="rows.jsonl"),
        name="quickstart",
        limits=LimitsSpec(budget_usd=Decimal("0.01")),
    )
    plan = Plan(
        plan_id="plan-1",
        created_at=datetime(2025, 6, 1, tzinfo=UTC),
        scrimp_version="0.1.0",
        spec=spec,
        model_shape=make_shape(),
        profile=make_profile(),
        steps=STEPS,
        chosen=make_candidate(),
        alternatives=make_points(),
    )
    return replace(plan, **changes)
