"""The forecasts against measured runs: errors may not grow beyond what calibration/grades.json records.

The fast half grades what is shipped; the slow half fits everything again without each group in turn.
"""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDED = json.loads((ROOT / "calibration" / "grades.json").read_text(encoding="utf-8"))
SHIPPED = [name for name in RECORDED if not name.endswith("_unseen")]
UNSEEN = [name for name in RECORDED if name.endswith("_unseen")]
# Room for rounding alone.
SLACK = 0.002
ERRORS = ("mape_of_groups", "mape", "median", "under_by_10", "oom_called_fits", "need_under_by_10")
VIRTUES = ("within_25", "interval_holds", "ran_called_fits")


@pytest.fixture(scope="module")
def script():
    """The script that `make calibrate` runs."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import grade_forecasts
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    return grade_forecasts


@pytest.fixture(scope="module")
def graded(script):
    """Grades of what is shipped, now."""
    return script.grade()


def worse(now, recorded):
    """Figures that got worse, each with what is recorded and what is."""
    return {
        name: (recorded[name], now[name])
        for name in recorded
        if (name in ERRORS and now[name] > recorded[name] + SLACK)
        or (name in VIRTUES and now[name] < recorded[name] - SLACK)
    }


@pytest.mark.parametrize("formula", SHIPPED)
def test_no_error_grew(graded, formula):
    found = worse(graded[formula], RECORDED[formula])
    assert not found, f"{formula} got worse (recorded, now): {found}; if that is meant, run make calibrate"


@pytest.mark.slow
@pytest.mark.parametrize("formula", UNSEEN)
def test_no_error_on_unseen_groups_grew(script, refitted, formula):
    found = worse(script.grades_of(refitted)[formula], RECORDED[formula])
    assert not found, f"{formula} got worse (recorded, now): {found}; if that is meant, run make calibrate"


def test_the_rows_are_those_that_were_graded(graded):
    assert {name: grades["rows"] for name, grades in graded.items()} == {
        name: RECORDED[name]["rows"] for name in SHIPPED
    }


def test_the_forecasts_keep_what_the_project_promises(graded):
    assert graded["memory"]["mape_of_groups"] < 0.15
    assert graded["memory"]["median"] < 0.05
    assert graded["memory"]["oom_called_fits"] <= 0.15
    assert graded["memory"]["ran_called_fits"] >= 0.90
    assert graded["memory"]["interval_holds"] >= 0.80
    assert graded["time"]["mape_of_groups"] < 0.17
    assert graded["time"]["interval_holds"] >= 0.80


def test_a_figure_that_gets_worse_is_noticed():
    recorded = {"rows": 10, "median": 0.05, "interval_holds": 0.85, "under": 0.5}

    assert worse({**recorded, "median": 0.06}, recorded) == {"median": (0.05, 0.06)}
    assert worse({**recorded, "interval_holds": 0.80}, recorded) == {"interval_holds": (0.85, 0.80)}
    assert worse({**recorded, "median": 0.04, "interval_holds": 0.9, "under": 0.9}, recorded) == {}


def test_every_table_of_measurements_is_explained():
    readme = (ROOT / "calibration" / "README.md").read_text(encoding="utf-8")
    files = {path.name for path in (ROOT / "calibration").iterdir()} - {"README.md"}
    assert {name for name in files if f"`{name}`" not in readme} == set()
