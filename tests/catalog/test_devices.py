"""Names in any spelling, the messy cells of the table, and the contract that a GPU is one row."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrimp.catalog.devices import MEMORY_NOMINAL, devices, find_device, match_devices, parse_devices
from scrimp.catalog.names import squeeze, stands_for
from scrimp.catalog.table import read_text
from scrimp.core.errors import ScrimpError, UnknownNameError
from scrimp.core.units import GB, GIB, TFLOPS

NAMES = sorted(devices())


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("a100 80gb", "A100-SXM4-80GB"),
        ("A100-80GB", "A100-SXM4-80GB"),
        ("a100 80 pcie", "A100-PCIe-80GB"),
        ("A100-PCIE-40GB", "A100-PCIe-40GB"),
        ("a100", "A100-SXM4-40GB"),
        ("4090", "RTX4090"),
        ("RTX 4090", "RTX4090"),
        ("3060", "RTX3060-12GB"),
        ("6000 ada", "RTX6000Ada"),
        ("H100", "H100-SXM5-80GB"),
        ("h100 pcie", "H100-PCIe-80GB"),
        ("T4g", "T4"),
        # What nvidia-smi calls them.
        ("NVIDIA H100 80GB HBM3", "H100-SXM5-80GB"),
        ("NVIDIA H100 PCIe", "H100-PCIe-80GB"),
        ("NVIDIA H200", "H200-SXM-141GB"),
        ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"),
        ("NVIDIA A100 80GB PCIe", "A100-PCIe-80GB"),
        ("NVIDIA GeForce RTX 4090", "RTX4090"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX6000Ada"),
        ("NVIDIA RTX A6000", "RTXA6000"),
        ("Quadro RTX 6000", "QuadroRTX6000"),
        ("Tesla V100-SXM2-16GB", "V100-SXM2-16GB"),
        ("Tesla T4", "T4"),
    ],
)
def test_usual_spellings_are_found(spelling, name):
    assert find_device(spelling).name == name


@given(st.sampled_from(NAMES), st.data())
def test_case_blanks_and_dashes_do_not_matter(name, data):
    letters = [
        data.draw(st.sampled_from((c.lower(), c.upper()))) + data.draw(st.sampled_from(("", "", " ", "-", "_")))
        for c in name
        if c.isalnum()
    ]
    assert find_device("".join(letters)).name == name


@given(st.sampled_from(NAMES))
def test_a_canonical_name_stands_for_itself_and_matches_it_alone(name):
    assert stands_for(name, name)
    assert [device.name for device in match_devices(name)] == [name]


@given(st.text(max_size=40))
def test_squeezing_twice_changes_nothing(text):
    assert squeeze(squeeze(text)) == squeeze(text)


def test_a10_is_not_a_short_name_of_a100():
    assert [device.name for device in match_devices("a10")] == ["A10"]
    assert not stands_for("a10", "A100-SXM4-80GB")


def test_a_family_covers_all_its_cards():
    assert {d.name for d in match_devices("a100")} == {n for n in NAMES if n.startswith("A100-")}
    assert {d.name for d in match_devices("A100 80GB")} == {"A100-SXM4-80GB", "A100-PCIe-80GB"}
    assert {d.name for d in match_devices("h100 sxm")} == {"H100-SXM5-80GB"}


def test_an_ambiguous_name_takes_the_documented_default_and_says_so():
    notes: list[str] = []
    assert find_device("H100", note=notes.append).name == "H100-SXM5-80GB"
    assert len(notes) == 1
    assert "H100-PCIe-80GB" in notes[0]
    assert "H100-NVL-94GB" in notes[0]


def test_rtx6000_is_the_quadro_and_the_ada_card_is_mentioned():
    notes: list[str] = []
    assert find_device("RTX 6000", note=notes.append).name == "QuadroRTX6000"
    assert "RTX6000Ada" in notes[0]


@pytest.mark.parametrize("name", ["H100-SXM5-80GB", "RTX4090", "L4", "NVIDIA GeForce RTX 3060"])
def test_a_name_without_doubt_says_nothing(name):
    notes: list[str] = []
    find_device(name, note=notes.append)
    assert notes == []


def test_a_provider_may_have_a_name_of_its_own():
    assert find_device("H100", provider="runpod").name == "H100-PCIe-80GB"
    assert find_device("A100-80GB", provider="fluidstack").name == "A100-PCIe-80GB"
    assert find_device("H100", provider="aws").name == "H100-SXM5-80GB"


@pytest.mark.parametrize(("wrong", "near"), [("A10O", "A10"), ("h10", "H100"), ("RTX 4900", "RTX4090")])
def test_an_unknown_name_is_answered_with_the_nearest(wrong, near):
    with pytest.raises(UnknownNameError) as caught:
        find_device(wrong)
    assert near in caught.value.expected
    assert "scrimp gpus" in caught.value.next_step


@pytest.mark.parametrize("name", ["", "  ", "80gb", "NVIDIA GeForce RTX 3060 Laptop GPU"])
def test_what_is_no_card_of_the_catalogue_is_refused(name):
    with pytest.raises(UnknownNameError):
        find_device(name)


def test_a_card_that_cannot_train_is_refused_with_the_reason():
    with pytest.raises(UnknownNameError, match="Maxwell"):
        find_device("M60")


def test_the_fp32_accumulate_figure_of_fp8_counts():
    assert devices()["RTX4090"].fp8_flops == 330.3 * TFLOPS
    assert devices()["L4"].fp8_flops == 242 * TFLOPS
    assert devices()["T4"].fp8_flops is None


def test_memory_that_nobody_saw_is_nominal_less_six_percent_and_flagged():
    card = devices()["RTX3090Ti"]
    assert card.memory_bytes == round(24 * 0.94 * GIB)
    assert MEMORY_NOMINAL in card.flags
    assert devices()["T4"].memory_bytes == 15 * GIB
    assert MEMORY_NOMINAL not in devices()["T4"].flags


@pytest.mark.parametrize(
    ("name", "gb_s"),
    [
        ("H100-SXM5-80GB", 900),
        # A bridge between pairs is rarely fitted, and NVLink-C2C leads to the CPU.
        ("H100-PCIe-80GB", 0),
        ("RTXA6000", 0),
        ("GH200-96GB", 0),
        ("H200-NVL-141GB", 900),
        ("MI300X", 896),
        ("RTX4090", 0),
    ],
)
def test_links_between_gpus(name, gb_s):
    assert devices()[name].nvlink_bytes_per_s == gb_s * GB


def test_features_are_read_before_the_words():
    assert devices()["MI300X"].supports_flash_attention  # "y (ROCm)"
    assert not devices()["Gaudi3"].supports_flash_attention  # "n (own fused SDPA)"
    assert not devices()["V100-SXM2-16GB"].supports_bf16


TABLE = read_text("gpus.csv").splitlines()
MANDATORY = (
    "gpu", "vendor", "architecture", "vram_gb_nominal", "memory_bandwidth_gb_s", "bf16_fp16_dense_tflops",
    "tensor_verified", "tensor_source", "tdp_w", "bf16", "flash_attention_2", "class", "other_source", "checked",
)  # fmt: skip


def _new_row(**changes: str) -> str:
    cells = {
        "gpu": "RTX6090", "aliases": "RTX 6090", "vendor": "NVIDIA", "architecture": "Rubin", "memory_type": "GDDR7",
        "compute_capability": "13.0", "vram_gb_nominal": "48", "vram_gib_usable": "47.5", "tdp_w": "600",
        "vram_usable_source": "nvidia-smi", "memory_bandwidth_gb_s": "2500", "bf16_fp16_dense_tflops": "400",
        "tflops_basis": "dense", "tensor_verified": "source", "tensor_source": "vendor page", "nvlink_gb_s": "0",
        "bf16": "y", "flash_attention_2": "y", "class": "consumer_blackwell", "other_source": "vendor page",
        "checked": "2026-12-01", **changes,
    }  # fmt: skip
    return ",".join(cells.get(column, "") for column in TABLE[0].split(","))


def test_a_new_gpu_is_one_row():
    table = parse_devices("\n".join([*TABLE, _new_row()]), where="gpus.csv")
    assert table.devices["RTX6090"].memory_bytes == round(47.5 * GIB)
    assert table.names.common["6090"] == "RTX6090"


@pytest.mark.parametrize("column", MANDATORY)
def test_a_row_without_a_mandatory_cell_is_refused_with_its_line(column):
    line = len(TABLE) + 1
    with pytest.raises(ScrimpError, match=rf'gpus\.csv, line {line}: "{column}" is empty'):
        parse_devices("\n".join([*TABLE, _new_row(**{column: ""})]), where="gpus.csv")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"class": "consumer_blackwel"}, "did you mean consumer_blackwell"),
        ({"vram_gb_nominal": "lots"}, '"vram_gb_nominal" is "lots"'),
        ({"bf16": "maybe"}, "y or n first"),
        ({"checked": "yesterday"}, "a date as"),
        ({"gpu": "RTX4090", "aliases": ""}, "RTX4090 stands twice"),
        ({"aliases": "RTX 4090"}, '"rtx4090" already means RTX4090'),
    ],
)
def test_a_row_that_cannot_be_right_is_refused_with_its_line(changes, words):
    with pytest.raises(ScrimpError, match=re.escape(words)) as caught:
        parse_devices("\n".join([*TABLE, _new_row(**changes)]), where="gpus.csv")
    assert f"line {len(TABLE) + 1}" in caught.value.what
