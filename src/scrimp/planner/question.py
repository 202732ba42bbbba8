"""What planning starts from: the job with its counts, the machines there are, and whoever forecasts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Protocol

from scrimp.core.data import DataProfile, StepPlan
from scrimp.core.forecast import EnergyForecast, MemoryForecast, MoneyForecast, TimeForecast
from scrimp.core.job import JobSpec
from scrimp.core.market import Device, GridFactor, Offer, ProviderTerms
from scrimp.core.model import ModelShape
from scrimp.core.plan import Candidate
from scrimp.core.recipe import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A job with everything counted that planning needs: the model's shape, the data's profile, the real steps."""

    spec: JobSpec
    shape: ModelShape
    profile: DataProfile
    steps: StepPlan

    @property
    def counted(self) -> bool:
        """Whether tokens were counted with the model's tokenizer, and not estimated from the text."""
        return self.profile.token_basis.startswith("counted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One kind of machine: `gpus` cards of one device (1 for a CPU machine)."""

    device: Device
    gpus: int

    @property
    def label(self) -> str:
        """`4x A100-80GB`; a CPU machine goes by its name alone."""
        return self.device.name if self.device.kind == "cpu" else f"{self.gpus}x {self.device.name}"


def machine_of(candidate: Candidate) -> Machine:
    """The machine that a candidate would train on."""
    return Machine(device=candidate.device, gpus=max(1, int(candidate.offer.gpu_count)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketFacts:
    """All machines that may be considered.

    `terms` are those of providers by name, `grid` gives carbon and overhead of (provider, region) in every way
    of counting, the nearest figure first. `local_offers` are
    the ways to use the machine that asks (one card of it, all of them), made of `local_device`.
    """

    offers: tuple[Offer, ...]
    devices: Mapping[str, Device]
    today: date
    terms: Mapping[str, ProviderTerms] = field(default_factory=dict[str, ProviderTerms])
    grid: Callable[[str, str], tuple[GridFactor, ...]] | None = None
    local_device: Device | None = None
    local_offers: tuple[Offer, ...] = ()


class Forecaster(Protocol):
    """What the planner asks of the forecasts. One forecaster knows one workload."""

    def memory(self, recipe: Recipe, machine: Machine) -> MemoryForecast:
        """Memory of one card."""
        ...

    def tokens_per_s(self, recipe: Recipe, machine: Machine) -> float:
        """Rate of training: what two recipes on one machine are compared by."""
        ...

    def time(self, recipe: Recipe, machine: Machine, offer: Offer) -> TimeForecast:
        """Wall-clock time of the whole job; of the offer only provider and market matter."""
        ...

    def money(self, time: TimeForecast, recipe: Recipe, offer: Offer) -> MoneyForecast | None:
        """The bill, None when the price is unknown."""
        ...

    def energy(self, time: TimeForecast, recipe: Recipe, machine: Machine, offer: Offer) -> EnergyForecast:
        """Electricity and carbon of the whole job at the offer's place."""
        ...
