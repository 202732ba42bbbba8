"""Sift the offers: which may be considered under the user's filters, and why the rest may not."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from scrimp.catalog.flags import PRICE_FLAGS
from scrimp.catalog.offers import OfferQuery, filters, price_age_days
from scrimp.core.job import MarketSpec
from scrimp.core.market import Device, Market, Offer
from scrimp.core.plan import PriceAge, Rejected, RejectionKind
from scrimp.core.units import format_duration, format_usd
from scrimp.planner.question import Machine, MarketFacts

STALE_AFTER_DAYS = 365


@dataclass(frozen=True, slots=True, kw_only=True)
class Sifted:
    """Offers that may be considered, by machine, and the classes of those that may not."""

    machines: Mapping[Machine, tuple[Offer, ...]]
    rejected: tuple[Rejected, ...]
    considered_offers: int
    prices: PriceAge


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sieve:
    """One reason to leave an offer out; `words` say (subject, reason), offers of equal words are one class."""

    kind: RejectionKind
    rejects: Callable[[Offer], bool]
    words: Callable[[Offer], tuple[str, str]]


def sift(market: MarketSpec, facts: MarketFacts) -> Sifted:
    """Put every offer through the sieves; the first that holds it names the reason.

    Raises:
        UnknownNameError: a GPU, provider, region or tier in the filters that nothing carries.
    """
    offers = _reachable(market, facts)

    def device_of(offer: Offer) -> Device | None:
        return facts.local_device if offer.market == "local" else facts.devices.get(offer.gpu)

    sieves = (*_filters(market, facts), *_impossible(device_of))
    held: Counter[tuple[RejectionKind, str, str]] = Counter()
    kept: dict[tuple[bool, str, float], list[Offer]] = {}
    for offer in offers:
        sieve = next((sieve for sieve in sieves if sieve.rejects(offer)), None)
        if sieve is not None:
            held[sieve.kind, *sieve.words(offer)] += 1
        else:
            kept.setdefault((offer.market == "local", offer.gpu, offer.gpu_count), []).append(offer)
    machines: dict[Machine, tuple[Offer, ...]] = {}
    for _, group in sorted(kept.items()):
        device = device_of(group[0])
        if device is not None:
            machine = Machine(device=device, gpus=max(1, int(group[0].gpu_count)))
            machines[machine] = (*machines.get(machine, ()), *group)
    return Sifted(
        machines=machines,
        rejected=tuple(
            Rejected(kind=kind, subject=subject, reason=reason, offers=count)
            for (kind, subject, reason), count in sorted(held.items(), key=lambda item: (-item[1], item[0]))
        ),
        considered_offers=len(offers),
        prices=price_age(offer for group in machines.values() for offer in group),
    )


def is_stale(offer: Offer, today: date) -> bool:
    """Whether the price is known to be more than a year old."""
    age = price_age_days(offer, today=today)
    return age is not None and age > STALE_AFTER_DAYS


def price_age(offers: Iterable[Offer]) -> PriceAge:
    """Oldest and newest price among rented offers; this machine's own price has no age."""
    rented = [offer for offer in offers if offer.market != "local"]
    dates = [offer.price_date for offer in rented if offer.price_date]
    return PriceAge(
        oldest=min(dates, default=None), newest=max(dates, default=None), undated_offers=len(rented) - len(dates)
    )


def _reachable(market: MarketSpec, facts: MarketFacts) -> tuple[Offer, ...]:
    """The offers of the places that `market.where` allows."""
    rented = () if market.where == "local" else facts.offers
    here = () if market.where == "cloud" or facts.local_device is None else facts.local_offers
    return (*rented, *here)


def _filters(market: MarketSpec, facts: MarketFacts) -> Iterator[_Sieve]:
    """The user's own filters. All but the number of cards speak of rented machines alone."""
    allowed: dict[str, tuple[Market, ...]] = {"only": ("spot",), "never": ("on_demand",)}
    query = OfferQuery(
        gpus=market.gpus,
        providers=market.providers,
        tiers=market.tiers,
        regions=market.regions,
        markets=allowed.get(market.spot, ()),
        max_gpus=market.max_gpus,
        max_price_usd_per_hour=market.max_price_usd_per_hour,
        max_price_age_s=market.max_price_age_s,
        today=facts.today,
    )
    words = _filter_words(market)
    for name, meets in filters(facts.offers, query).items():
        here_too = name == "max-gpus"
        yield _Sieve(kind="filtered", rejects=_unless(meets, here_too=here_too), words=_always(words[name]))


def _filter_words(market: MarketSpec) -> Mapping[str, tuple[str, str]]:
    """Subject and reason of every filter, by its name in the catalogue."""
    cap, oldest_s = market.max_price_usd_per_hour, market.max_price_age_s
    return {
        "gpu": ("other GPUs", f"market.gpus = {', '.join(market.gpus)}"),
        "provider": ("other providers", f"market.providers = {', '.join(market.providers)}"),
        "tier": ("other tiers", f"market.tiers = {', '.join(market.tiers)}"),
        "region": ("other regions", f"market.regions = {', '.join(market.regions)}"),
        "market": ("on-demand" if market.spot == "only" else "spot", f"market.spot = {market.spot}"),
        "max-gpus": ("larger machines", f"market.max_gpus = {market.max_gpus}"),
        "max-price": (
            "dearer or unpriced machines",
            f"market.max_price_usd_per_hour = {format_usd(cap) if cap is not None else ''}",
        ),
        "max-age": ("older or undated prices", f"market.max_price_age = {format_duration(oldest_s or 0)}"),
    }


def _impossible(device_of: Callable[[Offer], Device | None]) -> tuple[_Sieve, ...]:
    """What cannot be planned for anyone: slices of a card, cards without figures, prices that are not known."""

    def without_figures(offer: Offer) -> bool:
        device = device_of(offer)
        return device is None or device.bandwidth_bytes_per_s is None or not (device.bf16_flops or device.fp32_flops)

    def doubt(offer: Offer) -> str:
        return next((f.meaning for name, f in PRICE_FLAGS.items() if f.doubtful and name in offer.flags), "")

    return (
        _Sieve(
            kind="unsupported",
            rejects=lambda offer: offer.gpu_count != max(1, int(offer.gpu_count)),
            words=lambda offer: (f"slices of {offer.gpu}", "part of a card shared with others: no speed to plan with"),
        ),
        _Sieve(
            kind="unsupported",
            rejects=without_figures,
            words=lambda offer: (offer.gpu, "speed or memory bandwidth is not established"),
        ),
        _Sieve(
            kind="price_unknown",
            rejects=lambda offer: offer.price_usd_per_hour is None,
            words=lambda offer: (_at(offer), "no price known"),
        ),
        _Sieve(
            kind="price_unknown",
            rejects=lambda offer: bool(doubt(offer)),
            words=lambda offer: (_at(offer), f"price not to rely on: {doubt(offer)}"),
        ),
    )


def _at(offer: Offer) -> str:
    return f"{offer.gpu} at {offer.provider}, {offer.market.replace('_', '-')}"


def _always(words: tuple[str, str]) -> Callable[[Offer], tuple[str, str]]:
    return lambda offer: words


def _unless(meets: Callable[[Offer], bool], *, here_too: bool) -> Callable[[Offer], bool]:
    """A filter turned into a sieve; those on the market do not speak of this machine."""
    return lambda offer: (here_too or offer.market != "local") and not meets(offer)
