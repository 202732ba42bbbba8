"""Learning from one's own runs: shrunken, robust, judged on runs left out, and silent where it would not help."""

from dataclasses import replace
from math import exp, log
from random import Random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrimp.calibrate.own_runs import OwnRun, correction_at, corrections, judge, learn, student_t90

PATH = ("gpu", "lora", "8b")


def run(ratio, *, run_id="r", path=PATH, quantity="train_s", forecast=100.0):
    """A run that took `ratio` times what the formulas said."""
    device, method, model = path
    return OwnRun(
        run_id=run_id, quantity=quantity, device=device, method=method, model=model, forecast=forecast,
        low=0.7 * forecast, high=1.4 * forecast, measured=ratio * forecast,
    )  # fmt: skip


def found_at(runs, *path):
    return correction_at(path, runs)


def test_two_runs_teach_nothing():
    learnt, judged = learn([run(2.0), run(2.0)])

    assert learnt == ()
    assert (judged[0].after, judged[0].value, judged[0].before) == (None, None, pytest.approx(0.5 * 2))


def test_many_like_runs_teach_their_ratio_and_a_new_model_gets_part_of_it():
    runs = [run(2.0) for _ in range(40)]
    by_node = {(item.method, item.model): item.value for item in corrections(runs)}

    assert by_node["lora", "8b"] == pytest.approx(2.0, rel=0.02)
    assert 1.0 < by_node["", ""] < by_node["lora", ""] < by_node["lora", "8b"]
    # A fifth of the way, by one method of one: n / (n + 4).
    assert log(by_node["", ""]) == pytest.approx(log(2.0) / 5)


def test_every_method_and_model_that_agrees_moves_the_device_further():
    paths = [("gpu", method, model) for method in ("lora", "qlora", "full") for model in "abc"]
    runs = [run(2.0, path=path) for path in paths for _ in range(3)]

    assert log(found_at(runs, "gpu").value) == pytest.approx(log(2.0) * 3 / 7)
    assert found_at(runs, "gpu").models == 3


@pytest.mark.parametrize("wild", [0.01, 100.0])
def test_one_run_that_went_astray_changes_little(wild):
    usual = [run(ratio) for ratio in (1.18, 1.20, 1.22, 1.21)]
    with_wild, without = found_at([*usual, run(wild)], *PATH), found_at(usual, *PATH)

    assert with_wild.value == pytest.approx(without.value, rel=0.05)
    assert with_wild.high < 1.6


def test_a_device_learns_nothing_from_another_and_a_quantity_nothing_from_another():
    slow = [run(2.0, path=("slow", "lora", "8b")) for _ in range(5)]
    right = [run(1.0, path=("right", "lora", "8b")) for _ in range(5)]
    memory = [run(1.0, path=("slow", "lora", "8b"), quantity="peak_bytes") for _ in range(5)]

    learnt, judged = learn([*slow, *right, *memory])

    assert {(item.device, item.quantity) for item in learnt} == {("slow", "train_s")}
    assert {(item.device, item.quantity): item.helps for item in judged} == {
        ("slow", "train_s"): True, ("right", "train_s"): False, ("slow", "peak_bytes"): False,
    }  # fmt: skip


def test_the_interval_narrows_with_runs_that_agree_and_widens_with_runs_that_do_not():
    width = {
        (count, spread): found.high / found.low
        for count in (3, 30)
        for spread in (0.01, 0.8)
        for found in [found_at([run(exp(spread * (n % 3 - 1))) for n in range(count)], *PATH)]
    }

    assert width[30, 0.01] < width[3, 0.01] < 1.4 / 0.7 * 1.6
    assert width[30, 0.8] > 1.4 / 0.7


def test_the_interval_of_runs_like_the_past_ones_holds_eight_times_in_ten():
    random = Random(7)
    held = []
    for _ in range(300):
        bias = random.gauss(0, 0.3)
        *past, new = [run(exp(bias + random.gauss(0, 0.2))) for _ in range(13)]
        found = found_at(past, *PATH)
        held.append(found.low <= new.measured / new.forecast <= found.high)

    # Three standard errors of 300 are 7%.
    assert 0.76 <= sum(held) / len(held) <= 0.94


def test_before_and_after_are_of_runs_that_were_left_out():
    ratios = [1.5, 1.5, 1.5, 4.0]
    judged = judge([run(ratio, run_id=str(n)) for n, ratio in enumerate(ratios)])

    assert judged.before == pytest.approx(0.5)
    # The three that are alike are each forecast by the other two and the wild one.
    others = correction_at(PATH, [run(1.5), run(1.5), run(4.0)])
    assert judged.after == pytest.approx(abs(1.5 / others.value - 1))
    assert judged.runs == 4


@given(st.lists(st.floats(-0.05, 0.05), min_size=3, max_size=15))
def test_where_the_formulas_are_right_nothing_gets_worse_than_noise(errors):
    runs = [run(exp(error), run_id=str(n)) for n, error in enumerate(errors)]
    _, (judged,) = learn(runs)
    used = judged.after if judged.helps else judged.before

    assert used <= judged.before
    assert judged.after <= judged.before + 2 * max(map(abs, errors)) + 1e-9


@given(
    st.lists(
        st.tuples(st.floats(0.1, 10), st.sampled_from(["lora", "full"]), st.sampled_from(["a", "b"])), min_size=3,
        max_size=25,
    )
)  # fmt: skip
def test_every_correction_lies_between_none_and_the_farthest_run_and_holds_its_value(found):
    runs = [run(ratio, path=("gpu", method, model)) for ratio, method, model in found]
    ratios = [ratio for ratio, _, _ in found]

    for item in corrections(runs):
        assert min(1.0, *ratios) * (1 - 1e-9) <= item.value <= max(1.0, *ratios) * (1 + 1e-9)
        assert item.low is None or item.low <= item.value <= item.high
        assert item.runs >= 3


@given(st.floats(0.2, 5), st.integers(3, 12))
def test_a_learnt_factor_never_overshoots_and_grows_with_runs(ratio, count):
    few, more = (log(found_at([run(ratio)] * n, *PATH).value) for n in (count, count + 5))

    assert abs(few) <= abs(more) + 1e-12 <= abs(log(ratio)) + 2e-12


def test_figures_that_form_no_ratio_are_ignored():
    good = [run(1.5) for _ in range(3)]
    bad = [replace(good[0], measured=0.0), replace(good[0], measured=float("inf")), replace(good[0], low=-1.0)]

    assert learn([*good, *bad]) == learn(good)


def test_what_depends_on_the_device_alone_is_one_correction():
    runs = [run(1.3, path=("gpu", "", ""), quantity="power_w") for _ in range(5)]
    (only,) = corrections(runs)

    assert (only.method, only.model, only.runs) == ("", "", 5)
    assert only.value > 1.25


@pytest.mark.parametrize(("degrees", "expected"), [(4, 1.533), (6, 1.440), (13, 1.350), (40, 1.303)])
def test_student_agrees_with_tables(degrees, expected):
    assert student_t90(degrees) == pytest.approx(expected, rel=0.01)


def test_the_judgement_names_the_factor_of_the_usual_model():
    runs = [run(1.5, path=("gpu", "lora", "usual")) for _ in range(6)] + [run(1.0, path=("gpu", "lora", "rare"))]
    judged = judge(runs)

    assert judged.value == pytest.approx(found_at(runs, "gpu", "lora", "usual").value)
    assert judged.before == pytest.approx(median([0.5] * 6 + [0.0]))
