"""The bill of a whole job: machine time as it is billed, disk, egress, and electricity where the user pays it.

    machine     hours, rounded up to the provider's unit and minimum, x price an hour (for the whole machine)
    disk        GB x price per GB-month x hours / 730
    egress      GB of the result x price per GB
    power       of the local machine: watts x hours x price per kWh

Decimal throughout. The interval follows that of the time; the price adds its own doubt when it is old or undated. Spot
is priced at its list price: without preemptions it costs just that, and what preemptions add is not in this formula.
"""

from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, Decimal

from scrimp.core.estimate import Estimate
from scrimp.core.forecast import MoneyForecast, MoneyPart, TimeForecast
from scrimp.core.job import LocalMachineSpec
from scrimp.core.market import Offer, ProviderTerms
from scrimp.core.units import GB, HOUR_S, usd

HOURS_PER_MONTH = Decimal(730)
_WATTS_PER_KW = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceConstants:
    """Stand-ins for what is not established, and how much an old price may be off.

    disk_usd_per_gb_month    AWS gp3 0.08, Azure 0.075, GCP and RunPod 0.10 (providers' price pages, 2026)
    egress_usd_per_gb        the hyperscalers' first tier; most specialised clouds charge nothing
    yearly_rise, yearly_fall A price seen once is a floor as often as not: marketplace and spot prices are the lowest of
                             the day and those offers are gone first, so an old one errs low. Each year of age widens
                             the interval by half upwards and by a quarter downwards, half a year at once when undated.
    """

    disk_usd_per_gb_month: Decimal = Decimal("0.10")
    egress_usd_per_gb: Decimal = Decimal("0.09")
    yearly_rise: Decimal = Decimal("0.50")
    yearly_fall: Decimal = Decimal("0.25")
    grace_days: int = 14
    undated_days: int = 180
    most_years: Decimal = Decimal(2)


CONSTANTS = PriceConstants()


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """What the job keeps on disk while it runs, and the result that is carried away at the end."""

    disk_bytes: float
    artefact_bytes: float


def forecast_money(
    time: TimeForecast,
    offer: Offer,
    terms: ProviderTerms | None,
    *,
    storage: Storage,
    today: date,
    local: LocalMachineSpec | None = None,
) -> MoneyForecast | None:
    """What the job costs on one offer; None when the price is not known.

    `terms` are the provider's, None when there are none. `local` prices this machine and is used for offers of the
    market `local` alone.
    """
    if offer.market == "local" and local is not None:
        return _own_machine(time, local)
    if offer.price_usd_per_hour is None:
        return None
    return _rented(time, offer, terms, storage, today)


def billed_s(duration_s: float, terms: ProviderTerms | None) -> Decimal:
    """Seconds that are billed: at least the minimum, rounded up to the unit (a second where not established)."""
    unit = usd(terms.billing_unit_s) if terms and terms.billing_unit_s else Decimal(1)
    least = usd(terms.billing_minimum_s) if terms and terms.billing_minimum_s else Decimal(0)
    wanted = max(usd(duration_s), least)
    return (wanted / unit).to_integral_value(rounding=ROUND_CEILING) * unit


def price_ratios(offer: Offer, today: date, *, constants: PriceConstants = CONSTANTS) -> tuple[Decimal, Decimal, str]:
    """Low and high ratio of the true price to the listed one, and why."""
    if offer.price_date is None:
        days, basis = constants.undated_days, "undated list price"
    else:
        days = max(0, (today - offer.price_date).days)
        basis = f"list price of {offer.price_date.isoformat()}"
    years = min(constants.most_years, Decimal(max(0, days - constants.grace_days)) / 365)
    fall = max(Decimal("0.5"), 1 - constants.yearly_fall * years)
    return fall, 1 + constants.yearly_rise * years, basis


def _rented(
    time: TimeForecast, offer: Offer, terms: ProviderTerms | None, storage: Storage, today: date
) -> MoneyForecast:
    price = offer.price_usd_per_hour or Decimal(0)
    low_ratio, high_ratio, basis = price_ratios(offer, today)
    extras, extra_words = _extras(time, terms, storage)
    ends = [billed_s(end, terms) / HOUR_S * price for end in (time.total_s.low, time.total_s.value, time.total_s.high)]
    extra = sum((part.amount_usd for part in extras), Decimal(0))
    spot = "; spot at list price, preemptions not counted" if offer.market == "spot" else ""
    return MoneyForecast(
        total_usd=Estimate(
            value=ends[1] + extra,
            low=ends[0] * low_ratio,
            high=ends[2] * high_ratio + 2 * extra,
            basis=f"{basis} x time{extra_words}{spot}",
        ),
        parts=(MoneyPart(name="machine", amount_usd=ends[1]), *extras),
    )


def _extras(
    time: TimeForecast, terms: ProviderTerms | None, storage: Storage, constants: PriceConstants = CONSTANTS
) -> tuple[list[MoneyPart], str]:
    """Disk and egress; where their price is not established a usual one stands in, and the basis says so."""
    disk_price = terms.disk_usd_per_gb_month if terms else None
    egress_price = terms.egress_usd_per_gb if terms else None
    guessed = [name for name, price in (("disk", disk_price), ("egress", egress_price)) if price is None]
    hours = usd(time.total_s.value) / HOUR_S
    disk = (
        usd(storage.disk_bytes)
        / GB
        * (constants.disk_usd_per_gb_month if disk_price is None else disk_price)
        * hours
        / HOURS_PER_MONTH
    )
    egress = usd(storage.artefact_bytes) / GB * (constants.egress_usd_per_gb if egress_price is None else egress_price)
    parts = [MoneyPart(name=name, amount_usd=amount) for name, amount in (("disk", disk), ("egress", egress)) if amount]
    return parts, f"; {' and '.join(guessed)} at a usual price" if guessed else ""


def _own_machine(time: TimeForecast, local: LocalMachineSpec) -> MoneyForecast:
    """This machine: its own price an hour and its electricity, as two parts."""
    per_hour_power = usd(local.power_w) / _WATTS_PER_KW * local.electricity_usd_per_kwh
    per_hour = local.price_usd_per_hour + per_hour_power
    low, value, high = (usd(end) / HOUR_S for end in (time.total_s.low, time.total_s.value, time.total_s.high))
    parts = (
        MoneyPart(name="machine", amount_usd=value * local.price_usd_per_hour),
        MoneyPart(name="electricity", amount_usd=value * per_hour_power),
    )
    return MoneyForecast(
        total_usd=Estimate(
            value=value * per_hour,
            low=low * per_hour,
            high=high * per_hour,
            basis="the spec's price of this machine and its electricity x time",
        ),
        parts=parts,
    )
