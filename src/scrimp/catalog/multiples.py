"""Machines of several cards that a price list gives for one: derived offers, at so many times the price of one card.

Only of providers whose terms say that they charge so (`ProviderTerms.most_gpus`), and only of rows that are marked as a
price per card. Whether such a machine is free is known of no offer; of these it is also not known whether each card is
rented out in every number.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from scrimp.catalog.flags import PER_GPU_PRICE, TIMES_ONE
from scrimp.core.market import Offer, ProviderTerms

# What training divides evenly over, and what hosts are built with.
_COUNTS = (2, 4, 8)


def multiples(offers: Iterable[Offer], terms: Mapping[str, ProviderTerms]) -> tuple[Offer, ...]:
    """The derived offers alone, but for those that the list has itself."""
    listed = tuple(offers)
    known = {_key(offer, int(offer.gpu_count)) for offer in listed}
    return tuple(
        _times(offer, count)
        for offer in listed
        for count in _COUNTS
        if _is_for_one(offer) and count <= _most_gpus(offer, terms) and _key(offer, count) not in known
    )


def _is_for_one(offer: Offer) -> bool:
    return offer.gpu_count == 1 and PER_GPU_PRICE in offer.flags and offer.price_usd_per_hour is not None


def _most_gpus(offer: Offer, terms: Mapping[str, ProviderTerms]) -> int:
    found = terms.get(offer.provider)
    return 1 if found is None or found.most_gpus is None else found.most_gpus


def _key(offer: Offer, count: int) -> tuple[str, str, str, str, int]:
    return (offer.provider, offer.region, offer.gpu, offer.market, count)


def _times(offer: Offer, count: int) -> Offer:
    """What is known of the host holds for one card, so it is not known of this one."""
    assert offer.price_usd_per_hour is not None
    return replace(
        offer,
        instance_type=f"{count}x{offer.instance_type.removeprefix('1x')}",
        gpu_count=float(count),
        vcpus=None,
        host_memory_bytes=None,
        price_usd_per_hour=count * offer.price_usd_per_hour,
        flags=(*offer.flags, TIMES_ONE),
    )
