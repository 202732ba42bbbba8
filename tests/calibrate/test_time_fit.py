"""The fit of speed: it finds what it was given, one wild row does not move it, unseen groups judge it."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from statistics import fmean, median

import pytest

from scrimp.calibrate.crossval import coverage
from scrimp.calibrate.table import read_table
from scrimp.calibrate.time.fit import (
    fit_document,
    fit_time,
    outcome_of,
    row_s,
    unseen_classes,
    unseen_groups,
    unseen_sources,
)
from scrimp.calibrate.time.grade import time_outcome, unseen_time
from scrimp.calibrate.time.rows import time_rows, under
from scrimp.estimate.time.fitted import BOTH_SEEN, CARD_UNSEEN, FILE, SOFTWARE_UNSEEN, fitted_time

pytest.importorskip("numpy")


@pytest.fixture(scope="module")
def rows():
    return list(time_rows(read_table(Path(__file__).parents[2] / "calibration" / "measured_time.csv")))


@pytest.fixture(scope="module")
def few(rows):
    """A few groups of different sources and cards."""
    names = sorted({row.group for row in rows})[::9]
    return [row for row in rows if row.group in names]


def as_if(rows, fitted):
    """The rows, with what `fitted` says in place of what was measured."""
    return [
        replace(row, tokens_per_s_per_gpu=row.step.tokens / row_s(under(row, fitted), fitted.constants)) for row in rows
    ]


def test_an_exact_relation_is_found_again(rows):
    shipped = fitted_time()
    truth = replace(shipped, constants=replace(shipped.constants, efficiency=0.6, trained_floor_s=0.02, software={}))
    found = fit_time(as_if(rows, truth))
    errors = [abs(outcome_of(row, found).error) for row in as_if(rows, truth)]
    assert fmean(errors) < 0.01
    assert found.constants.trained_floor_s == pytest.approx(0.02, rel=0.1)


def test_one_wild_row_in_twenty_hardly_moves_it(rows):
    shipped = fitted_time()
    exact = as_if(rows, shipped)
    wild = [
        replace(row, tokens_per_s_per_gpu=row.tokens_per_s_per_gpu * (5 if n % 20 == 0 else 1))
        for n, row in enumerate(exact)
    ]
    found = fit_time(wild)
    assert median(abs(outcome_of(row, found).error) for row in exact) < 0.05


def test_where_it_starts_does_not_matter(rows):
    cold, warm = fit_time(rows), fit_time(rows, start=fitted_time())
    for row in rows[::10]:
        assert outcome_of(row, cold).forecast == pytest.approx(outcome_of(row, warm).forecast, rel=2e-3)


def test_the_shipped_constants_are_those_of_the_table(rows):
    found, shipped = fit_time(rows), fitted_time()
    assert shipped.rows == len(rows)
    assert shipped.groups == len({row.group for row in rows})
    for row in rows:
        assert outcome_of(row, found).forecast == pytest.approx(time_outcome(row).forecast, rel=2e-3)


def test_a_fit_without_rows_is_refused():
    with pytest.raises(ValueError, match="at least one row"):
        fit_time([])


@pytest.mark.parametrize(
    ("unseen", "key"),
    [
        (unseen_groups, lambda row: row.group),
        (unseen_sources, lambda row: row.row["source"]),
        (unseen_classes, lambda row: row.device.device_class),
    ],
)
def test_what_is_left_out_has_no_say_in_its_own_forecast(few, unseen, key):
    shipped = fitted_time()
    wanted = key(few[0])
    altered = [
        replace(row, tokens_per_s_per_gpu=row.tokens_per_s_per_gpu * (3 if key(row) == wanted else 1)) for row in few
    ]
    before, after = unseen(few, start=shipped), unseen(altered, start=shipped)
    left_out = [n for n, row in enumerate(few) if key(row) == wanted]
    assert [before[n].forecast for n in left_out] == [after[n].forecast for n in left_out]
    seen = [n for n in range(len(few)) if n not in left_out]
    assert [before[n].forecast for n in seen] != [after[n].forecast for n in seen]


def test_a_forecast_without_its_source_or_class_says_which_is_missing(few):
    shipped = fitted_time()
    by_group, by_source, by_class = (
        {outcome.region.partition(", ")[0] for outcome in unseen(few, start=shipped)}
        for unseen in (unseen_groups, unseen_sources, unseen_classes)
    )
    assert by_group <= {BOTH_SEEN, SOFTWARE_UNSEEN, CARD_UNSEEN}
    assert by_source <= {SOFTWARE_UNSEEN, CARD_UNSEEN}
    assert by_class == {CARD_UNSEEN}


def test_less_measured_is_never_promised_more_narrowly():
    found = json.loads(FILE.read_text(encoding="utf-8"))["intervals"]
    for part in ("", ", short steps", ", one card", ", one node", ", several nodes"):
        both, software, card = (found[known + part] for known in (BOTH_SEEN, SOFTWARE_UNSEEN, CARD_UNSEEN))
        assert card["low"] <= software["low"] <= both["low"] < 1
        assert 1 < both["high"] <= software["high"] <= card["high"]


def test_the_document_says_what_it_was_made_of_and_reads_back(few, tmp_path):
    from scrimp.estimate.time.fitted import read_fitted

    document = fit_document(few, today=date(2026, 12, 1))
    assert document["source"] == {
        "rows": len(few),
        "groups": len({row.group for row in few}),
        "table": "calibration/measured_time.csv",
        "date": "2026-12-01",
        "written_by": "make calibrate",
    }
    path = tmp_path / "fitted.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    again, direct = read_fitted(path), fit_time(few)
    for row in few:
        assert outcome_of(row, again).forecast == pytest.approx(outcome_of(row, direct).forecast, rel=1e-3)


@pytest.mark.slow
def test_unseen_runs_are_forecast_as_well_as_the_project_promises(rows):
    found = unseen_time(rows)
    errors = {name: [abs(outcome.error) for outcome in outcomes] for name, outcomes in found.items()}
    assert fmean(errors["time"]) <= 0.14
    assert median(errors["time"]) <= 0.09
    assert fmean(errors["time_sources"]) <= 0.14
    assert fmean(errors["time_classes"]) <= 0.25
    for name, known in (("time", BOTH_SEEN), ("time_sources", SOFTWARE_UNSEEN), ("time_classes", CARD_UNSEEN)):
        assert 0.75 <= coverage(found[name])[known].by_group <= 0.90
