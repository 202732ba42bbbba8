"""Offers of the snapshot and the one query over them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fnmatch import translate
from functools import lru_cache
from typing import Any, Literal, get_args

from scrimp.catalog.devices import device_table, match_devices, unsuited_gpus
from scrimp.catalog.flags import PRICE_FLAGS
from scrimp.catalog.snapshot import Snapshot, UnmappedRows, parse_snapshot
from scrimp.catalog.table import read_text
from scrimp.catalog.terms import provider_terms
from scrimp.core.errors import unknown_name
from scrimp.core.job import Tier
from scrimp.core.market import Market, Offer
from scrimp.core.units import DAY_S

SortKey = Literal["price", "gpu-price", "memory-price", "memory", "gpu", "provider", "age"]
TABLE = "gpu_prices.csv"
# Required by the licence of the per-GPU list prices; every place that shows prices shows this line.
ATTRIBUTION = (
    "GPU rental price data by gpurentalprices.com (https://gpurentalprices.com), "
    "CC BY 4.0 (https://creativecommons.org/licenses/by/4.0/)"
)
LIST_COMMAND = "list all: scrimp offers --limit 0"
_DAYS_A_YEAR = 365.25

Test = Callable[[Offer], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferQuery:
    """Which offers, in which order, how many. Empty tuples and None mean: no such filter.

    gpus          any spelling; a family (`a100`) covers all its cards
    min_*_memory  of the whole machine and of one card, as the driver reports it
    gpu_count     exactly so many cards; `max_gpus` at most
    regions       globs without case (`us-*`); `any` is a list price that is not bound to a region
    max_price_*   of the whole machine and of one card; an offer without a price meets no limit
    max_price_age_s  against `today`; a price without a date meets no limit
    """

    gpus: tuple[str, ...] = ()
    min_total_memory_bytes: float | None = None
    min_gpu_memory_bytes: float | None = None
    gpu_count: float | None = None
    max_gpus: float | None = None
    providers: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    markets: tuple[Market, ...] = ()
    max_price_usd_per_hour: Decimal | None = None
    max_price_usd_per_gpu_hour: Decimal | None = None
    max_price_age_s: float | None = None
    exclude_flags: tuple[str, ...] = ()
    sort: SortKey = "price"
    limit: int | None = None
    today: date | None = None


def offers() -> tuple[Offer, ...]:
    """Every offer of the shipped snapshot whose GPU is in the catalogue, one for each market."""
    return snapshot().offers


def unmapped() -> tuple[UnmappedRows, ...]:
    """The rows of the snapshot that are no offers, with the reason."""
    return snapshot().unmapped


@lru_cache(maxsize=1)
def snapshot() -> Snapshot:
    """The shipped price file, parsed once."""
    return parse_snapshot(read_text(TABLE), where=TABLE, table=device_table(), reasons=unsuited_gpus())


def price_age_days(offer: Offer, *, today: date) -> int | None:
    """Days since the price was seen; None when the price carries no date."""
    return None if offer.price_date is None else (today - offer.price_date).days


def age_words(days: int | None, *, short: bool = False) -> str:
    """`today`, `1 day`, `3 months`, `1.8 years`, short `1 d`, `3 mo`, `1.8 y`; `undated` for a price without a date."""
    if days is None:
        return "undated"
    if days < 1:
        return "today"
    if days < 60:
        return f"{days} d" if short else f"{days} day{'' if days == 1 else 's'}"
    years = days / _DAYS_A_YEAR
    if years < 1.5:
        return f"{12 * years:.0f} {'mo' if short else 'months'}"
    return f"{years:.1f} {'y' if short else 'years'}"


def select(found: Iterable[Offer], query: OfferQuery) -> tuple[Offer, ...]:
    """The offers that meet every filter of the query, in its order; unknown prices last, whatever the order.

    Raises:
        UnknownNameError: a GPU, provider, tier, region or flag that nothing here carries.
        ValueError: a limit on age without a day to count from.
    """
    pool = tuple(found)
    tests = tuple(filters(pool, query).values())
    kept = [offer for offer in pool if all(test(offer) for test in tests)]
    kept.sort(key=lambda offer: _rank(offer, query.sort))
    return tuple(kept if query.limit is None else kept[: query.limit])


def without_each(found: Iterable[Offer], query: OfferQuery) -> Mapping[str, int]:
    """How many offers would match if one filter were dropped, by the filter's name; for a query that finds none."""
    pool = tuple(found)
    tests = filters(pool, query)
    return {
        name: sum(all(test(offer) for other, test in tests.items() if other != name) for offer in pool)
        for name in tests
    }


def filters(pool: Sequence[Offer], query: OfferQuery) -> Mapping[str, Test]:
    """The tests of a query by name, its names checked.

    Raises:
        UnknownNameError, ValueError: as `select`.
    """
    tests: dict[str, Test | None] = {
        "gpu": _gpu_test(query),
        "provider": _among(query.providers, "provider", {o.provider for o in pool} | set(provider_terms())),
        "tier": _among(query.tiers, "tier", get_args(Tier)),
        "region": _region_test(pool, query),
        "market": _among(query.markets, "market", get_args(Market)),
        "min-vram": _at_least(query.min_total_memory_bytes, lambda o: o.total_memory_bytes),
        "min-gpu-vram": _at_least(query.min_gpu_memory_bytes, lambda o: o.gpu_memory_bytes),
        "count": _exactly(query.gpu_count, lambda o: o.gpu_count),
        "max-gpus": _at_most(query.max_gpus, lambda o: o.gpu_count),
        "max-price": _at_most(query.max_price_usd_per_hour, lambda o: o.price_usd_per_hour),
        "max-gpu-price": _at_most(query.max_price_usd_per_gpu_hour, lambda o: o.usd_per_gpu_hour),
        "max-age": _age_test(query),
        "exclude-flag": _flag_test(query),
    }
    return {name: test for name, test in tests.items() if test is not None}


def _gpu_test(query: OfferQuery) -> Test | None:
    if not query.gpus:
        return None
    wanted = frozenset(device.name for name in query.gpus for device in match_devices(name))
    return lambda offer: offer.gpu in wanted


def _among(wanted: tuple[str, ...], kind: str, known: Iterable[str]) -> Test | None:
    if not wanted:
        return None
    names = sorted(known)
    for name in wanted:
        if name not in names:
            raise unknown_name(kind, name, names, list_command=f"use one of: {', '.join(names)}")
    attribute, chosen = kind, frozenset(wanted)
    return lambda offer: getattr(offer, attribute) in chosen


def _region_test(pool: Sequence[Offer], query: OfferQuery) -> Test | None:
    if not query.regions:
        return None
    known = sorted({offer.region for offer in pool})
    chosen: set[str] = set()
    for pattern in query.regions:
        glob = re.compile(translate(pattern.lower()))
        matched = {region for region in known if glob.match(region.lower())}
        if not matched:
            raise unknown_name("region", pattern, known, list_command='use a name or a glob, such as "us-*"')
        chosen |= matched
    return lambda offer: offer.region in chosen


def _exactly(number: float | None, quantity: Callable[[Offer], float]) -> Test | None:
    return None if number is None else lambda offer: quantity(offer) == number


def _at_least(limit: float | None, quantity: Callable[[Offer], float]) -> Test | None:
    return None if limit is None else lambda offer: quantity(offer) >= limit


def _at_most(limit: Any, quantity: Callable[[Offer], Any]) -> Test | None:
    """A quantity that is not known meets no limit."""
    if limit is None:
        return None
    return lambda offer: (value := quantity(offer)) is not None and value <= limit


def _age_test(query: OfferQuery) -> Test | None:
    limit_s, today = query.max_price_age_s, query.today
    if limit_s is None:
        return None
    if today is None:
        raise ValueError("max_price_age_s needs today")
    return _at_most(limit_s / DAY_S, lambda offer: price_age_days(offer, today=today))


def _flag_test(query: OfferQuery) -> Test | None:
    if not query.exclude_flags:
        return None
    for flag in query.exclude_flags:
        if flag not in PRICE_FLAGS:
            raise unknown_name("flag", flag, PRICE_FLAGS, list_command=f"use one of: {', '.join(PRICE_FLAGS)}")
    refused = frozenset(query.exclude_flags)
    return lambda offer: refused.isdisjoint(offer.flags)


def _rank(offer: Offer, key: SortKey) -> tuple[bool, Any, Any, str, str, str]:
    price = offer.price_usd_per_hour
    first: Any = 0
    if price is not None:
        first = _FIRST[key](offer, price)
    known = price if price is not None else Decimal(0)
    return (price is None, first, known, offer.provider, offer.region, offer.instance_type)


_FIRST: Mapping[SortKey, Callable[[Offer, Decimal], Any]] = {
    "price": lambda offer, price: price,
    "gpu-price": lambda offer, price: offer.usd_per_gpu_hour,
    "memory-price": lambda offer, price: float(price) / offer.total_memory_bytes,
    "memory": lambda offer, price: -offer.total_memory_bytes,
    "gpu": lambda offer, price: offer.gpu,
    "provider": lambda offer, price: offer.provider,
    # The newest first; a price without a date is older than any.
    "age": lambda offer, price: -offer.price_date.toordinal() if offer.price_date else 0,
}
