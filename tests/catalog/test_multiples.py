"""Several cards at so many times the price of one: where the terms say so, and nowhere else."""

from dataclasses import replace
from decimal import Decimal

from scrimp.catalog.flags import PER_GPU_PRICE, TIMES_ONE
from scrimp.catalog.multiples import multiples
from scrimp.catalog.offers import offers
from scrimp.catalog.terms import provider_terms

TERMS = provider_terms()


def _one():
    return next(
        offer for offer in offers() if offer.provider == "runpod" and offer.gpu == "RTX4090" and offer.gpu_count == 1
    )


def test_two_four_and_eight_cards_cost_so_many_times_one():
    one = _one()
    found = multiples([one], TERMS)
    assert [offer.gpu_count for offer in found] == [2, 4, 8]
    for offer in found:
        assert offer.price_usd_per_hour == one.price_usd_per_hour * Decimal(int(offer.gpu_count))
        assert offer.instance_type == f"{offer.gpu_count:.0f}x{one.instance_type.removeprefix('1x')}"
        assert set(offer.flags) == {*one.flags, TIMES_ONE}
        assert (offer.vcpus, offer.host_memory_bytes) == (None, None)


def test_only_where_the_terms_say_so_and_only_prices_per_card():
    one = _one()
    silent = {"runpod": replace(TERMS["runpod"], most_gpus=None)}
    assert multiples([one], silent) == ()
    assert multiples([one], {}) == ()
    assert multiples([replace(one, flags=())], TERMS) == ()
    assert multiples([replace(one, price_usd_per_hour=None)], TERMS) == ()
    four = {"runpod": replace(TERMS["runpod"], most_gpus=4)}
    assert [offer.gpu_count for offer in multiples([one], four)] == [2, 4]


def test_what_the_list_has_itself_is_not_derived():
    one = _one()
    two = replace(one, gpu_count=2.0, instance_type="2x", price_usd_per_hour=Decimal("9.99"))
    assert [offer.gpu_count for offer in multiples([one, two], TERMS)] == [4, 8]


def test_of_the_shipped_list_only_providers_with_established_terms_are_scaled():
    found = multiples(offers(), TERMS)
    assert found
    assert {offer.provider for offer in found} == {"runpod"}
    assert all(PER_GPU_PRICE in offer.flags for offer in found)
