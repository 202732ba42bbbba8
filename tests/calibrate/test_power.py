"""Power of nodes: the constants against what the measured systems give, each judged by the others."""

from pathlib import Path

import pytest

from scrimp.calibrate.power.grade import (
    fit_ratios,
    left_out_outcomes,
    power_errors,
    power_lines,
    power_outcomes,
    power_rows,
)
from scrimp.calibrate.table import read_table
from scrimp.estimate.energy.power import CONSTANTS

ROWS = read_table(Path(__file__).parents[2] / "calibration" / "measured_power.csv")


def test_the_shipped_ratios_are_those_that_the_measured_systems_give():
    for load, ratio in fit_ratios(power_rows(ROWS)).items():
        assert CONSTANTS.server[load] == pytest.approx(ratio, rel=0.02), load


def test_the_intervals_hold_what_no_system_was_fitted_on():
    outcomes = left_out_outcomes(ROWS)
    held = [outcome.low <= outcome.measured <= outcome.high for outcome in outcomes]
    assert sum(held) / len(held) >= 0.8
    assert all(outcome.low <= outcome.measured <= outcome.high for outcome in power_outcomes(ROWS))


def test_one_node_at_work_is_forecast_better_than_by_rated_power():
    others, shipped, rated = power_errors(ROWS)
    assert others.rows == shipped.rows == rated.rows
    assert others.by_load["compute"] < 0.06
    assert others.by_load["compute"] < rated.by_load["compute"] / 3
    assert others.overall < rated.overall


def test_a_system_is_judged_by_others_alone():
    rows = power_rows(ROWS)
    without_lenovo = fit_ratios(row for row in rows if row.system != "Lenovo")["compute"]
    lenovo = next(outcome for outcome in left_out_outcomes(ROWS) if outcome.group == "Lenovo")
    assert lenovo.forecast == pytest.approx(without_lenovo * 8000)


def test_maxima_and_readings_at_home_are_kept_but_not_graded():
    assert {row.system for row in power_rows(ROWS)} == {"Supermicro", "Lenovo", "Dell"}
    assert {row["system"] for row in ROWS} > {"BNL", "a home"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['node']}, {row['workload']}")
def test_rows_are_consistent_and_say_where_they_come_from(row):
    rated_w = float(row["gpu_tdp_w"]) * int(row["n_gpus_per_node"])
    assert float(row["over_tdp"]) == pytest.approx(float(row["mean_node_power_w"]) / rated_w, abs=0.002)
    assert row["source"]
    assert row["measured_at"]


def test_the_lines_print_every_estimator():
    lines = power_lines(ROWS)
    assert len(lines) == 5
    assert "cards x rated power" in lines[-1]
