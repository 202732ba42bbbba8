"""Small stand-ins for the planner's tests: two cards, offers made on demand, a forecaster of three lines a figure."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from types import SimpleNamespace

import pytest

from scrimp.core.data import DataProfile, StepPlan
from scrimp.core.estimate import Estimate, exact
from scrimp.core.forecast import (
    EnergyForecast,
    MemoryForecast,
    MemoryPhase,
    MemoryTerm,
    MoneyForecast,
    MoneyPart,
    TimeForecast,
    TimePart,
)
from scrimp.core.job import DataSpec, JobSpec, LimitsSpec, MarketSpec, MethodChoice, TrainingSpec
from scrimp.core.market import Device, Offer
from scrimp.core.model import ModelShape
from scrimp.core.units import GIB, HOUR_S
from scrimp.planner.question import Machine, MarketFacts, Workload

TODAY = date(2026, 12, 1)
BYTES = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "nf4": 0.5, "int8": 1.0}

SHAPE = ModelShape(
    name="test/7b", family="llama", hidden=4096, layers=32, heads=32, kv_heads=8, head_dim=128, intermediate=14336,
    vocab=32000, max_positions_tokens=8192, tied_embeddings=False, source="test",
)  # fmt: skip
STEPS = StepPlan(
    steps=100, epochs=1.0, rows=800, total_tokens=800_000, trained_tokens=400_000, largest_step_tokens=12_000,
    longest_row_tokens=900,
)  # fmt: skip
PROFILE = DataProfile(
    path="rows.jsonl", shape="messages", sha256="0" * 64, rows_in=840, rows_trained=800, dropped=(), eval_rows=40,
    eval_total_tokens=40_000, total_tokens=800_000, trained_tokens=400_000, truncated_rows=0, duplicate_rows=0,
    length_histogram=((900, 800),), mask_method="template_markers", tokenizer="test",
)  # fmt: skip


def device(name: str = "RTX4090", **changes: object) -> Device:
    """A 24 GB card with bf16 unless told otherwise."""
    base = Device(
        name=name, kind="gpu", vendor="NVIDIA", architecture="Ada", device_class="consumer_ada",
        memory_bytes=24 * GIB, bandwidth_bytes_per_s=1e12, bf16_flops=165e12, fp32_flops=82e12, fp8_flops=None,
        power_w=450.0, nvlink_bytes_per_s=0.0, supports_bf16=True, supports_flash_attention=True, aliases=(),
        source="test",
    )  # fmt: skip
    return replace(base, **changes)


CARDS = {
    "RTX4090": device(),
    "A100-SXM4-80GB": device("A100-SXM4-80GB", memory_bytes=80 * GIB, bf16_flops=312e12, bandwidth_bytes_per_s=2e12),
    "T4": device("T4", memory_bytes=15 * GIB, bf16_flops=65e12, supports_bf16=False, bandwidth_bytes_per_s=3e11),
    "MI300X": device("MI300X", memory_bytes=192 * GIB, vendor="AMD", bf16_flops=1300e12),
    "Gaudi2": device("Gaudi2", memory_bytes=96 * GIB, vendor="Intel", architecture="Gaudi2", bf16_flops=430e12),
}
CPU = device("CPU", kind="cpu", vendor="Intel", memory_bytes=32 * GIB, bf16_flops=1e12, supports_bf16=False)


def offer(card: str = "RTX4090", price: str | None = "0.40", **changes: object) -> Offer:
    """One card at vast on demand unless told otherwise."""
    base = Offer(
        provider="vast", tier="marketplace", region="any", instance_type=f"1x{card}", gpu=card, gpu_form="",
        gpu_count=1.0, gpu_memory_bytes=CARDS[card].memory_bytes if card in CARDS else 0, vcpus=None,
        host_memory_bytes=None, market="on_demand", price_usd_per_hour=None if price is None else Decimal(price),
        price_source="test", price_date=date(2026, 8, 1),
    )  # fmt: skip
    return replace(base, **changes)


LOCAL_OFFER = offer("CPU", "0.10", provider="local", tier="local", market="local", price_date=None)


def spec(*, method: str = "auto", options: dict | None = None, limits: dict | None = None, **sections: dict) -> JobSpec:
    """A job; `training` and `market` take the fields of their dataclasses."""
    return JobSpec(
        model=SHAPE.name,
        data=DataSpec(path="rows.jsonl"),
        method=MethodChoice(name=method, options=options or {}),
        limits=LimitsSpec(**(limits or {})),
        training=TrainingSpec(**sections.get("training", {})),
        market=MarketSpec(**sections.get("market", {"where": "cloud"})),
    )


def workload(**changes: object) -> Workload:
    """The test job with its counts."""
    base = Workload(spec=spec(), shape=SHAPE, profile=PROFILE, steps=STEPS)
    return replace(base, **changes)


def facts(*offers: Offer, local: bool = False) -> MarketFacts:
    """A market of these offers."""
    here = {"local_device": CPU, "local_offers": (LOCAL_OFFER,)} if local else {}
    return MarketFacts(offers=offers, devices=CARDS, today=TODAY, **here)


class FakeForecaster:
    """Round formulas with the real ones' directions; counts how often memory is asked."""

    def __init__(self) -> None:
        self.memory_calls = 0

    def memory(self, recipe, machine: Machine) -> MemoryForecast:
        """Weights, states of what is trained, and activations that checkpointing makes ten times smaller."""
        self.memory_calls += 1
        shards = machine.gpus if recipe.sharding == "fsdp" else 1
        weights = SHAPE.params * BYTES[recipe.weight_dtype]
        rank = recipe.method.options.get("rank", 0)
        states = SHAPE.params * 12 if recipe.method.name == "full" else rank * 30e6
        activations = recipe.micro_batch_tokens * SHAPE.layers * (1e4 if recipe.checkpointing != "none" else 1e5)
        terms = (
            MemoryTerm(name="weights", size_bytes=weights / shards),
            MemoryTerm(name="optimizer states", size_bytes=states / shards),
            MemoryTerm(name="activations", size_bytes=activations),
        )
        need = sum(term.size_bytes for term in terms)
        estimate = Estimate(value=need, low=0.95 * need, high=1.1 * need, basis="test")
        phase = MemoryPhase(name="forward_backward", terms=terms)
        return MemoryForecast(phases=(phase,), peak_bytes=estimate, device_bytes=estimate, need_bytes=estimate)

    def tokens_per_s(self, recipe, machine: Machine) -> float:
        """Half speed at 500 tokens, a third slower with checkpointing, 4-bit 20% slower."""
        rate = (machine.device.bf16_flops or 0) * 0.4 / (4 * SHAPE.params)
        share = recipe.micro_batch_tokens / (recipe.micro_batch_tokens + 500)
        slow = (0.75 if recipe.checkpointing != "none" else 1.0) * (0.8 if recipe.weight_dtype == "nf4" else 1.0)
        return rate * share * slow * machine.gpus * (0.9 if machine.gpus > 1 else 1.0)

    def time(self, recipe, machine: Machine, offer: Offer) -> TimeForecast:
        """Steps plus five minutes to start."""
        rate = self.tokens_per_s(recipe, machine)
        train = STEPS.total_tokens / rate
        return TimeForecast(
            total_s=_within(train + 300), train_s=_within(train), step_s=_within(train / STEPS.steps),
            steps=STEPS.steps, tokens_per_s=_within(rate),
            parts=(TimePart(name="steps", duration_s=train), TimePart(name="start", duration_s=300.0)),
        )  # fmt: skip

    def money(self, time: TimeForecast, recipe, offer: Offer) -> MoneyForecast | None:
        """Price times time; nothing is preempted here."""
        if offer.price_usd_per_hour is None:
            return None
        hours = [Decimal(str(s)) / HOUR_S for s in (time.total_s.low, time.total_s.value, time.total_s.high)]
        low, value, high = (offer.price_usd_per_hour * h for h in hours)
        total = Estimate(value=value, low=low, high=high, basis="test")
        return MoneyForecast(total_usd=total, parts=(MoneyPart(name="machine", amount_usd=value),))

    def energy(self, time: TimeForecast, recipe, machine: Machine, offer: Offer) -> EnergyForecast:
        """A kilowatt a card."""
        return EnergyForecast(energy_kwh=exact(time.total_s.value / HOUR_S * machine.gpus, basis="test"))


def _within(value: float) -> Estimate[float]:
    return Estimate(value=value, low=0.7 * value, high=1.4 * value, basis="test")


@pytest.fixture(scope="session")
def fakes() -> SimpleNamespace:
    """All of the above by name."""
    return SimpleNamespace(
        TODAY=TODAY, SHAPE=SHAPE, STEPS=STEPS, PROFILE=PROFILE, CARDS=CARDS, CPU=CPU, device=device, offer=offer,
        spec=spec, workload=workload, facts=facts, Forecaster=FakeForecaster, Machine=Machine,
    )  # fmt: skip
