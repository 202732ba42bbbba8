"""The tables behind `carbon.py`: grid figures by zone, country and part of a country, and PUE by provider."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from scrimp.catalog.table import Row, read_rows, read_text
from scrimp.core.market import GridFactor, GridMethod

INDUSTRY = "colo/other"
HOME = "home/office"
# Its operational figures stand in a column of their own; what the general one holds for its regions is a mixture.
_GOOGLE = "gcp"
_METHODS: Mapping[str, GridMethod] = {
    "eGRID": GridMethod.STATE_GENERATION,
    "MEE/NBS": GridMethod.GENERATION_CO2,
    "ENTSO-E": GridMethod.ZONE_GENERATION,
    "derived here": GridMethod.MIX_DERIVED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pue:
    """A building's overhead: energy of all over energy of the machines."""

    ratio: float
    source: str


@lru_cache(maxsize=1)
def regions() -> Mapping[tuple[str, str], Row]:
    """Rows of cloud regions by (provider, region)."""
    rows = _table("grid_cloud_region.csv", "provider", "region", "em_zone", "grid_gco2e_per_kwh", "pue", "source")
    return {(row.required("provider"), row.required("region")): row for row in rows}


@lru_cache(maxsize=1)
def zones() -> Mapping[str, GridFactor]:
    """Figures of Electricity Maps zones, read off the AWS and Azure regions in them; the newest year of a zone."""
    found: dict[str, GridFactor] = {}
    for row in regions().values():
        zone, carbon = row.text("em_zone"), row.number("grid_gco2e_per_kwh")
        if row.required("provider") == _GOOGLE or not zone or carbon is None:
            continue
        factor = _factor(
            f"grid zone {zone}",
            carbon,
            year=_year(row, "grid_row_year"),
            method=GridMethod.ZONE_CONSUMPTION,
            source=row.required("source"),
        )
        known = found.get(zone)
        if known is None or (known.year or 0) < (factor.year or 0):
            found[zone] = factor
    return found


@lru_cache(maxsize=1)
def countries() -> Mapping[str, GridFactor]:
    """By ISO 3166 codes of three and two letters and by name."""
    found: dict[str, GridFactor] = {}
    for row in _country_rows():
        factor = _factor(
            row.required("country"),
            row.required_number("gco2e_per_kwh"),
            year=_year(row, "year"),
            method=GridMethod.COUNTRY_GENERATION,
            source=row.required("source"),
            is_country=True,
        )
        for name in ("iso3", "iso2", "country"):
            found[grid_key(row.required(name))] = factor
    return found


@lru_cache(maxsize=1)
def world() -> GridFactor:
    """The mean of all countries, weighted by what they generate: counted as they are, so comparable with them."""
    rows = _country_rows()
    generated = [row.required_number("generation_twh") for row in rows]
    carbon = sum(row.required_number("gco2e_per_kwh") * twh for row, twh in zip(rows, generated, strict=True))
    # Nine tenths of the generation are of 2023, the rest of 2022.
    return GridFactor(
        place="world average",
        carbon_gco2e_per_kwh=round(carbon / sum(generated), 1),
        pue_ratio=1.0,
        year=2023,
        method=GridMethod.COUNTRY_GENERATION,
        source=f"{len(rows)} countries of grid_country.csv, weighted by generation",
        reach="world",
    )


@lru_cache(maxsize=1)
def subnational() -> Mapping[str, GridFactor]:
    """By `<country>-<code>` and `<country>-<name>` (two or three letters), and by code or name where that is unique."""
    iso2 = {row.required("iso3"): row.required("iso2") for row in _country_rows()}
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
            found[grid_key(f"{country}-{part}")] = factor
            found[grid_key(f"{iso2[country]}-{part}")] = factor
        for part in filter(None, (name, code if len(code) > 2 else "")):
            short.setdefault(grid_key(part), []).append(factor)
    known = countries()
    unique = {key: factors[0] for key, factors in short.items() if len(factors) == 1 and key not in known}
    return {**unique, **found}


@lru_cache(maxsize=1)
def pues() -> Mapping[str, Pue]:
    """PUE by provider; of two figures for one the first row counts, which is the newer."""
    found: dict[str, Pue] = {}
    for row in _table("pue.csv", "provider", "pue", "year"):
        source = f"{row.required('provider')} {row.text('scope')} {row.text('year')}".strip()
        found.setdefault(row.required("provider"), Pue(ratio=row.required_number("pue"), source=source))
    return found


def grid_key(text: str) -> str:
    """How a place's name is looked up: its letters and digits, in lower case."""
    return re.sub(r"[^\w]", "", text.lower())


def _first_known(row: Row) -> str:
    source = row.required("source")
    mark = next((mark for mark in _METHODS if mark in source), None)
    if mark is None:
        raise row.refuse(
            f'source "{source}" has no known method', expected=f"one of {', '.join(_METHODS)} in the source"
        )
    return mark


def _factor(
    place: str, carbon: float, *, year: int | None, method: GridMethod, source: str, is_country: bool = False
) -> GridFactor:
    return GridFactor(
        place=place,
        carbon_gco2e_per_kwh=carbon,
        pue_ratio=1.0,
        year=year,
        method=method,
        source=source,
        reach="country" if is_country else "region",
    )


@lru_cache(maxsize=1)
def _country_rows() -> list[Row]:
    return _table("grid_country.csv", "iso3", "iso2", "country", "year", "gco2e_per_kwh", "generation_twh", "source")


def _table(name: str, *columns: str) -> list[Row]:
    return list(read_rows(read_text(name), where=name, columns=columns))


def _year(row: Row, column: str) -> int | None:
    year = row.number(column)
    return None if year is None else int(year)
