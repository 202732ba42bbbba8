"""`scrimp offers` as people and machines see it."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import get_args

import pytest
from click.testing import CliRunner, Result

from scrimp.catalog.offers import SortKey
from scrimp.cli.offers import SORTS, command, lines_of, parse_age_s, parse_vram
from scrimp.cli.output import Column, fitted_table
from scrimp.core.errors import SpecError, UnknownNameError
from scrimp.core.units import DAY_S, GB, GIB, HOUR_S

WIDTHS = (60, 80, 100, 160)


def _run(*arguments: str, width: int = 80) -> Result:
    return CliRunner().invoke(
        command, list(arguments), env={"COLUMNS": str(width), "NO_COLOR": "1"}, catch_exceptions=False
    )


def _document(*arguments: str):
    result = _run(*arguments, "--json")
    return json.loads(result.stdout)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("arguments", [(), ("--gpu", "a100"), ("--provider", "vast"), ("--spot", "--count", "8")])
def test_the_table_keeps_one_line_a_row_at_every_width(arguments, width):
    lines = _run(*arguments, "--limit", "9", width=width).stdout.splitlines()
    assert all(len(line) <= width for line in lines)
    table = lines[: lines.index("")]
    assert len(table) == 10
    assert table[0].split()[0] == "$/h"
    assert all(line.split()[0].replace(".", "").isdigit() for line in table[1:])


def test_a_hidden_column_is_named_and_comes_back_with_room():
    narrow, wide = _run("--gpu", "h100", width=80).stdout, _run("--gpu", "h100", width=200).stdout
    assert "not shown at this width:" in narrow
    assert "instance" in wide.splitlines()[0]
    assert "not shown" not in wide


def test_age_flags_total_and_attribution_are_shown():
    out = _run("--provider", "fluidstack", "--gpu", "a100", width=160).stdout
    assert "stale: list price of 2025-02-24" in out
    assert "offers match, prices of 2025-02-24 to 2025-02-24" in out
    assert "years" in out
    assert "GPU rental price data by gpurentalprices.com" in out


def test_the_attribution_stands_even_below_an_empty_result():
    out = _run("--gpu", "h100", "--max-price", "0.01").stdout
    assert "GPU rental price data by gpurentalprices.com" in out
    assert "none of" in out
    assert "without --max-price:" in out


def test_json_is_one_document_with_ages_prices_per_gpu_and_the_total():
    document = _document("--gpu", "a100", "--count", "8", "--limit", "2")
    assert len(document["offers"]) == 2
    assert document["found"] > 2
    today = datetime.now(UTC).date()
    for offer in document["offers"]:
        assert offer["gpu"].startswith("A100-")
        assert float(offer["usd_per_gpu_hour"]) == pytest.approx(float(offer["price_usd_per_hour"]) / 8)
        if offer["price_date"]:
            age = (today - datetime.fromisoformat(offer["price_date"]).date()).days
            assert offer["price_age_days"] in (age, age + 1, age - 1)
    assert "CC BY 4.0" in document["attribution"]
    assert {rows["gpu"] for rows in document["unmapped"]} == {"M60", "MI25", "V520"}


def test_several_values_may_be_repeated_or_joined_by_commas():
    joined = _document("--provider", "aws,gcp", "--gpu", "l4", "--limit", "0")
    repeated = _document("--provider", "aws", "--provider", "gcp", "--gpu", "l4", "--limit", "0")
    assert joined["offers"] == repeated["offers"]
    assert {offer["provider"] for offer in joined["offers"]} == {"aws", "gcp"}


def test_filters_reach_the_query():
    found = _document(
        "--tier", "hyperscaler", "--region", "us-*", "--on-demand", "--min-vram", "80", "--max-gpu-price", "3",
        "--max-gpus", "4", "--exclude-flag", "od_derived", "--sort", "memory", "--limit", "0",
    )["offers"]  # fmt: skip
    assert found
    for offer in found:
        assert offer["tier"] == "hyperscaler"
        assert offer["region"].startswith("us-")
        assert offer["market"] == "on_demand"
        assert offer["gpu_count"] * offer["gpu_memory_bytes"] >= 80 * GB
        assert float(offer["usd_per_gpu_hour"]) <= 3
        assert offer["gpu_count"] <= 4
        assert "od_derived" not in offer["flags"]
    totals = [offer["gpu_count"] * offer["gpu_memory_bytes"] for offer in found]
    assert totals == sorted(totals, reverse=True)


def test_an_age_limit_counts_from_today():
    assert _document("--max-age", "0.5")["found"] == 0
    assert _document("--max-age", "36500d")["found"] > 3000


def test_equal_offers_of_several_regions_are_one_line():
    from scrimp.catalog.offers import OfferQuery, offers, select

    found = select(offers(), OfferQuery(providers=("azure",), gpus=("t4",)))
    lines = lines_of(found)
    assert sum(1 + line.other_regions for line in lines) == len(found)
    assert len(lines) < len(found)


def test_an_ambiguous_name_is_said_on_stderr():
    result = _run("--gpu", "rtx 6000")
    assert "QuadroRTX6000" in result.stderr
    assert "RTX6000Ada" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (("--gpu", "A10O"), UnknownNameError, "A10"),
        (("--provider", "runpot"), UnknownNameError, "runpod"),
        (("--max-price", "cheap"), SpecError, "--max-price"),
        (("--min-vram", "lots"), SpecError, "80 or 75 GiB"),
        (("--max-age", "old"), SpecError, "--max-age"),
    ],
)
def test_bad_input_is_refused_with_the_option_or_the_nearest_name(arguments, kind, words):
    with pytest.raises(kind) as caught:
        _run(*arguments)
    assert words in str(caught.value)


def test_sizes_and_ages():
    assert parse_vram("80") == 80 * GB
    assert parse_vram("75 GiB") == 75 * GIB
    assert parse_age_s("90") == 90 * DAY_S
    assert parse_age_s("12h") == 12 * HOUR_S


def test_the_sort_keys_are_those_of_the_catalogue():
    assert get_args(SortKey) == SORTS


def test_columns_are_cut_before_they_go_and_go_in_their_order():
    def columns():
        return [
            Column(heading="a", cells=["12345"]),
            Column(heading="b", cells=["long words here"], shrinks_to=6, gives_way=1),
            Column(heading="c", cells=["xxxxx"], gives_way=2),
        ]

    assert fitted_table(columns(), width=40)[1] == ()
    assert fitted_table(columns(), width=20)[1] == ()
    assert fitted_table(columns(), width=15)[1] == ("c",)
    assert fitted_table(columns(), width=6)[1] == ("b", "c")


def test_help_has_examples_and_fits_80_columns():
    out = _run("--help").stdout
    assert "scrimp offers --gpu a100" in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_pipe_that_closes_early_is_no_failure():
    listing = "import sys; sys.argv = ['scrimp', 'offers', '--limit', '0']; from scrimp.cli.main import main; main()"
    process = subprocess.Popen([sys.executable, "-c", listing], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0
