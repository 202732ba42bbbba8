"""Forecasts of one candidate: memory by phase, time, money and energy by part."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from scrimp.core.estimate import Estimate
from scrimp.core.market import GridFactor, GridMethod

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
class CarbonForecast:
    """CO2e of one job, counted in one way. It is compared with and added to what was counted in the same way alone."""

    mass_gco2e: Estimate[float]
    grid: GridFactor

    @property
    def method(self) -> GridMethod:
        """How it was counted."""
        return self.grid.method

    @property
    def words(self) -> str:
        """`aws us-east-1, 2024: 396 g/kWh, consumption of ...`."""
        year = f", {self.grid.year}" if self.grid.year else ""
        return f"{self.grid.place}{year}: {self.grid.carbon_gco2e_per_kwh:.3g} g/kWh, {self.method.words}"

    def is_lighter_than(self, other: "CarbonForecast") -> bool:
        """Whether this job emits less.

        Raises:
            ValueError: the two were counted in different ways.
        """
        _refuse_mixed(self, other, doing="compared with")
        return self.mass_gco2e.value < other.mass_gco2e.value

    def plus(self, other: "CarbonForecast") -> Estimate[float]:
        """Both together.

        Raises:
            ValueError: the two were counted in different ways.
        """
        _refuse_mixed(self, other, doing="added to")
        return self.mass_gco2e.plus(other.mass_gco2e)


def _refuse_mixed(first: CarbonForecast, second: CarbonForecast, *, doing: str) -> None:
    if first.method != second.method:
        raise ValueError(f"CO2e by {first.method.words} cannot be {doing} CO2e by {second.method.words}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyForecast:
    """Electricity of the whole job and its carbon.

    `energy_kwh` is at the wall, the building's share (PUE) included. `gpu_kwh` is of the cards alone and without the
    building: what their own counters will show; None where there is no card. `carbon` holds one figure for each way
    of counting, the one nearest to the machine first; empty when no figure is known: unknown, not zero.
    """

    energy_kwh: Estimate[float]
    carbon: tuple[CarbonForecast, ...] = ()
    gpu_kwh: Estimate[float] | None = None

    @property
    def carbon_gco2e(self) -> Estimate[float] | None:
        """CO2e by the figure nearest to the machine."""
        return self.carbon[0].mass_gco2e if self.carbon else None

    @property
    def grid(self) -> str:
        """Place, year and method of that figure."""
        return self.carbon[0].words if self.carbon else "unknown"

    def counted_by(self, method: GridMethod) -> CarbonForecast | None:
        """CO2e counted in that way; None where the place has no such figure."""
        return next((found for found in self.carbon if found.method == method), None)
