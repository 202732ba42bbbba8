"""Forecasts of one candidate: memory by phase, time, money and energy by part."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from scrimp.core.estimate import Estimate

PhaseName = Literal["load", "forward_backward", "optimizer_step", "evaluation", "save"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTerm:
    """One tensor class in one phase: weights, gradients, logits ..."""

    name: str
    size_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPhase:
    """What is alive at the peak of one phase."""

    name: PhaseName
    terms: tuple[MemoryTerm, ...]

    @property
    def total_bytes(self) -> float:
        """Sum of the terms."""
        return sum(term.size_bytes for term in self.terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryForecast:
    """Memory of one GPU (or of the process, on a CPU).

    `peak_bytes` is what the allocator hands out at most (torch max_memory_allocated), `device_bytes` what the
    driver shows (nvidia-smi; RSS on a CPU), `need_bytes` what a card must have for the verdict "fits".
    """

    phases: tuple[MemoryPhase, ...]
    peak_bytes: Estimate[float]
    device_bytes: Estimate[float]
    need_bytes: Estimate[float]

    @property
    def peak_phase(self) -> MemoryPhase:
        """The phase that sets the peak: peaks are a maximum over phases, never a sum."""
        return max(self.phases, key=lambda phase: phase.total_bytes)

    @property
    def dominant(self) -> MemoryTerm:
        """The largest term of the phase that peaks."""
        return max(self.peak_phase.terms, key=lambda term: term.size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePart:
    """One part of the wall-clock time: steps, evaluation, provisioning ..."""

    name: str
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeForecast:
    """Wall-clock time of the whole job, and the rate of training in real (unpadded) tokens."""

    total_s: Estimate[float]
    train_s: Estimate[float]
    step_s: Estimate[float]
    steps: int
    tokens_per_s: Estimate[float]
    parts: tuple[TimePart, ...]

    @property
    def dominant(self) -> TimePart:
        """The part that takes longest."""
        return max(self.parts, key=lambda part: part.duration_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyPart:
    """One part of the bill."""

    name: str
    amount_usd: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyForecast:
    """What the whole job costs. A job whose price is not known has no MoneyForecast at all."""

    total_usd: Estimate[Decimal]
    parts: tuple[MoneyPart, ...]

    @property
    def dominant(self) -> MoneyPart:
        """The dearest part."""
        return max(self.parts, key=lambda part: part.amount_usd)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyForecast:
    """Electricity at the wall (PUE included) and its carbon; `grid` names place, year and method."""

    energy_kwh: Estimate[float]
    carbon_gco2e: Estimate[float] | None
    grid: str
