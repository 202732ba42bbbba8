"""GPUs: what the catalogue knows of each card, and where it is cheapest to rent."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Literal

from scrimp.catalog.devices import DEVICE_CLASSES, device_table, devices, find_device
from scrimp.catalog.flags import is_doubtful
from scrimp.catalog.offers import ATTRIBUTION, OfferQuery, offers, select
from scrimp.core.errors import unknown_name
from scrimp.core.market import Device, Market, Offer
from scrimp.workflows.world import World

GpuSort = Literal["price", "spot-price", "memory", "bandwidth", "flops", "power", "flops-per-usd", "name"]
# Offers of one card listed on its own page, in each market.
_CHEAPEST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuQuery:
    """Which cards, in which order. None and empty mean: no such filter."""

    vendor: str | None = None
    device_class: str | None = None
    min_memory_bytes: float | None = None
    bf16: bool = False
    offered: bool = False
    sort: GpuSort = "price"
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRow:
    """One card and its cheapest whole-card offers; None where there is none.

    Serverless functions, slices and doubtful prices are left out: they rent no machine, or prove no price.
    """

    device: Device
    on_demand: Offer | None
    spot: Offer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuListing:
    """The cards that were found."""

    rows: tuple[GpuRow, ...]
    found: int
    today: date
    attribution: str = ATTRIBUTION


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuDetails:
    """All that is known of one card: the noun, the cells of its row as written, its cheapest offers."""

    device: Device
    cells: Mapping[str, str]
    on_demand: tuple[Offer, ...]
    spot: tuple[Offer, ...]
    offers: int
    today: date
    attribution: str = ATTRIBUTION


def list_gpus(query: GpuQuery, *, world: World) -> GpuListing:
    """The cards that meet `query`; cards without the quantity that is sorted by come last.

    Raises:
        UnknownNameError: no such vendor or class.
    """
    _check(query.vendor, "vendor", {device.vendor for device in devices().values()})
    _check(query.device_class, "class", DEVICE_CLASSES)
    cheapest = _cheapest_offers()
    rows = [
        GpuRow(device=d, on_demand=cheapest.get((d.name, "on_demand")), spot=cheapest.get((d.name, "spot")))
        for d in devices().values()
        if _meets(d, query)
    ]
    found = [row for row in rows if row.on_demand or row.spot or not query.offered]
    found.sort(key=lambda row: _rank(row, query.sort))
    return GpuListing(rows=tuple(found[: query.limit]), found=len(found), today=world.now().date())


def describe_gpu(name: str, *, world: World) -> GpuDetails:
    """Everything about one card, in any spelling of its name; what an ambiguous name was read as is noted.

    Raises:
        UnknownNameError: no device is called so; the nearest names are suggested.
    """
    device = find_device(name, note=world.note)
    of_card = select(offers(), OfferQuery(gpus=(device.name,), sort="gpu-price"))
    proven = [offer for offer in of_card if _counts(offer)]
    return GpuDetails(
        device=device,
        cells=device_table().cells[device.name],
        on_demand=tuple(offer for offer in proven if offer.market == "on_demand")[:_CHEAPEST],
        spot=tuple(offer for offer in proven if offer.market == "spot")[:_CHEAPEST],
        offers=len(of_card),
        today=world.now().date(),
    )


def _check(name: str | None, kind: str, known: Iterable[str]) -> None:
    names = sorted(known)
    if name is not None and name.lower() not in {item.lower() for item in names}:
        raise unknown_name(kind, name, names, list_command=f"use one of: {', '.join(names)}")


def _meets(device: Device, query: GpuQuery) -> bool:
    return (
        (query.vendor is None or device.vendor.lower() == query.vendor.lower())
        and (query.device_class is None or device.device_class == query.device_class.lower())
        and device.memory_bytes >= (query.min_memory_bytes or 0)
        and (device.supports_bf16 or not query.bf16)
    )


def _counts(offer: Offer) -> bool:
    """Whether an offer rents at least a whole card at a price that is known and not doubtful."""
    return (
        offer.price_usd_per_hour is not None
        and offer.gpu_count >= 1
        and offer.tier != "serverless"
        and not is_doubtful(offer.flags)
    )


def _cheapest_offers() -> Mapping[tuple[str, Market], Offer]:
    """By card and market, the lowest price of one card for an hour."""
    found: dict[tuple[str, Market], Offer] = {}
    for offer in select((offer for offer in offers() if _counts(offer)), OfferQuery(sort="gpu-price")):
        found.setdefault((offer.gpu, offer.market), offer)
    return found


def _rank(row: GpuRow, sort: GpuSort) -> tuple[bool, Any, str]:
    value = _VALUES[sort](row)
    return (value is None, value if value is not None else 0, row.device.name)


def _price(offer: Offer | None) -> Decimal | None:
    return None if offer is None else offer.usd_per_gpu_hour


def _largest_first(number: float | None) -> float | None:
    return None if number is None else -number


def _flops_per_usd(row: GpuRow) -> float | None:
    price, flops = _price(row.on_demand), row.device.bf16_flops
    return None if not price or flops is None else flops / float(price)


_VALUES: Mapping[GpuSort, Callable[[GpuRow], Any]] = {
    "price": lambda row: _price(row.on_demand),
    "spot-price": lambda row: _price(row.spot),
    "memory": lambda row: _largest_first(row.device.memory_bytes),
    "bandwidth": lambda row: _largest_first(row.device.bandwidth_bytes_per_s),
    "flops": lambda row: _largest_first(row.device.bf16_flops),
    "power": lambda row: row.device.power_w,
    "flops-per-usd": lambda row: _largest_first(_flops_per_usd(row)),
    "name": lambda row: row.device.name,
}
