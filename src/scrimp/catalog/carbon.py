"""Carbon of electricity and data-centre overhead (PUE) by provider and region.

Order of places: the cloud region itself, its state or province, its country, the world. Order of PUE: the region, the
provider's fleet, the industry (1.56, Uptime Institute 2024), and 1.0 for machines at home.

The figures come from sources that count differently, so `GridFactor.method` must be equal before two are compared:
consumption with life-cycle factors (Electricity Maps, AWS and Azure regions) gives 396 g/kWh for the grid of northern
Virginia, Google's operational figure for the same grid 323.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from scrimp.catalog.table import Row, read_rows, read_text
from scrimp.core.errors import unknown_name
from scrimp.core.market import GridFactor

CONSUMPTION = "location-based: consumption, life-cycle factors (Electricity Maps)"
OPERATIONAL = "location-based: operational, yearly (Google)"
GENERATION = "location-based: generation, life-cycle factors (Ember / Our World in Data)"
EGRID = "location-based: generation, output emission rate without life cycle (EPA eGRID)"
CHINA = "location-based: generation, CO2 only (MEE/NBS)"
NORDIC = "location-based: generation of the bidding zone times source factors (ENTSO-E, codecarbon)"
MIX = "location-based: generation mix times source factors, derived (codecarbon)"
WORLD = "world average of generation (IEA)"

WORLD_GCO2E_PER_KWH = 475.0
GOOGLE_SOURCE = "GoogleCloudPlatform/region-carbon-info 2024"
WORLD_SOURCE = "IEA 2019, as in codecarbon 3.3.2"
INDUSTRY = "colo/other"
HOME = "home/office"

_VAST_PLACE = re.compile(r"(?:(?P<part>.+), )?(?P<iso2>[A-Z]{2}), (?:NA|SA|EU|AS|AF|OC)")
_NO_REGION = {"", "any", "local"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pue:
    ratio: float
    source: str


def grid_factor(provider: str, region: str) -> GridFactor:
    """Carbon of a kWh and PUE where `provider` runs `region`; the world average where the place is not known.

    Regions are those of the price snapshot: a cloud's region name, `any`, or Vast's `Oregon, US, NA`.
    """
    return _grid_factor(provider, region)


def place_factor(place: str) -> GridFactor:
    """The factor for a machine at home or in an office: `DEU`, `DE`, `Germany`, `US-CA`, `California`, `SE3`, `world`.

    Raises:
        UnknownNameError: no country, state or zone is called so.
    """
    key = _key(place)
    if key == "world":
        found = _world()
    else:
        found = _subnational().get(key) or _countries().get(key)
    if found is None:
        known = [factor.place for factor in {**_subnational(), **_countries()}.values()]
        raise unknown_name("place", place, dict.fromkeys(known), list_command='use a country or state, or "world"')
    home = _pues()[HOME]
    return replace(found, pue_ratio=home.ratio, source=f"{found.source}; PUE: {home.source}")


def comparable(first: GridFactor, second: GridFactor) -> bool:
    """Whether the two were counted in the same way; otherwise the larger need not be the dirtier."""
    return first.method == second.method


@lru_cache(maxsize=1024)
def _grid_factor(provider: str, region: str) -> GridFactor:
    row = _regions().get((provider, region))
    pue = _pue(provider, row)
    found = _of_region(row) if row else _of_text(region)
    return replace(found or _world(), pue_ratio=pue.ratio, source=f"{(found or _world()).source}; PUE: {pue.source}")


def _of_region(row: Row) -> GridFactor | None:
    """A region's own figure, else that of its state, province or country."""
    name = f"{row.required('provider')} {row.required('region')}"
    place = f"{name} ({row.text('location')})" if row.text("location") else name
    official = row.number("gcp_official_grid_2024")
    # Google's own column, always: two of its rows carry another source's figure in the general one.
    if official is not None:
        return _factor(place, official, year=2024, method=OPERATIONAL, source=GOOGLE_SOURCE)
    carbon = row.number("grid_gco2e_per_kwh")
    if carbon is not None:
        year = _year(row, "grid_row_year")
        return _factor(place, carbon, year=year, method=CONSUMPTION, source=row.required("source"))
    country = row.text("iso3")
    if not country:
        return None
    found = _subnational().get(_key(f"{country}-{row.text('subregion')}")) or _countries().get(_key(country))
    return replace(found, place=f"{place}, by {found.place}") if found else None


def _of_text(region: str) -> GridFactor | None:
    """The place that a marketplace writes into its region: `Oregon, US, NA`, `Germany, DE, EU`, `US, NA`."""
    if region in _NO_REGION:
        return None
    match = _VAST_PLACE.fullmatch(region)
    if match is None:
        return None
    country = _countries().get(_key(match["iso2"]))
    if country is None:
        return None
    return _subnational().get(_key(f"{match['iso2']}-{match['part'] or ''}")) or country


def _pue(provider: str, row: Row | None) -> _Pue:
    own = row.number("pue") if row else None
    if row and own is not None:
        return _Pue(ratio=own, source=f"{provider} for the region, {row.text('pue_year')}")
    if provider == "local":
        return _pues()[HOME]
    return _pues().get(provider) or _pues()[INDUSTRY]


def _world() -> GridFactor:
    return _factor("world average", WORLD_GCO2E_PER_KWH, year=2019, method=WORLD, source=WORLD_SOURCE)


def _factor(place: str, carbon: float, *, year: int | None, method: str, source: str) -> GridFactor:
    return GridFactor(place=place, carbon_gco2e_per_kwh=carbon, pue_ratio=1.0, year=year, method=method, source=source)


@lru_cache(maxsize=1)
def _regions() -> Mapping[tuple[str, str], Row]:
    rows = _table("grid_cloud_region.csv", "provider", "region", "grid_gco2e_per_kwh", "pue", "source")
    return {(row.required("provider"), row.required("region")): row for row in rows}


@lru_cache(maxsize=1)
def _pues() -> Mapping[str, _Pue]:
    """PUE by provider; of two figures for one the first row counts, which is the newer."""
    found: dict[str, _Pue] = {}
    for row in _table("pue.csv", "provider", "pue", "year"):
        source = f"{row.required('provider')} {row.text('scope')} {row.text('year')}".strip()
        found.setdefault(row.required("provider"), _Pue(ratio=row.required_number("pue"), source=source))
    return found


@lru_cache(maxsize=1)
def _countries() -> Mapping[str, GridFactor]:
    """By ISO 3166 codes of three and two letters and by name."""
    found: dict[str, GridFactor] = {}
    for row in _table("grid_country.csv", "iso3", "iso2", "country", "year", "gco2e_per_kwh", "source"):
        factor = _factor(
            row.required("country"),
            row.required_number("gco2e_per_kwh"),
            year=_year(row, "year"),
            method=GENERATION,
            source=row.required("source"),
        )
        for name in ("iso3", "iso2", "country"):
            found[_key(row.required(name))] = factor
    return found


@lru_cache(maxsize=1)
def _subnational() -> Mapping[str, GridFactor]:
    """By `<country>-<code>` and `<country>-<name>` (two or three letters), and by code or name where that is unique."""
    iso2 = {row.required("iso3"): row.required("iso2") for row in _table("grid_country.csv", "iso3", "iso2")}
    found: dict[str, GridFactor] = {}
    short: dict[str, list[GridFactor]] = {}
    for row in _table("grid_subnational.csv", "iso3", "region", "code", "year", "gco2e_per_kwh", "source"):
        country, name, code = row.required("iso3"), row.required("region"), row.text("code")
        factor = _factor(
            f"{name.title() if name.islower() else name}, {country}",
            row.required_number("gco2e_per_kwh"),
            year=_year(row, "year"),
            method=_METHODS[_first_known(row)],
            source=row.required("source"),
        )
        for part in filter(None, (name, code, code.partition("-")[2])):
            found[_key(f"{country}-{part}")] = factor
            found[_key(f"{iso2[country]}-{part}")] = factor
        for part in filter(None, (name, code if len(code) > 2 else "")):
            short.setdefault(_key(part), []).append(factor)
    countries = _countries()
    unique = {key: factors[0] for key, factors in short.items() if len(factors) == 1 and key not in countries}
    return {**unique, **found}


_METHODS: Mapping[str, str] = {"eGRID": EGRID, "MEE/NBS": CHINA, "ENTSO-E": NORDIC, "derived here": MIX}


def _first_known(row: Row) -> str:
    source = row.required("source")
    mark = next((mark for mark in _METHODS if mark in source), None)
    if mark is None:
        raise row.refuse(
            f'source "{source}" has no known method', expected=f"one of {', '.join(_METHODS)} in the source"
        )
    return mark


def _table(name: str, *columns: str) -> list[Row]:
    return list(read_rows(read_text(name), where=name, columns=columns))


def _year(row: Row, column: str) -> int | None:
    year = row.number(column)
    return None if year is None else int(year)


def _key(text: str) -> str:
    return re.sub(r"[^\w]", "", text.lower())
