"""The price file: how a row finds its card, what becomes of blanks and flags, and every row of the shipped one."""

import csv
from collections import Counter
from datetime import date
from decimal import Decimal

import pytest

from scrimp.catalog.devices import device_table, unsuited_gpus
from scrimp.catalog.flags import FORM_ASSUMED, PRICE_FLAGS, split_flags
from scrimp.catalog.offers import offers, unmapped
from scrimp.catalog.snapshot import HEADER, Snapshot, parse_snapshot
from scrimp.catalog.table import read_text
from scrimp.catalog.terms import provider_terms
from scrimp.core.errors import ScrimpError
from scrimp.core.units import GIB

ROWS = list(csv.DictReader(read_text("gpu_prices.csv").splitlines()))


def _row(**changes: str) -> str:
    cells = {
        "provider": "aws", "tier": "hyperscaler", "region": "us-east-1", "instance_type": "x1", "gpu": "H100",
        "gpu_form": "SXM", "gpu_count": "8", "gpu_mem_gib": "80", "vcpus": "96", "mem_gib": "1152",
        "price_hr": "40.5", "spot_hr": "12.25", "price_src": "list", "price_date": "2026-08-22", "spot_src": "api",
        "spot_date": "2026-05-20", "flags": "", **changes,
    }  # fmt: skip
    return ",".join(cells[column] for column in HEADER.split(","))


def _parse(*rows: str) -> Snapshot:
    return parse_snapshot("\n".join([HEADER, *rows]), where="p.csv", table=device_table(), reasons=unsuited_gpus())


def _card(**changes: str) -> tuple[str, tuple[str, ...]]:
    offer = _parse(_row(**changes)).offers[0]
    return offer.gpu, offer.flags


def test_a_row_gives_an_offer_for_each_market():
    on_demand, spot = _parse(_row()).offers
    assert (on_demand.market, on_demand.price_usd_per_hour, on_demand.price_source) == (
        "on_demand",
        Decimal("40.5"),
        "list",
    )
    assert (spot.market, spot.price_usd_per_hour, spot.price_date) == ("spot", Decimal("12.25"), date(2026, 5, 20))
    assert on_demand.gpu == "H100-SXM5-80GB"
    assert on_demand.gpu_memory_bytes == device_table().devices["H100-SXM5-80GB"].memory_bytes
    assert on_demand.host_memory_bytes == 1152 * GIB
    assert on_demand.usd_per_gpu_hour == Decimal("40.5") / 8


def test_a_blank_on_demand_price_is_unknown_and_a_blank_spot_price_no_offer():
    (unknown, spot) = _parse(_row(price_hr="")).offers
    assert unknown.price_usd_per_hour is None
    assert spot.price_usd_per_hour == Decimal("12.25")
    (only,) = _parse(_row(spot_hr="")).offers
    assert only.market == "on_demand"


@pytest.mark.parametrize(
    ("changes", "card"),
    [
        ({"gpu": "A100", "gpu_form": "PCIE", "gpu_mem_gib": "40"}, "A100-PCIe-40GB"),
        ({"gpu": "A100", "gpu_form": "SXM", "gpu_mem_gib": "80"}, "A100-SXM4-80GB"),
        ({"gpu": "H100", "gpu_form": "NVL", "gpu_mem_gib": "94"}, "H100-NVL-94GB"),
        # Marketed as 192 GB, sold as 180: one card.
        ({"gpu": "B200", "gpu_form": "SXM", "gpu_mem_gib": "192"}, "B200-SXM-180GB"),
        ({"gpu": "RTX6000", "gpu_form": "", "gpu_mem_gib": "24"}, "QuadroRTX6000"),
        ({"gpu": "RTX6000ADA", "gpu_form": "", "gpu_mem_gib": "48"}, "RTX6000Ada"),
        ({"gpu": "T4G", "gpu_form": "", "gpu_mem_gib": "16"}, "T4"),
        ({"gpu": "RTXPRO6000", "gpu_form": "MAXQ", "gpu_mem_gib": "96"}, "RTXPRO6000-MaxQ"),
        ({"gpu": "V100", "gpu_form": "SXM", "gpu_mem_gib": "32"}, "V100-SXM2-32GB"),
    ],
)
def test_a_row_that_says_its_form_finds_that_card(changes, card):
    assert _card(**changes) == (card, ())


def test_without_a_form_the_usual_card_is_assumed_and_the_offer_says_so():
    assert _card(gpu_form="") == ("H100-SXM5-80GB", (FORM_ASSUMED,))


def test_a_provider_with_a_name_of_its_own_is_believed():
    assert _card(provider="fluidstack", tier="specialised", gpu_form="") == ("H100-PCIe-80GB", ())


def test_an_unmarked_row_beside_a_marked_sxm_row_is_the_pcie_card():
    marked, unmarked = _parse(_row(spot_hr=""), _row(spot_hr="", gpu_form="")).offers
    assert marked.gpu == "H100-SXM5-80GB"
    assert (unmarked.gpu, unmarked.flags) == ("H100-PCIe-80GB", (FORM_ASSUMED,))


@pytest.mark.parametrize(
    "changes",
    [
        {"gpu": "X999"},
        {"gpu": "H100", "gpu_mem_gib": "64"},
        # The catalogue has V100-SXM2-32GB only, and a row that says PCIE is not that card.
        {"gpu": "V100", "gpu_form": "PCIE", "gpu_mem_gib": "32"},
    ],
)
def test_a_card_that_the_catalogue_lacks_is_reported_not_guessed(changes):
    snapshot = _parse(_row(**changes), _row(**changes))
    assert snapshot.offers == ()
    (rows,) = snapshot.unmapped
    assert (rows.gpu, rows.rows, rows.providers) == (changes["gpu"], 2, ("aws",))
    assert "gpus.csv" in rows.reason


def test_flags_go_to_the_market_they_speak_of():
    on_demand, spot = split_flags("od_derived;spot_derived;spot_floor")
    assert on_demand == ("od_derived",)
    assert spot == ("spot_derived", "spot_floor")
    assert split_flags("stale") == (("stale",), ("stale",))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"price_hr": "cheap"}, "InvalidOperation"),
        ({"price_hr": "0"}, "not above zero"),
        ({"spot_hr": "-1"}, "not above zero"),
        ({"price_date": "soon"}, "isoformat"),
        ({"tier": "hyper"}, 'tier "hyper"'),
        ({"flags": "odd"}, "odd"),
        ({"gpu_count": "0"}, "gpu_count"),
    ],
)
def test_a_row_that_cannot_be_read_is_refused_with_its_line(changes, words):
    with pytest.raises(ScrimpError, match=r"p\.csv, line 3") as caught:
        _parse(_row(), _row(**changes))
    assert words in caught.value.what


def test_a_short_row_and_a_strange_header_are_refused():
    with pytest.raises(ScrimpError, match=r"line 2: ValueError: 2 cells under 17 headings"):
        _parse("aws,hyperscaler")
    with pytest.raises(ScrimpError, match="line 1"):
        parse_snapshot("a,b\n", where="p.csv", table=device_table(), reasons={})


# The shipped file.


def test_every_row_maps_or_is_listed_as_unmapped_with_a_reason():
    assert {rows.gpu for rows in unmapped()} == {"M60", "MI25", "V520"}
    assert all(rows.reason != "" and "gpus.csv" not in rows.reason for rows in unmapped())
    left_out = sum(rows.rows for rows in unmapped())
    spot_rows = sum(1 for row in ROWS if row["spot_hr"] and row["gpu"] not in {"M60", "MI25", "V520"})
    assert len(offers()) == len(ROWS) - left_out + spot_rows


def test_every_offer_is_of_a_card_whose_memory_agrees_with_the_row():
    nominal = device_table().nominal_gb
    wanted = Counter((r["gpu_mem_gib"], r["gpu"]) for r in ROWS)
    assert wanted
    for offer in offers():
        assert offer.gpu_memory_bytes == device_table().devices[offer.gpu].memory_bytes
        assert offer.gpu in nominal


def test_rows_are_plausible():
    bad = []
    for line, row in enumerate(ROWS, start=2):
        count, memory = float(row["gpu_count"]), float(row["gpu_mem_gib"])
        price, spot = row["price_hr"], row["spot_hr"]
        total_gib = count * memory
        checks = {
            "a price": bool(price or spot),
            "spot below on-demand": not (price and spot) or Decimal(spot) < Decimal(price),
            "count x memory": 1 <= total_gib <= 16 * 288,
            "count": count in (1, 2, 4, 5, 8, 16) or 0 < count < 1,
            "slices say so": (count < 1) == ("fractional_gpu" in row["flags"]),
            "price per GPU": all(Decimal("0.03") <= Decimal(p) / Decimal(str(count)) <= 30 for p in (price, spot) if p),
            "source": all(row[f"{kind}_src"] for kind, value in (("price", price), ("spot", spot)) if value),
            "dates": all(
                not day or date.fromisoformat(day) <= date(2026, 12, 1) for day in (row["price_date"], row["spot_date"])
            ),
            "provider": row["provider"] in provider_terms(),
            "flags": all(flag in PRICE_FLAGS for flag in row["flags"].split(";") if flag),
            "host": not row["mem_gib"] or 1 <= float(row["mem_gib"]) <= 8192,
        }
        bad += [f"line {line}: {name}" for name, held in checks.items() if not held]
    assert bad == []


def test_no_machine_is_listed_twice_at_one_place():
    # The stale list of 2025 gives two prices for some machines, which differ in the CPU that it does not name.
    fresh = [o for o in offers() if "stale" not in o.flags]
    keys = Counter((o.provider, o.region, o.instance_type, o.gpu, o.gpu_count, o.market) for o in fresh)
    assert [key for key, times in keys.items() if times > 1] == []


def test_known_prices_are_what_the_sources_said():
    found = {(o.provider, o.region, o.instance_type, o.market): o for o in offers()}
    p4d = found["aws", "us-east-1", "p4d.24xlarge", "on_demand"]
    assert (p4d.price_usd_per_hour, p4d.price_date) == (Decimal("21.957642"), date(2026, 7, 20))
    assert p4d.gpu == "A100-SXM4-40GB"
    lambda_a6000 = [o for o in offers() if o.provider == "lambda" and o.gpu == "RTXA6000" and o.gpu_count == 1]
    assert [o.price_usd_per_hour for o in lambda_a6000] == [Decimal("1.09")]
