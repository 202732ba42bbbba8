"""Cross-validation by group: what a fit and an interval are worth on rows that they have not seen."""

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outcome_factory import outcome, random_groups

from scrimp.calibrate.crossval import cross_coverage, cross_validate, fold_of, unseen, with_unseen_intervals


def test_folds_hold_whole_groups_and_are_alike_in_rows():
    groups = [name for name, size in {"big": 30, "a": 10, "b": 10, "c": 10}.items() for _ in range(size)]
    folds = fold_of(groups, folds=2)

    assert folds["a"] == folds["b"] == folds["c"] != folds["big"]


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=60), st.randoms(use_true_random=False))
def test_folds_do_not_depend_on_the_order_of_rows(groups, random):
    shuffled = list(groups)
    random.shuffle(shuffled)

    assert fold_of(groups, folds=3) == fold_of(shuffled, folds=3)


@given(st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=40), st.integers(2, 10))
def test_no_fit_sees_a_row_of_the_group_it_predicts(groups, folds):
    rows = list(enumerate(groups))
    if len(set(groups)) < 2:
        with pytest.raises(ValueError, match="two groups"):
            cross_validate(rows, group_of=lambda row: row[1], fit=lambda _: lambda _: outcome(1.0), folds=folds)
        return

    def fit(train):
        seen = {group for _, group in train}

        def predict(row):
            assert train
            assert row[1] not in seen
            return outcome(1.0, group=row[1], forecast=row[0] + 1)

        return predict

    found = cross_validate(rows, group_of=lambda row: row[1], fit=fit, folds=folds)

    assert [one.forecast for one in found] == [number + 1 for number, _ in rows]


def test_a_fit_that_remembers_its_rows_is_found_out():
    """Predicting the mean of the row's own group is perfect on seen rows and no better than the mean on others."""
    rows = random_groups(3, groups=12, rows=5, between=1.0, within=0.0)

    def fit(train):
        memory = {row.group: row.measured for row in train}
        typical = fmean(memory.values())
        return lambda row: outcome(row.measured / memory.get(row.group, typical), group=row.group)

    seen = [fit(rows)(row) for row in rows]
    not_seen = cross_validate(rows, group_of=lambda row: row.group, fit=fit)

    assert max(abs(one.log_ratio) for one in seen) < 1e-9
    assert fmean(abs(one.log_ratio) for one in not_seen) > 0.3


def test_the_interval_of_a_row_is_made_from_the_other_groups():
    usual = [outcome(1 + number / 1000, group=f"{number}") for number in range(30)]
    odd = [outcome(4.0, group="odd"), outcome(4.1, group="odd")]

    held = {(one.outcome.group, one.inside) for one in unseen([*usual, *odd])}

    assert ("odd", False) in held
    assert ("odd", True) not in held
    assert sum(inside for _, inside in held) >= 25


def test_coverage_is_counted_by_row_and_by_group_in_every_region():
    inside = [outcome(1 + number / 1000, group=f"in{number}", region="a, b") for number in range(40)]
    loud = [outcome(7.0, group="loud", region="a, c") for _ in range(10)]

    found = cross_coverage([*inside, *loud])

    assert set(found) == {"", "a", "a, b", "a, c"}
    assert (found["a, c"].rows, found["a, c"].groups, found["a, c"].by_row) == (10, 1, 0.0)
    assert found[""].by_row == pytest.approx(found["a, b"].by_row * 40 / 50)
    assert found[""].by_group == pytest.approx(found["a, b"].by_group * 40 / 41)
    assert found["a, b"].width < 1.1


def test_unseen_intervals_cover_what_they_promise_in_regions_that_differ():
    """Two regions, one biased by a half: each keeps its 80%, which one interval for both would not."""
    rows = random_groups(4, groups=60, region="a")
    rows += [outcome(one.ratio * 1.5, group=one.group, region="b") for one in random_groups(5, groups=60, region="b")]
    found = cross_coverage(rows)

    assert 0.72 <= found["a"].by_group <= 0.9
    assert 0.72 <= found["b"].by_group <= 0.9
    held = with_unseen_intervals(rows)
    assert fmean(one.low <= one.measured <= one.high for one in held) == pytest.approx(found[""].by_row)


@pytest.mark.parametrize("call", [lambda: cross_coverage([outcome(1.0)]), lambda: fold_of(["a", "b"], folds=1)])
def test_refuses_what_cannot_be_validated(call):
    with pytest.raises(ValueError, match="at least two"):
        call()


def test_unseen_outcomes_keep_the_order_of_their_rows():
    rows = [outcome(1 + number / 10, group=str(number % 3)) for number in range(9)]

    assert [one.measured for one in with_unseen_intervals(rows)] == [row.measured for row in rows]
