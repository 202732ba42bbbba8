"""Forecasts of whole rows: every row of the table, with any cells blank, gives a sane forecast or says why not."""

from math import isfinite
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.calibrate.memory.table import forecast_memory_row
from scrimp.calibrate.table import read_table
from scrimp.core.errors import SpecError

TABLE = read_table(Path(__file__).parents[2] / "calibration" / "measured_memory.csv")
COLUMNS = sorted(TABLE[0])
ANSWERS = ("measured_gib", "smi_gib", "tokens_per_s")


def by_id(name):
    return next(row for row in TABLE if row["id"] == name)


@settings(max_examples=300, deadline=None)
@given(row=st.sampled_from(TABLE), blank=st.sets(st.sampled_from(COLUMNS)), gone=st.sets(st.sampled_from(COLUMNS)))
def test_any_cells_may_be_blank_or_missing(row, blank, gone):
    cells = {name: "" if name in blank else value for name, value in row.items() if name not in gone}
    try:
        found = forecast_memory_row(cells)
    except SpecError as error:
        found, said = None, (error.what, error.next_step)
    if found is None:
        assert all(said)
        return
    assert 0 < found.low <= found.predicted <= found.high
    assert isfinite(found.high)
    assert found.safe_need_gib > 0


@settings(max_examples=100, deadline=None)
@given(row=st.sampled_from(TABLE), answer=st.sampled_from(["", "1", "1000", "x"]))
def test_answers_are_not_read(row, answer):
    if row["metric"] == "OOM on":
        return
    try:
        found = forecast_memory_row(row)
    except SpecError:
        return
    assert forecast_memory_row({**row, **dict.fromkeys(ANSWERS, answer)}) == found


def test_the_key_is_the_rows_own():
    row = TABLE[0]
    assert forecast_memory_row(row).key == row["id"]
    renamed = {"row_id" if name == "id" else name: value for name, value in row.items()}
    assert forecast_memory_row(renamed).key == row["id"]


def test_the_verdict_needs_a_card():
    row = by_id("fms-acceleration-049")
    assert row["metric"] == "OOM on"
    assert forecast_memory_row({**row, "measured_gib": ""}).fits is False
    assert forecast_memory_row({**row, "measured_gib": "", "gpu": ""}).fits is None
    assert forecast_memory_row({**row, "measured_gib": "", "gpu": "B200"}).fits is True


def test_a_run_that_failed_is_forecast_by_what_it_needs():
    found = forecast_memory_row(by_id("fms-acceleration-049"))
    assert found.predicted == found.safe_need_gib


def test_a_run_that_fills_its_card_is_as_large_as_the_card():
    row = next(row for row in TABLE if row["metric"].startswith("fits on") and row["gpu"] == "24GB")
    assert forecast_memory_row({**row, "measured_gib": ""}).predicted == pytest.approx(23.52)


def test_unknown_methods_are_forecast_as_their_kin_and_said_so():
    found = forecast_memory_row({**by_id("peft-method-comparison-030"), "method": "newest_lora"})
    assert "newest_lora as its nearest kin" in found.basis
