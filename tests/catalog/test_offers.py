"""The one query: filters, order, ages, and the laws that hold for every query."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.catalog.flags import PRICE_FLAGS
from scrimp.catalog.offers import (
    ATTRIBUTION,
    OfferQuery,
    SortKey,
    age_words,
    offers,
    price_age_days,
    select,
    without_each,
)
from scrimp.core.errors import UnknownNameError
from scrimp.core.market import Offer
from scrimp.core.units import DAY_S, GB, GIB

TODAY = date(2026, 12, 1)
ALL = offers()


def _offer(**changes: object) -> Offer:
    usual = Offer(
        provider="aws",
        tier="hyperscaler",
        region="us-east-1",
        instance_type="x",
        gpu="L4",
        gpu_form="",
        gpu_count=1.0,
        gpu_memory_bytes=22 * GIB,
        vcpus=None,
        host_memory_bytes=None,
        market="on_demand",
        price_usd_per_hour=Decimal(1),
        price_source="list",
        price_date=date(2026, 11, 1),
    )
    return replace(usual, **changes)  # type: ignore[arg-type] # fields of an offer by name


queries = st.builds(
    OfferQuery,
    gpus=st.lists(st.sampled_from(["a100", "4090", "H100 SXM", "T4"]), max_size=2).map(tuple),
    min_total_memory_bytes=st.none() | st.sampled_from([24 * GB, 80 * GB]),
    gpu_count=st.none() | st.sampled_from([1.0, 8.0]),
    max_gpus=st.none() | st.sampled_from([1.0, 4.0]),
    providers=st.lists(st.sampled_from(["aws", "azure", "vast"]), max_size=2).map(tuple),
    regions=st.lists(st.sampled_from(["us-*", "any", "*eu*"]), max_size=1).map(tuple),
    markets=st.sampled_from([(), ("spot",), ("on_demand",)]),
    max_price_usd_per_hour=st.none() | st.sampled_from([Decimal("0.5"), Decimal(10)]),
    max_price_age_s=st.none() | st.sampled_from([120.0 * DAY_S, 200.0 * DAY_S]),
    exclude_flags=st.sampled_from([(), ("stale",), ("spot_floor", "fractional_gpu")]),
    sort=st.sampled_from(get_args(SortKey)),
    today=st.just(TODAY),
)


@settings(max_examples=40, deadline=None)
@given(queries)
def test_a_query_keeps_whole_offers_and_its_limit_takes_the_head(query):
    found = select(ALL, query)
    assert len(set(map(id, found))) == len(found)
    assert {id(offer) for offer in found} <= {id(offer) for offer in ALL}
    assert select(ALL, replace(query, limit=3)) == found[:3]


@settings(max_examples=40, deadline=None)
@given(queries)
def test_every_filter_only_takes_away(query):
    for name, count in without_each(ALL, query).items():
        assert count >= len(select(ALL, query)), name


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(get_args(SortKey)))
def test_unknown_prices_come_last_in_every_order(sort):
    found = select(ALL, OfferQuery(sort=sort))
    known = [offer.price_usd_per_hour is not None for offer in found]
    assert known == sorted(known, reverse=True)
    assert not all(known), "the snapshot has offers without a price"


@pytest.mark.parametrize(
    ("sort", "key"),
    [
        ("price", lambda o: o.price_usd_per_hour),
        ("gpu-price", lambda o: o.usd_per_gpu_hour),
        ("memory", lambda o: -o.total_memory_bytes),
        ("age", lambda o: -o.price_date.toordinal() if o.price_date else 0),
        ("provider", lambda o: o.provider),
    ],
)
def test_orders(sort, key):
    values = [key(o) for o in select(ALL, OfferQuery(sort=sort)) if o.price_usd_per_hour is not None]
    assert values == sorted(values)


def test_a_family_of_gpus_in_any_spelling():
    assert {o.gpu for o in select(ALL, OfferQuery(gpus=("a100 80gb",)))} == {"A100-SXM4-80GB", "A100-PCIe-80GB"}
    assert {o.gpu for o in select(ALL, OfferQuery(gpus=("4090", "l4")))} == {"RTX4090", "L4"}


def test_memory_of_the_machine_and_of_one_card():
    pool = (_offer(gpu_count=4.0), _offer(gpu_memory_bytes=80 * GIB), _offer(gpu_count=0.5))
    assert select(pool, OfferQuery(min_total_memory_bytes=80 * GB)) == pool[:2]
    assert select(pool, OfferQuery(min_gpu_memory_bytes=80 * GB)) == (pool[1],)


def test_a_machine_sold_as_80_gb_meets_80_gb():
    found = {o.gpu for o in select(ALL, OfferQuery(min_gpu_memory_bytes=80 * GB))}
    assert {"H100-SXM5-80GB", "A100-SXM4-80GB"} <= found


def test_limits_on_price_leave_unknown_prices_out():
    pool = (_offer(), _offer(price_usd_per_hour=None), _offer(price_usd_per_hour=Decimal(8), gpu_count=8.0))
    assert select(pool, OfferQuery(max_price_usd_per_hour=Decimal(5))) == (pool[0],)
    assert select(pool, OfferQuery(max_price_usd_per_gpu_hour=Decimal(1))) == (pool[0], pool[2])


def test_limits_on_age_leave_undated_prices_out():
    pool = (_offer(), _offer(price_date=None), _offer(price_date=date(2026, 1, 1)))
    assert select(pool, OfferQuery(max_price_age_s=30 * DAY_S, today=TODAY)) == (pool[0],)
    with pytest.raises(ValueError, match="today"):
        select(pool, OfferQuery(max_price_age_s=1.0))


def test_regions_are_globs_without_case_and_any_must_be_asked_for():
    pool = (_offer(), _offer(region="any"), _offer(region="Oregon, US, NA"))
    assert select(pool, OfferQuery(regions=("US-*",))) == (pool[0],)
    assert set(select(pool, OfferQuery(regions=("oregon*", "any")))) == {pool[1], pool[2]}


@pytest.mark.parametrize(
    ("query", "near"),
    [
        (OfferQuery(providers=("runpot",)), "runpod"),
        (OfferQuery(tiers=("hyperscalar",)), "hyperscaler"),
        (OfferQuery(regions=("us-eest-1",)), "us-east-1"),
        (OfferQuery(gpus=("H1000",)), "H100"),
        (OfferQuery(exclude_flags=("stail",)), "stale"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(query, near):
    with pytest.raises(UnknownNameError) as caught:
        select(ALL, query)
    assert near in caught.value.expected


def test_a_provider_without_an_offer_is_known_all_the_same():
    assert select(ALL, OfferQuery(providers=("ibm",))) == ()


def test_what_each_filter_costs_is_told():
    pool = (_offer(), _offer(provider="vast"))
    query = OfferQuery(providers=("aws",), max_price_usd_per_hour=Decimal("0.5"))
    assert without_each(pool, query) == {"provider": 0, "max-price": 1}


def test_ages_are_days_and_words():
    assert price_age_days(_offer(), today=TODAY) == 30
    assert price_age_days(_offer(price_date=None), today=TODAY) is None
    words = [age_words(days) for days in (None, 0, 1, 59, 101, 540, 645)]
    assert words == ["undated", "today", "1 day", "59 days", "3 months", "18 months", "1.8 years"]
    assert [age_words(days, short=True) for days in (12, 101, 645)] == ["12 d", "3 mo", "1.8 y"]


def test_the_attribution_has_the_wording_and_the_links_that_the_licence_asks_for():
    assert "GPU rental price data by gpurentalprices.com" in ATTRIBUTION
    assert "https://gpurentalprices.com" in ATTRIBUTION
    assert "CC BY 4.0" in ATTRIBUTION


def test_flags_have_words_that_fit_a_column():
    assert all(flag.word and len(flag.word) <= 9 and flag.meaning for flag in PRICE_FLAGS.values())
    assert PRICE_FLAGS["stale"].doubtful
