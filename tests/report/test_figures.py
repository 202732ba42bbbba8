"""Figures as data: right values, thinned without loss of the ends, in units that people read."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrimp.ledger.history import history_of
from scrimp.report.curves import spending, training_curves
from scrimp.report.figure import thinned
from scrimp.report.plots import money_against_time, row_lengths
from scrimp.report.tables import attempt_bars, graded_bars


@given(length=st.integers(1, 500), at_most=st.integers(2, 60))
def test_thinning_keeps_the_ends_and_the_order(length, at_most):
    kept = thinned(range(length), at_most)
    assert len(kept) == min(length, at_most)
    assert (kept[0], kept[-1]) == (0, length - 1)
    assert kept == sorted(set(kept))


def test_the_loss_curve_holds_training_and_held_out_rows(nouns):
    loss = training_curves(history_of(nouns.make_events(steps=4)))[0]
    assert loss.x == (0.0, 1.0, 2.0, 3.0, 4.0)
    trained, held_out = loss.series
    assert trained.values == (None, 3.9, 3.8, 3.7, 3.6)
    assert held_out.values == (4.0, None, None, None, 3.5)
    assert loss.headings == ("step", "training loss", "held-out loss")
    assert loss.rows[0] == ("0", "", "4")


def test_many_steps_are_averaged_and_the_note_says_so(nouns):
    history = history_of(nouns.make_events(steps=1800))
    loss = training_curves(history)[0]
    assert loss.note == "each point is the mean of 3 steps"
    assert loss.series[0].values[1] == pytest.approx(4.0 - 0.1 * 2)


def test_money_runs_over_time_under_way_without_the_gap_between_attempts(nouns, plans):
    events = nouns.make_events(steps=30, ending=None) + nouns.make_events(steps=20, first=31, attempt=2, at_s=90_000.0)
    figure = spending(history_of(events), plans.make_plan())
    assert figure.x[0] == 1.0
    assert figure.x[-1] == 50.0
    assert figure.x_axis.after == " s"
    by_label = {series.label: series.values for series in figure.series}
    assert by_label["spent"][-1] == pytest.approx(0.05)
    assert set(by_label["forecast"]) == {0.0045}
    assert set(by_label["budget"]) == {0.01}
    assert "the budget is $0.010" in figure.summary


def test_a_plan_plot_marks_the_front_and_the_chosen(plans):
    points = plans.make_points(60)
    figure = money_against_time(points)
    assert list(figure.x) == sorted(figure.x)
    assert {series.label for series in figure.series} == {"other plans", "none is cheaper and faster", "chosen"}
    assert sum(value is not None for series in figure.series for value in series.values) == 60
    assert figure.x_axis.logarithmic
    assert "60 plans met the limits" in figure.summary
    assert figure.headings[0] == "what"


def test_thousands_of_plans_are_cut_down_to_the_cheapest_of_the_dominated(plans):
    points = plans.make_points(60)
    far = [replace(points[0], on_front=False, chosen=False, cost_usd=Decimal(1000 + i)) for i in range(900)]
    figure = money_against_time((*points, *far))
    others = next(series for series in figure.series if series.look == "other")
    assert sum(value is not None for value in others.values) == 400
    assert figure.note == f"{960 - len(figure.x)} dearer plans are not drawn"
    assert sum(point.on_front or point.chosen for point in points) == len(figure.x) - 400


def test_local_plans_are_read_in_minutes(plans):
    points = [replace(point, duration_s=60.0 * (i + 1)) for i, point in enumerate(plans.make_points(5))]
    assert money_against_time(points).x_axis.after == " min"


def test_one_plan_is_no_plot(plans):
    assert money_against_time(plans.make_points(1)) is None


@given(lengths=st.dictionaries(st.integers(1, 5000), st.integers(1, 99), min_size=1, max_size=50))
def test_every_row_is_in_the_length_histogram(plans, lengths):
    profile = replace(plans.make_profile(), length_histogram=tuple(sorted(lengths.items())))
    figure = row_lengths(profile)
    assert sum(figure.series[0].values) == sum(lengths.values())
    assert len(figure.x) <= 33


def test_graded_bars_stay_inside_their_track(nouns):
    for bar in graded_bars(nouns.make_record().graded):
        shares = (bar.low_share, bar.forecast_share, bar.high_share, bar.measured_share)
        assert all(0 <= share <= 1 for share in shares)
    assert [bar.inside for bar in graded_bars(nouns.make_record().graded)] == [True, False]


def test_a_forecast_of_nothing_is_no_division_by_zero(nouns):
    line = replace(nouns.make_record().graded[0], forecast=0.0, low=0.0, high=0.0, measured=0.0)
    assert graded_bars((line,))[0].measured_share == 0.0


def test_the_time_line_shows_attempts_where_they_were(nouns):
    events = nouns.make_events(steps=10, ending=None) + nouns.make_events(steps=10, first=11, attempt=2, at_s=1_030.0)
    first, second = attempt_bars(history_of(events), is_running=False)
    assert (first.start_share, first.width_share) == (0.0, 0.25)
    assert (second.start_share, second.width_share) == (0.75, 0.25)
    assert (first.ending, second.ending) == ("ended without a word", "finished")
