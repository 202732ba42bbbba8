"""`scrimp gpus` as people and machines see it."""

import json
from typing import get_args

import pytest
from click.testing import CliRunner, Result

from scrimp.catalog.devices import devices
from scrimp.cli.gpus import SORTS, command
from scrimp.core.errors import SpecError, UnknownNameError
from scrimp.core.units import GB
from scrimp.workflows.gpus import GpuSort


def _run(*arguments: str, width: int = 80) -> Result:
    return CliRunner().invoke(
        command, list(arguments), env={"COLUMNS": str(width), "NO_COLOR": "1"}, catch_exceptions=False
    )


def _gpus(*arguments: str):
    return json.loads(_run(*arguments, "--json").stdout)["gpus"]


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_the_table_keeps_one_line_a_card_at_every_width(width):
    lines = _run(width=width).stdout.splitlines()
    assert all(len(line) <= width for line in lines)
    table = lines[: lines.index("")]
    assert [line.split()[0] for line in table[1:]].count("RTX4090") == 1
    assert len(table) == 1 + len(devices())
    assert "…" not in table[0]


def test_the_table_shows_memory_rate_price_and_place():
    lines = _run(width=160).stdout.splitlines()
    (row,) = (line for line in lines if line.startswith("T4 "))
    assert "15.0" in row
    assert "65*" in row
    assert "turing" in row
    assert "gpurentalprices.com" in lines[-1]


def test_cheapest_prices_are_of_whole_cards_that_can_be_rented():
    for gpu in _gpus():
        for market, offer in gpu["cheapest"].items():
            if offer is None:
                continue
            assert offer["market"] == market
            assert offer["gpu"] == gpu["name"]
            assert offer["gpu_count"] >= 1
            assert offer["tier"] != "serverless"
            assert not {"stale", "spot_floor", "gcp_vcpu_price_missing"} & set(offer["flags"])


def test_a_card_without_an_offer_has_no_price_and_comes_last():
    gpus = _gpus()
    priced = [gpu["cheapest"]["on_demand"] is not None for gpu in gpus]
    assert priced == sorted(priced, reverse=True)
    assert not priced[-1]
    assert all(gpu["cheapest"]["on_demand"] or gpu["cheapest"]["spot"] for gpu in _gpus("--offered"))


def test_filters():
    found = _gpus("--vendor", "amd", "--min-memory", "192", "--bf16")
    assert {gpu["vendor"] for gpu in found} == {"AMD"}
    assert all(gpu["memory_bytes"] >= 192 * GB for gpu in found)
    assert {gpu["device_class"] for gpu in _gpus("--class", "dc_ampere")} == {"dc_ampere"}
    assert not any(gpu["name"] == "T4" for gpu in _gpus("--bf16"))
    assert "no GPU of the catalogue" in _run("--min-memory", "900").stdout


@pytest.mark.parametrize(
    ("sort", "key"),
    [
        ("memory", lambda gpu: -gpu["memory_bytes"]),
        ("flops", lambda gpu: -gpu["bf16_flops"]),
        ("power", lambda gpu: gpu["power_w"]),
        ("name", lambda gpu: gpu["name"]),
    ],
)
def test_orders(sort, key):
    values = [key(gpu) for gpu in _gpus("--sort", sort)]
    assert values == sorted(values)


def test_the_limit_is_said():
    out = _run("--limit", "3").stdout
    assert f"3 of {len(devices())} GPUs" in out


@pytest.mark.parametrize("name", sorted(devices()))
def test_every_card_has_a_page_that_fits(name):
    out = _run(name).stdout
    assert out.startswith(name)
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "checked 2026" in " ".join(out.split())


def test_a_page_has_sources_flags_and_offers():
    out = _run("mi300x").stdout
    assert "to know" in out
    assert "TechPowerUp bandwidth 10.3 TB/s is wrong" in out
    assert "cheapest on-demand" in out
    assert "scrimp offers --gpu MI300X" in out


def test_an_ambiguous_name_is_said_on_stderr():
    result = _run("h100")
    assert result.stdout.startswith("H100-SXM5-80GB")
    assert "H100-NVL-94GB" in result.stderr


def test_one_card_as_json_has_the_noun_and_the_row_as_written():
    document = json.loads(_run("4090", "--json").stdout)
    assert document["name"] == "RTX4090"
    assert document["row"]["fp8_dense_tflops"] == "660.6 (fp16 acc); 330.3 (fp32 acc)"
    assert document["cheapest"]["on_demand"][0]["gpu"] == "RTX4090"


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (("A10O",), UnknownNameError, "A10"),
        (("--class", "dc_amper"), UnknownNameError, "dc_ampere"),
        (("--vendor", "nvdia"), UnknownNameError, "NVIDIA"),
        (("--min-memory", "much"), SpecError, "--min-memory"),
    ],
)
def test_bad_input_is_refused_with_the_nearest_name(arguments, kind, words):
    with pytest.raises(kind) as caught:
        _run(*arguments)
    assert words in str(caught.value)


def test_the_sort_keys_are_those_of_the_workflow():
    assert get_args(GpuSort) == SORTS


def test_help_has_examples_and_fits_80_columns():
    out = _run("--help").stdout
    assert "scrimp gpus 4090" in out
    assert max(map(len, out.splitlines())) <= 80
