"""Intervals from errors: ranks, votes of groups, what small regions borrow, and that the promise of 80% is kept."""

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outcome_factory import outcome, random_groups

from scrimp.calibrate.conformal import ENOUGH, lineage, median_ratio, ratio_interval, region_intervals


def percent(count):
    """Groups 0..count-1 of one row each with the ratios 1.00, 1.01, 1.02 ..."""
    return [outcome(1 + number / 100, group=f"{number:02}") for number in range(count)]


def test_with_nineteen_groups_one_is_left_out_at_either_end():
    found = ratio_interval(percent(19))

    assert (found.low, found.high) == (pytest.approx(1.01), pytest.approx(1.17))
    assert found.median == pytest.approx(1.09)
    assert (found.rows, found.groups, found.borrowed) == (19, 19, 0.0)


def test_nine_groups_give_their_whole_range():
    found = ratio_interval(percent(9))

    assert (found.low, found.high) == (pytest.approx(1.0), pytest.approx(1.08))


def test_a_group_has_one_vote_however_many_rows_it_has():
    few = [outcome(1.0, group=f"{number}") for number in range(18)]
    many = [outcome(3.0, group="loud") for _ in range(500)]

    assert ratio_interval([*few, *many]).high == pytest.approx(1.0)
    assert median_ratio([*few, *many]) == pytest.approx(1.0)


def test_a_region_of_its_own_ignores_its_relatives():
    own = random_groups(1, groups=ENOUGH, region="card, allocated")
    others = [outcome(9.0, group=f"o{number}", region="card, reserved") for number in range(50)]

    alone, beside = ratio_interval(own, "card, allocated"), ratio_interval([*own, *others], "card, allocated")

    assert alone == beside
    assert beside.borrowed == 0.0


def test_a_small_region_borrows_from_the_nearest_relatives_first():
    own = [outcome(1.0, group="own", region="card, allocated, lora")]
    near = [outcome(2.0, group=f"n{number}", region="card, allocated, full") for number in range(ENOUGH)]
    far = [outcome(50.0, group=f"f{number}", region="many cards") for number in range(40)]

    found = ratio_interval([*own, *near, *far], "card, allocated, lora")

    assert (found.low, found.high) == (pytest.approx(2.0), pytest.approx(2.0))
    assert found.borrowed == pytest.approx(1 - 1 / ENOUGH)
    assert (found.rows, found.groups) == (1, 1)


def test_what_is_borrowed_never_outweighs_the_region_s_own_groups_one_by_one():
    own = [outcome(1.0, group=f"own{number}", region="a, b") for number in range(10)]
    others = [outcome(5.0, group=f"o{number}", region="a, c") for number in range(1000)]

    assert ratio_interval([*own, *others], "a, b").median == pytest.approx(1.0)


def test_a_region_nobody_measured_has_the_interval_of_its_parent():
    rows = random_groups(2, groups=30, region="card, allocated")
    unknown, parent = ratio_interval(rows, "card, reserved"), ratio_interval(rows, "card")

    assert (unknown.low, unknown.high, unknown.median) == (parent.low, parent.high, parent.median)
    assert (unknown.rows, unknown.borrowed) == (0, 1.0)


def test_a_group_in_two_regions_votes_once():
    rows = [outcome(1.1, group="twice", region="a, b"), outcome(9.0, group="twice", region="a, c")]

    assert ratio_interval(rows, "a, b").high == pytest.approx(1.1)
    assert ratio_interval(rows, "a").groups == 1


def test_every_region_and_ancestor_has_an_interval():
    found = region_intervals([outcome(1.0, region="card, allocated"), outcome(1.2, group="h", region="many")])

    assert set(found) == {"card, allocated", "card", "many", ""}
    assert found[""].groups == 2


def test_lineage_runs_to_the_whole():
    assert lineage("a, b, c") == ("a, b, c", "a, b", "a", "")
    assert lineage("") == ("",)


@pytest.mark.parametrize(
    ("outcomes", "level", "words"), [([], 0.8, "at least one"), ([outcome(1.0)], 1.0, "between 0 and 1")]
)
def test_refuses_what_has_no_interval(outcomes, level, words):
    with pytest.raises(ValueError, match=words):
        ratio_interval(outcomes, level=level)


@given(st.lists(st.tuples(st.floats(0.01, 100), st.integers(0, 8)), min_size=1, max_size=60), st.floats(0.01, 100))
def test_intervals_scale_with_the_measurements(pairs, factor):
    rows = [outcome(ratio, group=str(group)) for ratio, group in pairs]
    scaled = [outcome(ratio * factor, group=str(group)) for ratio, group in pairs]
    before, after = ratio_interval(rows), ratio_interval(scaled)

    assert before.low <= before.median * (1 + 1e-9)
    assert before.median <= before.high * (1 + 1e-9)
    assert (after.low, after.median, after.high) == pytest.approx(
        (before.low * factor, before.median * factor, before.high * factor)
    )


@given(st.integers(0, 10_000), st.sampled_from([0.5, 0.8, 0.9]), st.sampled_from([0.5, 0.8, 0.95]))
def test_a_higher_level_never_narrows_an_interval(seed, one, other):
    rows = random_groups(seed, groups=25)
    narrow, wide = (ratio_interval(rows, level=level) for level in sorted((one, other)))

    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


@pytest.mark.parametrize("groups", [9, 20, 45])
def test_a_new_group_falls_inside_eight_times_in_ten(groups):
    """The guarantee itself: over many draws of groups and one more group, at least 80% and not much above it."""
    holds = []
    for seed in range(400):
        *seen, new = random_groups(seed, groups=groups + 1, rows=1)
        found = ratio_interval(seen)
        holds.append(found.low <= new.ratio <= found.high)

    # Three standard errors of 400 draws are 6%; 9 groups promise 80%, 45 up to 80% + 2/46.
    assert 0.74 <= fmean(holds) <= 0.91
