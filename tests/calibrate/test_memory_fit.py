"""The fit of figures: it finds what it was given, one wild row does not move it, unseen groups judge it."""

import math
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from scrimp.calibrate.memory.fit import (
    figure_bytes,
    fit_document,
    fit_memory,
    unseen_outcomes,
    usable,
    with_driver_figures,
)
from scrimp.calibrate.memory.grade import measured_rows, memory_outcome, verdict_figures
from scrimp.calibrate.memory.rows import memory_rows
from scrimp.calibrate.table import read_table
from scrimp.core.units import GIB
from scrimp.estimate.memory.fitted import FILE, FigureRatios, fitted_memory, read_fitted

pytest.importorskip("numpy")

TRUTH = FigureRatios(peak_ratio=1.1, logits_ratio=0.3, constant_bytes=2 * GIB)


@pytest.fixture(scope="module")
def rows():
    return list(memory_rows(read_table(Path(__file__).parents[2] / "calibration" / "measured_memory.csv")))


@pytest.fixture(scope="module")
def made_up(rows):
    """The cards' figure of every row on one card as if it followed TRUTH exactly."""
    one = [replace(row, figure="device") for row in rows if row.case.gpus == 1 and row.modelled and usable(row)]
    plain = replace(fitted_memory(), figures={**fitted_memory().figures, "device": TRUTH})
    return [replace(row, measured_gib=figure_bytes(row, plain) / GIB) for row in one]


def test_an_exact_relation_is_found_again(made_up):
    found = fit_memory(made_up).figures["device"]
    assert found.peak_ratio == pytest.approx(1.1, abs=0.01)
    assert found.logits_ratio == pytest.approx(0.3, abs=0.02)
    assert found.constant_bytes / GIB == pytest.approx(2.0, abs=0.05)


def test_one_wild_row_in_twenty_does_not_move_it(made_up):
    wild = [replace(row, measured_gib=row.measured_gib * (5 if n % 20 == 0 else 1)) for n, row in enumerate(made_up)]
    found = fit_memory(wild).figures["device"]
    assert found.peak_ratio == pytest.approx(1.1, abs=0.03)


def test_without_rows_the_prior_stands():
    assert fit_memory([]).figures["allocated"] == FigureRatios(peak_ratio=1.0, logits_ratio=0.0, constant_bytes=0.0)


def test_a_method_with_few_groups_is_drawn_to_its_kin(rows):
    dora = [row for row in rows if row.method == "dora" and usable(row)]
    fitted = fit_memory([*[row for row in rows if row.modelled], *dora])
    measured = [math.log(row.measured_gib * GIB / figure_bytes(row, replace(fitted, methods={}))) for row in dora]
    middle = sorted(measured)[len(measured) // 2]
    assert 0 < abs(math.log(fitted.methods["dora"])) < abs(middle) + 1e-9


def test_no_row_is_judged_by_a_fit_that_saw_its_group(rows):
    """A group whose figures are all wrong by the same factor keeps that error when it is left out."""
    group = next(row.group for row in rows if row.row["source"] == "qwen-readme")
    spoilt = [
        replace(row, measured_gib=row.measured_gib * 3) if row.group == group and row.measured_gib else row
        for row in rows
    ]
    kept = [row for row in spoilt if usable(row)]
    errors = [one.ratio for row, one in zip(kept, unseen_outcomes(spoilt), strict=True) if row.group == group]
    assert min(errors) > 2


def test_the_shipped_fit_is_the_one_that_the_rows_give(rows, tmp_path):
    import json

    document = fit_document(with_driver_figures(rows), today=date(2026, 1, 1))
    (tmp_path / "fitted.json").write_text(json.dumps(document))
    again, shipped = read_fitted(tmp_path / "fitted.json"), read_fitted(FILE)
    assert again.intervals.keys() == shipped.intervals.keys()
    for name, figure in again.figures.items():
        assert figure.peak_ratio == pytest.approx(shipped.figures[name].peak_ratio, abs=0.01), "run make calibrate"


def test_a_region_that_was_never_measured_takes_its_relatives_interval():
    fitted = fitted_memory()
    assert fitted.interval("one card, allocated, frozen, 3 bit") == fitted.interval("one card, allocated, frozen")
    assert fitted.interval("elsewhere") == fitted.interval("")


def test_mixtures_and_several_cards_are_wider_than_one_dense_card():
    def width(region):
        low, high = fitted_memory().interval(region)
        return high / low

    one = width("one card, allocated, frozen, 16 bit")
    assert width("several cards, allocated, frozen, 16 bit") > one
    assert width("mixture, one card, allocated, frozen, 16 bit") > one


def test_runs_that_failed_are_not_called_fitting(rows):
    one = [row for row in rows if row.case.gpus == 1 and row.row["confidence"] == "high"]
    figures = verdict_figures(one)
    assert figures["oom_rows"] > 20
    assert figures["oom_called_fits"] <= 0.15
    assert figures["ran_called_fits"] >= 0.90


def test_the_fit_answers_what_each_metric_names(rows):
    """The driver sees more than the allocator for one and the same run."""
    both = [row for row in measured_rows(rows) if row.smi_gib]
    seen = {(row.row["id"], row.figure): memory_outcome(row).forecast for row in both}
    pairs = [(seen[key, "allocated"], seen[key, "device"]) for key in {key for key, _ in seen}]
    assert len(pairs) > 100
    assert all(device > allocated for allocated, device in pairs)
