"""Grid carbon and PUE: the order of places, the sources' different methods, and data integrity."""

import pytest

from scrimp.catalog.carbon import grid_factor, grid_factors, place_factor
from scrimp.catalog.grid_tables import world, zones
from scrimp.catalog.offers import offers
from scrimp.catalog.table import read_rows, read_text
from scrimp.core.errors import UnknownNameError
from scrimp.core.market import GridMethod

PLACES = sorted({(offer.provider, offer.region) for offer in offers()})


def _rows(name: str):
    return list(read_rows(read_text(name), where=name))


def _figures(provider: str, region: str):
    return {factor.method: factor.carbon_gco2e_per_kwh for factor in grid_factors(provider, region)}


def test_a_cloud_region_has_the_figure_of_its_grid_zone_and_its_own_pue():
    factor = grid_factor("aws", "us-east-1")
    assert (factor.carbon_gco2e_per_kwh, factor.pue_ratio, factor.year) == (396.25, 1.15, 2024)
    assert (factor.method, factor.reach, factor.pue_reach) == (GridMethod.ZONE_CONSUMPTION, "region", "region")
    assert "us-east-1" in factor.place
    assert "US-MIDA-PJM" in factor.place


def test_one_grid_is_the_same_grid_at_every_provider_and_googles_own_figure_stands_beside_it():
    amazon, google = _figures("aws", "us-east-1"), _figures("gcp", "us-east4")
    assert amazon[GridMethod.ZONE_CONSUMPTION] == google[GridMethod.ZONE_CONSUMPTION] == 396.25
    assert google[GridMethod.PROVIDER_OPERATIONAL] == 323.05
    assert GridMethod.PROVIDER_OPERATIONAL not in amazon
    # The general column of this row carries another source's figure (396).
    assert _figures("gcp", "us-east5")[GridMethod.PROVIDER_OPERATIONAL] == 323.05


def test_no_figure_of_googles_own_count_passes_for_one_of_a_grid_zone():
    own = {row.number("gcp_official_grid_2024") for row in _rows("grid_cloud_region.csv")} - {None}
    assert own.isdisjoint({factor.carbon_gco2e_per_kwh for factor in zones().values()})


def test_a_region_without_a_zone_figure_takes_its_state_then_its_country_and_keeps_its_pue():
    arizona = grid_factor("azure", "westus3")
    assert (arizona.carbon_gco2e_per_kwh, arizona.pue_ratio) == (312.6, 1.18)
    assert arizona.method == GridMethod.STATE_GENERATION
    assert "Arizona" in arizona.place
    malaysia = grid_factor("azure", "malaysiawest")
    assert (malaysia.method, malaysia.reach) == (GridMethod.COUNTRY_GENERATION, "country")
    assert (malaysia.pue_ratio, malaysia.pue_reach) == (1.18, "fleet")


def test_regions_that_the_source_has_wrong_are_corrected():
    for azure, amazon in (("northeurope", "eu-west-1"), ("westus", "us-west-1"), ("westus2", "us-west-2")):
        assert _figures("azure", azure) == _figures("aws", amazon)
    # The source lists several zones for these.
    assert "grid zone SE" in grid_factor("aws", "eu-north-1").place
    assert _figures("gcp", "europe-west1")[GridMethod.COUNTRY_GENERATION] == 138.107


def test_marketplace_regions_name_a_place():
    assert grid_factor("vast", "Oregon, US, NA").carbon_gco2e_per_kwh == 165.5
    assert grid_factor("vast", "Sichuan, CN, AS").carbon_gco2e_per_kwh == 156.4
    assert grid_factor("vast", "Germany, DE, EU").place == "Germany"
    assert grid_factor("vast", "US, NA").place == "United States"
    assert grid_factor("vast", "Sverdlovsk Oblast, RU, EU").place == "Russia"
    assert grid_factor("vast", "Georgia, US, NA").place == "Georgia, USA"
    assert (grid_factor("vast", "US, NA").pue_ratio, grid_factor("vast", "US, NA").pue_reach) == (1.56, "industry")


def test_a_country_that_is_one_grid_zone_has_the_zones_figure_too():
    assert _figures("vast", "Germany, DE, EU") == {
        GridMethod.ZONE_CONSUMPTION: _figures("aws", "eu-central-1")[GridMethod.ZONE_CONSUMPTION],
        GridMethod.COUNTRY_GENERATION: 380.95,
    }


@pytest.mark.parametrize(
    ("provider", "region"), [("runpod", "any"), ("nobody", "nowhere"), ("vast", "Atlantis, ZZ, EU")]
)
def test_an_unknown_place_is_the_world_average_with_the_industrys_pue(provider, region):
    (factor,) = grid_factors(provider, region)
    assert (factor.carbon_gco2e_per_kwh, factor.reach) == (world().carbon_gco2e_per_kwh, "world")
    assert factor.pue_ratio == 1.56


def test_the_world_is_the_mean_of_its_countries_by_what_they_generate():
    # Our World in Data gives 481 g/kWh for 2023.
    assert world().carbon_gco2e_per_kwh == pytest.approx(481, abs=2)
    assert world().method == GridMethod.COUNTRY_GENERATION


def test_every_region_of_the_snapshot_but_any_has_a_place():
    lost = [place for place in PLACES if place[1] != "any" and grid_factor(*place).reach == "world"]
    assert lost == []


def test_every_known_place_can_be_compared_in_one_way_of_counting():
    known = [place for place in PLACES if grid_factor(*place).reach != "world"]
    assert [place for place in known if GridMethod.COUNTRY_GENERATION not in _figures(*place)] == []


@pytest.mark.parametrize("place", PLACES, ids=lambda place: " ".join(place))
def test_factors_are_plausible_and_say_method_source_and_year(place):
    factors = grid_factors(*place)
    assert len({factor.method for factor in factors}) == len(factors)
    for factor in factors:
        assert 0 < factor.carbon_gco2e_per_kwh < 1000
        assert 1.0 <= factor.pue_ratio <= 1.6
        assert factor.method.words
        assert factor.year is not None
        assert 2021 <= factor.year <= 2025
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
