"""The forecasts against published measurements: errors may not grow beyond what calibration/grades.json records."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDED = json.loads((ROOT / "calibration" / "grades.json").read_text(encoding="utf-8"))
# Room for rounding alone.
SLACK = 0.002
ERRORS = ("mape_of_groups", "mape", "median", "under_by_10", "oom_called_fits", "need_under_by_10")
VIRTUES = ("within_25", "interval_holds", "ran_called_fits")


@pytest.fixture(scope="module")
def graded():
    """Grades now; the script is the one that `make calibrate` runs."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import grade_forecasts
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    return grade_forecasts.grade()[0]


@pytest.mark.parametrize("formula", RECORDED)
def test_no_error_grew(graded, formula):
    now, recorded = graded[formula], RECORDED[formula]
    worse = {
        name: (recorded[name], now[name])
        for name in recorded
        if (name in ERRORS and now[name] > recorded[name] + SLACK)
        or (name in VIRTUES and now[name] < recorded[name] - SLACK)
    }
    assert not worse, f"{formula} got worse (recorded, now): {worse}; if that is meant, run make calibrate"


def test_the_rows_are_those_that_were_graded(graded):
    assert {name: grades["rows"] for name, grades in graded.items()} == {
        name: grades["rows"] for name, grades in RECORDED.items()
    }


def test_the_forecasts_keep_what_the_project_promises(graded):
    assert graded["memory"]["mape_of_groups"] < 0.15
    assert graded["memory"]["median"] < 0.05
    assert graded["memory"]["oom_called_fits"] <= 0.15
    assert graded["memory"]["ran_called_fits"] >= 0.90
    assert graded["memory"]["interval_holds"] >= 0.80
    assert graded["time"]["mape_of_groups"] < 0.17
    assert graded["time"]["interval_holds"] >= 0.80


def test_every_table_of_measurements_is_explained():
    readme = (ROOT / "calibration" / "README.md").read_text(encoding="utf-8")
    files = {path.name for path in (ROOT / "calibration").iterdir()} - {"README.md"}
    assert {name for name in files if f"`{name}`" not in readme} == set()
