"""The gradebook: every forecaster is in it, the fast half fits nothing, and unseen rows are the same rows."""

from pathlib import Path

import pytest

from scrimp.calibrate.crossval import coverage
from scrimp.calibrate.gradebook import Entry, gradebook
from scrimp.calibrate.table import read_table

CALIBRATION = Path(__file__).parents[2] / "calibration"


def tables(name):
    """A table of this repository."""
    return read_table(CALIBRATION / name)


@pytest.fixture(scope="module")
def shipped():
    return gradebook(tables, refit=False)


def test_every_forecaster_is_graded(shipped):
    assert {entry.name for entry in shipped.entries} >= {
        "memory", "memory_sharded", "memory_device", "time", "power", "process_memory", "cpu_time",
    }  # fmt: skip
    assert all(entry.shipped for entry in shipped.entries)
    assert shipped.entry("memory").figures["oom_rows"] > 0


def test_without_a_fit_nothing_is_unseen(shipped):
    assert all(not entry.unseen for entry in shipped.entries)
    assert shipped.regions == {}


def test_every_outcome_names_its_group_and_holds_its_own_forecast(shipped):
    for entry in shipped.entries:
        for outcome in entry.shipped:
            assert outcome.group
            assert outcome.low <= outcome.forecast <= outcome.high, (entry.name, outcome)


def test_an_unknown_entry_is_an_error(shipped):
    with pytest.raises(KeyError):
        shipped.entry("fortune")


@pytest.mark.slow
def test_unseen_rows_are_the_rows_that_were_graded_and_forecast_no_better(refitted):
    for entry in refitted.entries:
        if entry.unseen and entry.shipped and entry.name != "power":
            assert len(entry.unseen) == len(entry.shipped)
            assert sorted(o.measured for o in entry.unseen) == pytest.approx(sorted(o.measured for o in entry.shipped))
            # What a fit has not seen it forecasts no better than what it has.
            assert entry.unseen_figures["mape_of_groups"] >= entry.figures["mape_of_groups"] - 0.005
    assert set(coverage(refitted.regions["memory"])) > {"", "one card", "several cards"}


def test_an_entry_adds_its_verdicts_to_its_errors(shipped):
    memory = shipped.entry("memory")
    bare = Entry(name="memory", unit="GiB", shipped=memory.shipped)

    assert set(memory.figures) - set(bare.figures) == {name for name, _ in memory.verdicts}
