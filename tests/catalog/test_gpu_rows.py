"""Data integrity: every row of gpus.csv is plausible and says where it comes from."""

import pytest

from scrimp.catalog.devices import DEVICE_CLASSES, RATE_UNVERIFIED, device_table
from scrimp.core.units import GB, GIB, TFLOPS

TABLE = device_table()
NAMES = sorted(TABLE.devices)
# GB/s per kind of memory: the slowest and the fastest that has been built, with room.
BANDWIDTH_GB_S = {
    "GDDR5": (150, 450), "GDDR6": (190, 1000), "GDDR6X": (450, 1200), "GDDR7": (400, 2000), "LPDDR5X": (200, 600),
    "HBM2": (700, 1600), "HBM2e": (900, 3800), "HBM3": (3000, 5500), "HBM3e": (3900, 9000),
}  # fmt: skip
# nvidia-smi totals that were seen lie between those of ECC on GDDR6 (a sixteenth less) and the nominal size.
USABLE_SHARES = (0.93, 1.0)


def _number(cell: str) -> float | None:
    return float(cell) if cell else None


@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_plausible(name):
    card, cells = TABLE.devices[name], TABLE.cells[name]
    nominal = TABLE.nominal_gb[name]
    assert 8 <= nominal <= 288
    assert USABLE_SHARES[0] <= card.memory_bytes / GIB / nominal <= USABLE_SHARES[1]
    low, high = BANDWIDTH_GB_S[cells["memory_type"]]
    assert low <= card.bandwidth_bytes_per_s / GB <= high
    assert 50 <= card.power_w <= 1400
    assert 5 * TFLOPS <= card.bf16_flops <= 3000 * TFLOPS
    assert card.fp32_flops is None or card.fp32_flops <= card.bf16_flops * 1.2
    assert card.fp8_flops is None or card.bf16_flops * 0.99 <= card.fp8_flops <= card.bf16_flops * 2.1
    assert card.device_class in DEVICE_CLASSES


@pytest.mark.parametrize("name", NAMES)
def test_the_tensor_rate_agrees_with_the_arithmetic(name):
    arithmetic = _number(TABLE.cells[name]["tflops_check_sm_clock"])
    if arithmetic is not None:
        assert TABLE.devices[name].bf16_flops / TFLOPS == pytest.approx(arithmetic, rel=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_a_row_names_its_sources_and_its_day(name):
    card, cells = TABLE.devices[name], TABLE.cells[name]
    assert cells["tensor_source"]
    assert cells["other_source"]
    assert cells["vram_usable_source"]
    assert "checked 20" in card.source
    assert cells["tensor_verified"] in {"source+arithmetic", "source", "arithmetic only", "no"}
    assert (cells["tensor_verified"] == "no") == (RATE_UNVERIFIED in card.flags)


def test_the_share_that_stands_in_for_unseen_memory_is_at_the_low_end_of_what_was_seen():
    seen = [
        float(cells["vram_gib_usable"]) / float(cells["vram_gb_nominal"])
        for cells in TABLE.cells.values()
        if cells["vram_gib_usable"]
    ]
    assert len(seen) > 25
    assert min(seen) == pytest.approx(0.9375, abs=0.002)
    assert max(seen) <= 1


def test_bf16_and_flash_attention_follow_the_generation():
    for card in TABLE.devices.values():
        if card.device_class in {"turing", "volta", "pascal"}:
            assert not card.supports_bf16
            assert not card.supports_flash_attention
        elif card.vendor == "NVIDIA":
            assert card.supports_bf16
            assert card.supports_flash_attention


def test_sparse_figures_that_other_tables_carry_did_not_get_in():
    assert TABLE.devices["H100-SXM5-80GB"].bf16_flops == 989 * TFLOPS
    assert TABLE.devices["H200-SXM-141GB"].bf16_flops == 989 * TFLOPS
    assert TABLE.devices["A10G"].bf16_flops == 70 * TFLOPS
    assert TABLE.devices["RTX4090"].bf16_flops == 165.2 * TFLOPS
