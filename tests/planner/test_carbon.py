"""CO2e of plans beside each other: one way of counting, the rest apart, unknown never the least."""

from dataclasses import replace

import pytest

from scrimp.core.estimate import exact, within
from scrimp.core.forecast import CarbonForecast
from scrimp.core.market import GridFactor, GridMethod
from scrimp.planner import explain
from scrimp.planner.carbon import APART, carbon_cell, comparable_carbon, compare_carbon, comparison_words
from scrimp.planner.choose import choose

ZONE, GOOGLE, COUNTRY = (
    GridMethod.ZONE_CONSUMPTION,
    GridMethod.PROVIDER_OPERATIONAL,
    GridMethod.COUNTRY_GENERATION,
)


def _carbon(mass_gco2e: float, method: GridMethod = ZONE, *, reach="region", year=2024, place="here") -> CarbonForecast:
    grid = GridFactor(
        place=place,
        carbon_gco2e_per_kwh=400.0,
        pue_ratio=1.15,
        year=year,
        method=method,
        source="test",
        reach=reach,
    )
    mass = within(mass_gco2e, low_ratio=0.5, high_ratio=2.0, basis="test")
    return CarbonForecast(mass_gco2e=mass, grid=grid)


@pytest.fixture(scope="module")
def candidate(fakes):
    return choose(fakes.workload(), fakes.facts(fakes.offer("A100-SXM4-80GB", "2.00")), fakes.Forecaster()).candidates[
        0
    ]


@pytest.fixture
def with_carbon(candidate):
    """Candidates with these figures, in order of rank."""

    def make(*carbons):
        return [replace(candidate, energy=replace(candidate.energy, carbon=tuple(carbon))) for carbon in carbons]

    return make


def test_plans_are_compared_in_the_way_that_most_have(with_carbon):
    plans = with_carbon(
        [_carbon(900.0), _carbon(850.0, COUNTRY)],
        [_carbon(700.0, GOOGLE), _carbon(870.0, COUNTRY)],
        [_carbon(950.0, COUNTRY, year=2022)],
    )
    found = compare_carbon(plans)
    assert (found.method, found.compared, found.apart) == (COUNTRY, 3, 0)
    assert found.years == (2022, 2024)
    # By each provider's own figure the second would look lightest: it is counted otherwise.
    assert found.least == 1
    assert [carbon_cell(plan, found.method) for plan in plans] == ["850 g", "870 g", "950 g"]


def test_the_nearer_way_wins_where_both_serve_all(with_carbon):
    plans = with_carbon(*([_carbon(500.0 + n), _carbon(900.0, COUNTRY)] for n in range(2)))
    assert compare_carbon(plans).method == ZONE


def test_what_is_counted_otherwise_is_shown_apart_and_never_the_least(with_carbon):
    plans = with_carbon([_carbon(900.0)], [_carbon(800.0)], [_carbon(10.0, GOOGLE)])
    found = compare_carbon(plans)
    assert (found.method, found.compared, found.apart, found.least) == (ZONE, 2, 1, 2)
    assert carbon_cell(plans[2], found.method) == f"10.0 g{APART}"
    words = comparison_words(found, plans)
    assert "Electricity Maps" in words
    assert "least: plan 2, 800 g" in words
    assert f"{APART} 1 plan of" in words


def test_an_unknown_place_is_not_compared_even_in_its_own_way(with_carbon):
    plans = with_carbon([_carbon(900.0, COUNTRY)], [_carbon(10.0, COUNTRY, reach="world")])
    found = compare_carbon(plans)
    assert (found.compared, found.apart, found.least) == (1, 1, 1)
    assert comparable_carbon(plans[1], found.method) is None
    assert carbon_cell(plans[1], found.method).endswith(APART)


def test_unknown_is_unknown_and_never_zero(with_carbon):
    plans = with_carbon([], [_carbon(900.0)])
    found = compare_carbon(plans)
    assert (found.compared, found.apart, found.least) == (1, 0, 2)
    assert carbon_cell(plans[0], found.method) == "unknown"
    nothing = compare_carbon(with_carbon([], []))
    assert (nothing.method, nothing.least, nothing.years) == (None, None, None)
    assert "no plan's grid is known" in comparison_words(nothing, [])


def test_the_order_of_plans_does_not_hide_the_lightest(with_carbon):
    carbons = [[_carbon(mass)] for mass in (900.0, 300.0, 600.0)]
    for turn in range(3):
        order = carbons[turn:] + carbons[:turn]
        least = compare_carbon(with_carbon(*order)).least
        assert order[least - 1][0].mass_gco2e.value == 300.0


def test_the_detail_names_interval_place_year_method_and_tells_ways_apart(with_carbon):
    figures = [_carbon(1500.0, place="aws us-east-1"), _carbon(1200.0, GOOGLE, place="their own")]
    (plan,) = with_carbon(figures)
    energy = replace(plan.energy, energy_kwh=exact(3.4, basis="measured on whole nodes"))
    words = dict(explain.dominant_words(replace(plan, energy=energy)))
    assert "3.40 kWh" in words["energy"]
    assert "PUE 1.15 of the region" in words["energy"]
    assert "measured on whole nodes" in words["energy"]
    first, second = words["carbon"].split("; counted otherwise: ")
    for part in ("1.50 kg CO2e (750 g to 3.00 kg)", "aws us-east-1, 2024", "400 g/kWh", "Electricity Maps"):
        assert part in first
    assert "Google" in second
