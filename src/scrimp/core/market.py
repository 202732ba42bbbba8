"""Devices, offers and the terms they come with."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Literal

from scrimp.core.job import Tier

Market = Literal["on_demand", "spot", "local"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One GPU, or one CPU machine, as the catalogue knows it. Rates are dense, with fp32 accumulation.

    `device_class` keys the efficiency tables (dc_ampere, consumer_ada, cpu_amx_bf16 ...). `memory_bytes` is what the
    driver reports as total. A `None` is not established; it never counts as zero.
    """

    name: str
    kind: Literal["gpu", "cpu"]
    vendor: str
    architecture: str
    device_class: str
    memory_bytes: int
    bandwidth_bytes_per_s: float | None
    bf16_flops: float | None
    fp32_flops: float | None
    fp8_flops: float | None
    power_w: float | None
    nvlink_bytes_per_s: float
    supports_bf16: bool
    supports_flash_attention: bool
    aliases: tuple[str, ...]
    source: str
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One way to rent (or own) one machine, in one market. The price is for the whole machine.

    `gpu` is the canonical device name of the catalogue. `gpu_count` may be a fraction (a slice of a card).
    """

    provider: str
    tier: Tier
    region: str
    instance_type: str
    gpu: str
    gpu_form: str
    gpu_count: float
    gpu_memory_bytes: int
    vcpus: float | None
    host_memory_bytes: int | None
    market: Market
    price_usd_per_hour: Decimal | None
    price_source: str
    price_date: date | None
    flags: tuple[str, ...] = ()

    @property
    def total_memory_bytes(self) -> float:
        """GPU memory of the whole machine."""
        return self.gpu_count * self.gpu_memory_bytes

    @property
    def usd_per_gpu_hour(self) -> Decimal | None:
        """Price of one card for an hour, None when the price is unknown."""
        if self.price_usd_per_hour is None or not self.gpu_count:
            return None
        return self.price_usd_per_hour / Decimal(str(self.gpu_count))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTerms:
    """How a provider bills and what it warns of. None = not established.

    `most_gpus`: it rents machines of one to so many cards, each at so many times the price of one.
    """

    provider: str
    kind: str
    billing_unit_s: float | None
    billing_minimum_s: float | None
    offers_spot: bool | None
    preemption_notice_s: float | None
    billed_when_stopped: str | None
    disk_usd_per_gb_month: Decimal | None
    object_usd_per_gb_month: Decimal | None
    egress_usd_per_gb: Decimal | None
    startup_s: float | None
    engines: tuple[str, ...]
    source: str
    checked: date | None
    most_gpus: int | None = None


class GridMethod(StrEnum):
    """How the carbon of a kWh was counted. Figures of two methods are never compared and never added up.

    All are location-based (the grid's own mix; no certificates, no contracts) but `stated`.
    """

    ZONE_CONSUMPTION = "zone_consumption"
    PROVIDER_OPERATIONAL = "provider_operational"
    COUNTRY_GENERATION = "country_generation"
    STATE_GENERATION = "state_generation"
    GENERATION_CO2 = "generation_co2"
    ZONE_GENERATION = "zone_generation"
    MIX_DERIVED = "mix_derived"
    STATED = "stated"

    @property
    def words(self) -> str:
        """What is counted, and by whom."""
        return _METHOD_WORDS[self]


_METHOD_WORDS = {
    GridMethod.ZONE_CONSUMPTION: "consumption of the grid zone, life cycle (Electricity Maps)",
    GridMethod.PROVIDER_OPERATIONAL: "the provider's own figure for the grid, operational (Google)",
    GridMethod.COUNTRY_GENERATION: "generation of the country, life cycle (Ember / Our World in Data)",
    GridMethod.STATE_GENERATION: "generation of the state, stacks alone (EPA eGRID)",
    GridMethod.GENERATION_CO2: "generation of the province, CO2 alone (MEE/NBS)",
    GridMethod.ZONE_GENERATION: "generation of the bidding zone times source factors (ENTSO-E, codecarbon)",
    GridMethod.MIX_DERIVED: "generation mix of the province times source factors, derived (codecarbon)",
    GridMethod.STATED: "as the spec states it",
}
GridReach = Literal["region", "country", "world", "stated"]
PueReach = Literal["region", "fleet", "industry", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GridFactor:
    """Carbon intensity of electricity at one place, counted in one way, and what the building adds.

    `reach` is how near the figure is to the machine: its own region or state, its country, the world. `pue_reach`
    likewise: the region's PUE, the provider's fleet, the industry; none where no building counts.
    """

    place: str
    carbon_gco2e_per_kwh: float
    pue_ratio: float
    year: int | None
    method: GridMethod
    source: str
    reach: GridReach = "region"
    pue_reach: PueReach = "region"
