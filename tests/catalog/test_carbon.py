"""Grid carbon and PUE: the order of places, the sources' different methods, and data integrity."""

import pytest

from scrimp.catalog.carbon import (
    CONSUMPTION,
    EGRID,
    GENERATION,
    OPERATIONAL,
    WORLD,
    WORLD_GCO2E_PER_KWH,
    comparable,
    grid_factor,
    place_factor,
)
from scrimp.catalog.offers import offers
from scrimp.catalog.table import read_rows, read_text
from scrimp.core.errors import UnknownNameError

PLACES = sorted({(offer.provider, offer.region) for offer in offers()})


def _rows(name: str):
    return list(read_rows(read_text(name), where=name))


def test_a_cloud_region_has_its_own_figure_and_its_own_pue():
    factor = grid_factor("aws", "us-east-1")
    assert (factor.carbon_gco2e_per_kwh, factor.pue_ratio, factor.year) == (396.25, 1.15, 2024)
    assert factor.method == CONSUMPTION
    assert "us-east-1" in factor.place


def test_google_rows_are_google_figures_and_not_comparable_with_the_others():
    google, amazon = grid_factor("gcp", "us-east4"), grid_factor("aws", "us-east-1")
    assert google.carbon_gco2e_per_kwh == 323.05
    assert google.method == OPERATIONAL
    assert not comparable(google, amazon)
    assert comparable(amazon, grid_factor("azure", "eastus"))
    # The general column of this row carries another source's figure (396).
    assert grid_factor("gcp", "us-east5").carbon_gco2e_per_kwh == 323.05


def test_a_region_without_a_figure_takes_its_state_then_its_country_and_keeps_its_pue():
    arizona = grid_factor("azure", "westus3")
    assert (arizona.carbon_gco2e_per_kwh, arizona.pue_ratio, arizona.method) == (312.6, 1.18, EGRID)
    assert "Arizona" in arizona.place
    malaysia = grid_factor("azure", "malaysiawest")
    assert malaysia.method == GENERATION
    assert malaysia.pue_ratio == 1.18  # the fleet's


def test_regions_that_the_source_has_wrong_are_corrected():
    assert (
        grid_factor("azure", "northeurope").carbon_gco2e_per_kwh == grid_factor("aws", "eu-west-1").carbon_gco2e_per_kwh
    )
    assert grid_factor("azure", "westus").carbon_gco2e_per_kwh == grid_factor("aws", "us-west-1").carbon_gco2e_per_kwh
    assert grid_factor("azure", "westus2").carbon_gco2e_per_kwh == grid_factor("aws", "us-west-2").carbon_gco2e_per_kwh


def test_marketplace_regions_name_a_place():
    assert grid_factor("vast", "Oregon, US, NA").carbon_gco2e_per_kwh == 165.5
    assert grid_factor("vast", "Sichuan, CN, AS").carbon_gco2e_per_kwh == 156.4
    assert grid_factor("vast", "Germany, DE, EU").place == "Germany"
    assert grid_factor("vast", "US, NA").place == "United States"
    assert grid_factor("vast", "Sverdlovsk Oblast, RU, EU").place == "Russia"
    assert grid_factor("vast", "Georgia, US, NA").place == "Georgia, USA"
    assert grid_factor("vast", "US, NA").pue_ratio == 1.56


@pytest.mark.parametrize(
    ("provider", "region"), [("runpod", "any"), ("nobody", "nowhere"), ("vast", "Atlantis, ZZ, EU")]
)
def test_an_unknown_place_is_the_world_average_with_the_industrys_pue(provider, region):
    factor = grid_factor(provider, region)
    assert (factor.carbon_gco2e_per_kwh, factor.year, factor.method) == (WORLD_GCO2E_PER_KWH, 2019, WORLD)
    assert factor.pue_ratio == 1.56


def test_every_region_of_the_snapshot_but_any_has_a_place():
    lost = [place for place in PLACES if place[1] != "any" and grid_factor(*place).method == WORLD]
    assert lost == []


@pytest.mark.parametrize("place", PLACES, ids=lambda place: " ".join(place))
def test_factors_are_plausible_and_say_source_and_year(place):
    factor = grid_factor(*place)
    assert 0 < factor.carbon_gco2e_per_kwh < 1000
    assert 1.0 <= factor.pue_ratio <= 1.6
    assert factor.year is not None
    assert 2019 <= factor.year <= 2025
    assert factor.source
    assert "PUE" in factor.source


@pytest.mark.parametrize(
    ("spelling", "place"),
    [
        ("DEU", "Germany"), ("de", "Germany"), ("germany", "Germany"), ("US-CA", "California, USA"),
        ("USA-CA", "California, USA"), ("California", "California, USA"), ("Quebec", "Quebec, CAN"),
        # A country before a state of the same name.
        ("Georgia", "Georgia"), ("US-GA", "Georgia, USA"), ("CN-SC", "Sichuan, CHN"), ("world", "world average"),
    ],
)  # fmt: skip
def test_places_at_home_are_found_by_code_or_name_and_have_no_overhead(spelling, place):
    factor = place_factor(spelling)
    assert factor.place == place
    assert factor.pue_ratio == 1.0


def test_an_unknown_place_at_home_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="Germny") as caught:
        place_factor("Germny")
    assert "Germany" in caught.value.expected


def test_the_local_provider_has_no_overhead():
    assert grid_factor("local", "local").pue_ratio == 1.0


@pytest.mark.parametrize("name", ["grid_country.csv", "grid_subnational.csv"])
def test_grid_rows_are_plausible(name):
    for row in _rows(name):
        assert 3 < row.required_number("gco2e_per_kwh") < 1400, row.cells
        assert row.required("source")
        assert 2009 <= row.required_number("year") <= 2025


def test_region_rows_have_a_figure_or_a_place_to_take_it_from():
    for row in _rows("grid_cloud_region.csv"):
        has_figure = row.number("grid_gco2e_per_kwh") or row.number("gcp_official_grid_2024")
        assert has_figure or row.text("iso3"), row.cells
        assert row.required("source")
        assert 1.0 <= (row.number("pue") or 1.1) <= 1.6


def test_measured_nodes_draw_about_their_cards_power():
    for row in _rows("energy_measured.csv"):
        assert 0.8 <= row.required_number("per_gpu_all_in_over_tdp") <= 1.6
        assert row.required("source")
