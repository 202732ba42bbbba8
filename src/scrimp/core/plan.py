"""Candidates, plans and the reasons why others were rejected."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from scrimp.core.data import DataProfile, StepPlan
from scrimp.core.forecast import EnergyForecast, MemoryForecast, MoneyForecast, TimeForecast
from scrimp.core.job import JobSpec
from scrimp.core.market import Device, Offer
from scrimp.core.model import ModelShape
from scrimp.core.recipe import Recipe

RejectionKind = Literal[
    "memory", "unsupported", "price_unknown", "over_budget", "past_deadline", "filtered", "dominated"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relief:
    """A change that would lower the memory of one recipe, forecast anew: `change` is what to type.

    `need_bytes` is what the recipe needs then, `saved_bytes` how much less that is, `time_ratio` its training time over
    that of now; `fits` says whether the card holds it. `note` is what else the change does.
    """

    change: str
    need_bytes: float
    saved_bytes: float
    time_ratio: float
    fits: bool
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One recipe on one offer, forecast. `money` is None when the price is unknown, and then it never wins.

    `relief` is there where the card may be too small.
    """

    recipe: Recipe
    offer: Offer
    device: Device
    memory: MemoryForecast
    time: TimeForecast
    money: MoneyForecast | None
    energy: EnergyForecast
    relief: tuple[Relief, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A class of candidates that was left out: `offers` of them, with one reason in words a user can act on.

    Of the classes whose memory was too little, the nearest of each method carries `relief`.
    """

    kind: RejectionKind
    subject: str
    reason: str
    offers: int
    relief: tuple[Relief, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A change that would make a plan possible, and what the job would then cost."""

    change: str
    cost_usd: Decimal | None
    duration_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPoint:
    """One candidate as a point of the money-against-time plot."""

    label: str
    method: str
    market: str
    cost_usd: Decimal
    duration_s: float
    on_front: bool
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The hand-over between planning and running: all that `scrimp run plan.yaml` needs, readable and editable."""

    plan_id: str
    created_at: datetime
    scrimp_version: str
    spec: JobSpec
    model_shape: ModelShape
    profile: DataProfile
    steps: StepPlan
    chosen: Candidate
    alternatives: tuple[PlanPoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceAge:
    """Dates of the prices behind a set of plans; `undated_offers` carry none."""

    oldest: date | None
    newest: date | None
    undated_offers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSet:
    """All that planning found: candidates in order of preference, the front of money against time, and the rejected."""

    spec: JobSpec
    model_shape: ModelShape
    profile: DataProfile
    steps: StepPlan
    candidates: tuple[Candidate, ...]
    front: tuple[Candidate, ...]
    rejected: tuple[Rejected, ...]
    remedies: tuple[Remedy, ...]
    considered_offers: int
    prices: PriceAge
