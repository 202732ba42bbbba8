"""Carbon of electricity and data-centre overhead (PUE) by provider and region.

One place may have several figures, for sources count differently: 396 g/kWh for the grid of northern Virginia by
consumption with life-cycle factors (Electricity Maps), 323 in Google's operational count, 370 for the whole country's
generation. `grid_factors` gives all of them, each with its method and year, so that offers can be compared in one way
of counting; the first is the nearest to the machine. Order: the grid zone, the provider's own figure, the state or
province, the country, the world. Order of PUE: the region, the provider's fleet, the industry (1.56, Uptime Institute
2024), and 1.0 for machines at home.
"""

import re
from dataclasses import replace
from functools import lru_cache

from scrimp.catalog.grid_tables import (
    HOME,
    INDUSTRY,
    Pue,
    countries,
    grid_key,
    pues,
    regions,
    subnational,
    world,
    zones,
)
from scrimp.catalog.table import Row
from scrimp.core.errors import unknown_name
from scrimp.core.market import GridFactor, GridMethod, PueReach

GOOGLE_SOURCE = "GoogleCloudPlatform/region-carbon-info 2024"

_VAST_PLACE = re.compile(r"(?:(?P<part>.+), )?(?P<iso2>[A-Z]{2}), (?:NA|SA|EU|AS|AF|OC)")


def grid_factor(provider: str, region: str) -> GridFactor:
    """The figure nearest to where `provider` runs `region`; see `grid_factors`."""
    return grid_factors(provider, region)[0]


@lru_cache(maxsize=1024)
def grid_factors(provider: str, region: str) -> tuple[GridFactor, ...]:
    """Carbon of a kWh and PUE where `provider` runs `region`: one figure for each way of counting, the nearest first.

    Regions are those of the price snapshot: a cloud's region name, `any`, or Vast's `Oregon, US, NA`. The world average
    stands alone where the place is not known.
    """
    row = regions().get((provider, region))
    pue, reach = _pue(provider, row)
    found = _of_region(row) if row else _of_text(region)
    return tuple(
        replace(factor, pue_ratio=pue.ratio, pue_reach=reach, source=f"{factor.source}; PUE: {pue.source}")
        for factor in found or (world(),)
    )


def place_factor(place: str) -> GridFactor:
    """The factor for a machine at home or in an office: `DEU`, `DE`, `Germany`, `US-CA`, `California`, `SE3`, `world`.

    Raises:
        UnknownNameError: no country, state or zone is called so.
    """
    key = grid_key(place)
    found = world() if key == "world" else subnational().get(key) or countries().get(key)
    if found is None:
        known = [factor.place for factor in {**subnational(), **countries()}.values()]
        raise unknown_name("place", place, dict.fromkeys(known), list_command='use a country or state, or "world"')
    home = pues()[HOME]
    return replace(found, pue_ratio=home.ratio, pue_reach="none", source=f"{found.source}; PUE: {home.source}")


def _of_region(row: Row) -> tuple[GridFactor, ...]:
    """A cloud region: its grid zone, the provider's own figure, its state or province, its country."""
    name = f"{row.required('provider')} {row.required('region')}"
    place = f"{name} ({row.text('location')})" if row.text("location") else name
    zone = row.text("em_zone")
    official = row.number("gcp_official_grid_2024")
    own = None
    if official is not None:
        method = GridMethod.PROVIDER_OPERATIONAL
        own = GridFactor(
            place=place, carbon_gco2e_per_kwh=official, pue_ratio=1.0, year=2024, method=method, source=GOOGLE_SOURCE
        )
    country = row.text("iso3") or zone.partition("-")[0]
    state = subnational().get(grid_key(f"{row.text('iso3')}-{row.text('subregion')}")) if row.text("iso3") else None
    return _told_of(place, zones().get(zone), own, state, countries().get(grid_key(country)))


def _of_text(region: str) -> tuple[GridFactor, ...]:
    """The place that a marketplace writes into its region: `Oregon, US, NA`, `Germany, DE, EU`, `US, NA`."""
    match = _VAST_PLACE.fullmatch(region)
    country = countries().get(grid_key(match["iso2"])) if match else None
    if match is None or country is None:
        return ()
    state = subnational().get(grid_key(f"{match['iso2']}-{match['part'] or ''}"))
    # A zone whose name is a country's code is the whole country.
    zone = zones().get(match["iso2"])
    whole = replace(zone, place=country.place, reach="country") if zone else None
    return tuple(factor for factor in (whole, state, country) if factor)


def _told_of(place: str, *found: GridFactor | None) -> tuple[GridFactor, ...]:
    """The figures that there are, each saying which place it was asked for and which it is of."""
    return tuple(
        factor if factor.place == place else replace(factor, place=f"{place}, by {factor.place}")
        for factor in found
        if factor
    )


def _pue(provider: str, row: Row | None) -> tuple[Pue, PueReach]:
    own = row.number("pue") if row else None
    if row and own is not None:
        return Pue(ratio=own, source=f"{provider} for the region, {row.text('pue_year')}"), "region"
    if provider == "local":
        return pues()[HOME], "none"
    fleet = pues().get(provider)
    return (fleet, "fleet") if fleet else (pues()[INDUSTRY], "industry")
