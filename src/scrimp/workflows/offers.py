"""Offers: which machines are for rent under some filters, at what price, and how old that price is."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date

from scrimp.catalog.devices import match_devices
from scrimp.catalog.flags import PRICE_FLAGS
from scrimp.catalog.offers import ATTRIBUTION, OfferQuery, UnmappedRows, offers, select, unmapped, without_each
from scrimp.core.market import Offer
from scrimp.core.plan import PriceAge
from scrimp.workflows.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferListing:
    """The offers that were found, in the order asked for.

    `found` counts all that match, `offers` holds as many as the query's limit lets through. When nothing matches,
    `without` says for every filter how many offers would match if it were dropped.
    """

    offers: tuple[Offer, ...]
    found: int
    considered: int
    today: date
    prices: PriceAge
    flags: Mapping[str, str]
    without: Mapping[str, int] = field(default_factory=dict[str, int])
    unmapped: tuple[UnmappedRows, ...] = ()
    attribution: str = ATTRIBUTION


def find_offers(query: OfferQuery, *, world: World) -> OfferListing:
    """The offers of the shipped snapshot that meet `query`, with ages counted from the world's clock.

    What an ambiguous GPU name was read as is noted.

    Raises:
        UnknownNameError: a GPU, provider, tier, region or flag that nothing carries; the nearest are suggested.
    """
    today = world.now().date()
    for name in query.gpus:
        match_devices(name, note=world.note)
    everything = offers()
    dated = replace(query, today=today, limit=None)
    found = select(everything, dated)
    shown = found if query.limit is None else found[: query.limit]
    return OfferListing(
        offers=shown,
        found=len(found),
        considered=len(everything),
        today=today,
        prices=_ages(found),
        flags={flag: item.meaning for flag, item in PRICE_FLAGS.items() if any(flag in o.flags for o in shown)},
        without={} if found else without_each(everything, dated),
        unmapped=unmapped(),
    )


def _ages(found: tuple[Offer, ...]) -> PriceAge:
    dates = [offer.price_date for offer in found if offer.price_date]
    return PriceAge(
        oldest=min(dates, default=None), newest=max(dates, default=None), undated_offers=len(found) - len(dates)
    )
