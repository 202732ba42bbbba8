"""Choosing: the laws of the ranking, the front and the limits, and that every offer left out has a reason."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.core.errors import UnknownNameError
from scrimp.planner.choose import choose
from scrimp.planner.limits import chance_over
from scrimp.planner.market import is_stale
from scrimp.planner.order import cost_usd, duration_s, is_tight
from scrimp.planner.search import cheapest_of_each

GPUS = ("RTX4090", "A100-SXM4-80GB", "T4", "MI300X", "Gaudi2")
PRICES = st.one_of(st.none(), st.decimals("0.05", "40", places=2))


@st.composite
def offers_of(draw, fakes):
    """One offer of a small market: a few cards, providers, regions, counts and markets."""
    gpu = draw(st.sampled_from(GPUS))
    price = draw(PRICES)
    return fakes.offer(
        gpu,
        None if price is None else str(price),
        provider=draw(st.sampled_from(("vast", "aws", "azure"))),
        region=draw(st.sampled_from(("any", "eu", "us"))),
        gpu_count=draw(st.sampled_from((0.5, 1.0, 2.0, 8.0))),
        market=draw(st.sampled_from(("on_demand", "spot"))),
        price_date=draw(st.sampled_from((None, date(2025, 6, 28), date(2026, 8, 1)))),
        flags=draw(st.sampled_from(((), (), ("stale",), ("per_gpu_price",)))),
    )


def _markets(fakes):
    return st.lists(offers_of(fakes), min_size=1, max_size=12)


def _plans(fakes, offers, **spec):
    workload = fakes.workload(spec=fakes.spec(**spec))
    return choose(workload, fakes.facts(*offers), fakes.Forecaster())


def _best(plans):
    """(whether it may not fit, cost): a plan that fits comfortably is better than any that may not."""
    if not plans.candidates:
        return True, Decimal("Infinity")
    best = plans.candidates[0]
    return is_tight(best), cost_usd(best)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_an_extra_offer_never_makes_the_best_plan_dearer_unless_surer(fakes, data):
    offers, extra = data.draw(_markets(fakes)), data.draw(offers_of(fakes))
    assert _best(_plans(fakes, [*offers, extra])) <= _best(_plans(fakes, offers))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_order_of_the_offers_does_not_matter(fakes, data):
    offers = data.draw(_markets(fakes))
    shuffled = data.draw(st.permutations(offers))
    assert _plans(fakes, offers).candidates == _plans(fakes, shuffled).candidates


@settings(max_examples=60, deadline=None)
@given(data=st.data(), small=st.decimals("0.1", "30", places=2), more=st.decimals("0", "30", places=2))
def test_a_smaller_budget_only_takes_plans_away(fakes, data, small, more):
    offers = data.draw(_markets(fakes))
    tight = _plans(fakes, offers, limits={"budget_usd": small}).candidates
    loose = _plans(fakes, offers, limits={"budget_usd": small + more}).candidates
    assert [c for c in loose if cost_usd(c) <= small] == list(tight)
    assert all(cost_usd(candidate) <= small for candidate in tight)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), deadline=st.floats(300, 20_000))
def test_every_candidate_meets_the_deadline(fakes, data, deadline):
    plans = _plans(fakes, data.draw(_markets(fakes)), limits={"deadline_s": deadline})
    assert all(duration_s(candidate) <= deadline for candidate in plans.candidates)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_without_preemption_spot_costs_its_list_price(fakes, data):
    for candidate in _plans(fakes, data.draw(_markets(fakes))).candidates:
        hours = Decimal(str(candidate.time.total_s.value)) / 3600
        assert cost_usd(candidate) == pytest.approx(candidate.offer.price_usd_per_hour * hours)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_the_front_is_a_front(fakes, data):
    plans = _plans(fakes, data.draw(_markets(fakes)))
    front = plans.front
    everyone = [c for c in plans.candidates if not is_tight(c)] or plans.candidates
    assert bool(front) == bool(everyone)
    if not front:
        return
    assert cost_usd(front[0]) == min(map(cost_usd, everyone))
    assert duration_s(front[-1]) == min(map(duration_s, everyone))
    for point in front:
        assert not [c for c in everyone if cost_usd(c) < cost_usd(point) and duration_s(c) <= duration_s(point)]
        assert not [c for c in everyone if cost_usd(c) <= cost_usd(point) and duration_s(c) < duration_s(point)]
    for candidate in everyone:
        assert [p for p in front if cost_usd(p) <= cost_usd(candidate) and duration_s(p) <= duration_s(candidate)]


@settings(max_examples=60, deadline=None)
@given(data=st.data(), objective=st.sampled_from(("cheapest", "fastest")))
def test_the_order_is_that_of_the_objective(fakes, data, objective):
    plans = _plans(fakes, data.draw(_markets(fakes)), market={"where": "cloud", "objective": objective})
    measure = cost_usd if objective == "cheapest" else duration_s
    values = [(is_tight(candidate), measure(candidate)) for candidate in plans.candidates]
    assert values == sorted(values)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_unknown_and_doubtful_prices_never_win_and_are_counted(fakes, data):
    offers = data.draw(_markets(fakes))
    plans = _plans(fakes, offers)
    assert all(c.offer.price_usd_per_hour is not None and "stale" not in c.offer.flags for c in plans.candidates)
    whole = [o for o in offers if o.gpu_count >= 1]
    unknown = [o for o in whole if o.price_usd_per_hour is None or "stale" in o.flags]
    assert sum(r.offers for r in plans.rejected if r.kind == "price_unknown") == len(unknown)
    assert plans.considered_offers == len(offers)


def test_recipes_are_searched_once_a_machine_and_not_once_an_offer(fakes):
    many = [fakes.offer("RTX4090", "0.4", provider=f"p{n}", region=r) for n in range(30) for r in ("eu", "us")]
    calls = []
    for offers in (many[:1], many):
        forecaster = fakes.Forecaster()
        choose(fakes.workload(spec=fakes.spec(method="lora")), fakes.facts(*offers), forecaster)
        calls.append(forecaster.memory_calls)
    assert calls[0] == calls[1]


def test_the_table_shows_each_machine_once_per_provider_and_market(fakes):
    regions = [fakes.offer("RTX4090", f"0.{n}", region=f"r{n}") for n in range(3, 9)]
    plans = _plans(fakes, regions, method="lora")
    (candidate,) = plans.candidates
    assert candidate.offer.region == "r3"
    (twins,) = [r for r in plans.rejected if r.kind == "dominated"]
    assert twins.offers == 5


def test_a_stale_price_hides_no_fresh_one(fakes):
    old, new = date(2025, 6, 28), date(2026, 8, 1)
    stale = fakes.offer("RTX4090", "0.20", region="eu", price_date=old)
    fresh = fakes.offer("RTX4090", "0.30", region="us", price_date=new)
    assert is_stale(stale, fakes.TODAY)
    assert not is_stale(fresh, fakes.TODAY)
    assert set(cheapest_of_each([stale, fresh], fakes.TODAY)) == {stale, fresh}


def test_ties_are_broken_by_name(fakes):
    twins = [fakes.offer("RTX4090", "0.4", provider=p) for p in ("verda", "aws", "lambda")]
    plans = _plans(fakes, twins, method="lora")
    assert [c.offer.provider for c in plans.candidates] == ["aws", "lambda", "verda"]


@pytest.mark.parametrize(
    ("market", "left", "words"),
    [
        ({"providers": ("aws",)}, 1, "market.providers = aws"),
        ({"gpus": ("4090",)}, 2, "market.gpus = 4090"),
        ({"spot": "only"}, 1, "market.spot = only"),
        ({"spot": "never"}, 2, "market.spot = never"),
        ({"max_gpus": 1}, 2, "market.max_gpus = 1"),
        ({"max_price_usd_per_hour": Decimal(1)}, 2, "$1.00"),
        ({"max_price_age_s": 200 * 86400.0}, 2, "200 d"),
        ({"regions": ("eu*",)}, 1, "market.regions = eu*"),
        ({"tiers": ("hyperscaler",)}, 1, "market.tiers = hyperscaler"),
    ],
)
def test_filters_reject_with_their_name(fakes, market, left, words):
    offers = (
        fakes.offer("RTX4090", "0.40"),
        fakes.offer("RTX4090", "0.20", market="spot", price_date=None),
        fakes.offer("A100-SXM4-80GB", "9.00", provider="aws", tier="hyperscaler", region="eu-west-1", gpu_count=2.0),
    )
    plans = _plans(fakes, offers, method="lora", market={"where": "cloud", **market})
    (filtered,) = [r for r in plans.rejected if r.kind == "filtered"]
    assert words in filtered.reason
    assert len(plans.candidates) == left
    assert filtered.offers == 3 - left


@pytest.mark.parametrize("market", [{"gpus": ("A10O",)}, {"providers": ("vsat",)}, {"regions": ("eeu",)}])
def test_unknown_names_are_answered_with_the_nearest(fakes, market):
    offers = (fakes.offer("RTX4090", "0.40", region="eu"),)
    with pytest.raises(UnknownNameError, match="Did you mean"):
        _plans(fakes, offers, market={"where": "cloud", **market})


@pytest.mark.parametrize(
    ("where", "providers"), [("local", {"local"}), ("cloud", {"vast"}), ("any", {"local", "vast"})]
)
def test_where_says_whether_this_machine_counts(fakes, where, providers):
    workload = fakes.workload(spec=fakes.spec(method="lora", market={"where": where}))
    plans = choose(workload, fakes.facts(fakes.offer("A100-SXM4-80GB", "1.0"), local=True), fakes.Forecaster())
    assert {candidate.offer.provider for candidate in plans.candidates} == providers


def test_filters_on_rented_machines_leave_this_one_alone(fakes):
    market = {"where": "any", "providers": ("vast",), "gpus": ("RTX4090",), "spot": "never"}
    workload = fakes.workload(spec=fakes.spec(method="lora", market=market))
    plans = choose(workload, fakes.facts(fakes.offer("RTX4090", "1.0"), local=True), fakes.Forecaster())
    assert {candidate.offer.provider for candidate in plans.candidates} == {"local", "vast"}


def test_limits_reject_by_machine_and_method_with_the_amount(fakes):
    offers = (fakes.offer("RTX4090", "0.40"), fakes.offer("A100-SXM4-80GB", "3.00"))
    free = _plans(fakes, offers, method="lora")
    cheap, dear = sorted(map(cost_usd, free.candidates))
    plans = _plans(fakes, offers, method="lora", limits={"budget_usd": (cheap + dear) / 2})
    assert len(plans.candidates) == 1
    (over,) = [r for r in plans.rejected if r.kind == "over_budget"]
    assert "over the budget" in over.reason
    slow, fast = sorted((duration_s(c) for c in free.candidates), reverse=True)
    plans = _plans(fakes, offers, method="lora", limits={"deadline_s": (slow + fast) / 2})
    (late,) = [r for r in plans.rejected if r.kind == "past_deadline"]
    assert "past the deadline" in late.reason


def test_the_chance_to_break_a_limit_follows_the_interval(fakes):
    time = fakes.Forecaster().time
    forecast = _plans(fakes, (fakes.offer("RTX4090", "0.4"),), method="lora").candidates[0].time.total_s
    assert callable(time)
    assert chance_over(forecast, forecast.value) == pytest.approx(0.5)
    assert chance_over(forecast, forecast.high) == pytest.approx(0.1, abs=1e-3)
    assert chance_over(forecast, forecast.low) == pytest.approx(0.9, abs=1e-3)
    assert chance_over(forecast, 100 * forecast.high) < 1e-6
    assert chance_over(forecast, 0) == 1.0
