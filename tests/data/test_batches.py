"""The laws of steps and micro-batches."""

from collections import Counter
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrimp.core.job import TrainingSpec
from scrimp.data.batches import RowSizes, StepOptions, count_steps, epoch_order, micro_batches, step_rows

LENGTHS = st.lists(st.integers(1, 300), min_size=1, max_size=60)


@st.composite
def step_options(draw) -> StepOptions:
    return StepOptions(
        seed=draw(st.integers(0, 5)),
        epochs=draw(st.sampled_from([0.3, 1.0, 1.5, 2.0, 3.25])),
        batch_rows=draw(st.integers(1, 12)),
        batch_tokens=draw(st.none() | st.integers(1, 900)),
        max_steps=draw(st.none() | st.integers(1, 40)),
    )


@given(lengths=LENGTHS, options=step_options())
def test_every_row_comes_exactly_once_an_epoch(lengths, options):
    whole = StepOptions(seed=options.seed, epochs=2, batch_rows=options.batch_rows, batch_tokens=options.batch_tokens)
    counts = Counter(row for step in step_rows(lengths, options=whole) for row in step)
    assert counts == dict.fromkeys(range(len(lengths)), 2)


@given(lengths=LENGTHS, options=step_options())
def test_a_step_keeps_its_size(lengths, options):
    for step in step_rows(lengths, options=options):
        if options.batch_tokens is None:
            assert 1 <= len(step) <= options.batch_rows
        else:
            assert len(step) == 1 or sum(lengths[row] for row in step) <= options.batch_tokens


@given(lengths=LENGTHS, options=step_options(), start=st.integers(0, 30))
def test_resuming_at_a_step_gives_the_steps_that_were_left(lengths, options, start):
    everything = list(step_rows(lengths, options=options))
    assert list(step_rows(lengths, options=options, start_step=start)) == everything[start:]


@given(lengths=LENGTHS, options=step_options())
def test_counted_steps_are_the_steps_taken(lengths, options):
    trained = tuple(length // 2 for length in lengths)
    plan = count_steps(RowSizes(total_tokens=tuple(lengths), trained_tokens=trained), options=options)
    steps = list(step_rows(lengths, options=options))
    rows = [row for step in steps for row in step]
    assert plan.steps == len(steps)
    assert plan.rows == len(rows)
    assert plan.total_tokens == sum(lengths[row] for row in rows)
    assert plan.trained_tokens == sum(trained[row] for row in rows)
    assert plan.largest_step_tokens == max(sum(lengths[row] for row in step) for step in steps)
    assert plan.longest_row_tokens == max(lengths[row] for row in rows)
    assert plan.epochs == pytest.approx(len(rows) / len(lengths))


@given(lengths=LENGTHS, budget=st.integers(1, 700), layout=st.sampled_from(["packed", "padded"]), data=st.data())
def test_micro_batches_hold_the_rows_of_the_step_within_the_budget(lengths, budget, layout, data):
    rows = data.draw(st.permutations(range(len(lengths))))
    found = micro_batches(rows, lengths, micro_batch_tokens=budget, layout=layout)
    assert sorted(row for batch in found for row in batch) == list(range(len(lengths)))
    for batch in found:
        width = [lengths[row] for row in batch]
        size = sum(width) if layout == "packed" else len(width) * max(width)
        assert size <= budget or len(batch) == 1
    # The order of the rows within a step does not matter.
    assert found == micro_batches(sorted(rows), lengths, micro_batch_tokens=budget, layout=layout)


@given(lengths=LENGTHS, budget=st.integers(300, 700))
def test_packing_wastes_less_than_half(lengths, budget):
    # Any first-fit packing leaves at most one bin half empty.
    found = micro_batches(range(len(lengths)), lengths, micro_batch_tokens=budget, layout="packed")
    assert sum(2 * sum(lengths[row] for row in batch) <= budget for batch in found) <= 1


def test_epochs_differ_and_seeds_differ():
    orders = [epoch_order(50, seed=seed, epoch=epoch) for seed in (0, 1) for epoch in (0, 1)]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert len({tuple(order) for order in orders}) == 4


def test_the_order_is_the_same_on_every_machine_and_version():
    # A changed order would break the resume of every run on disk: these numbers must never change.
    assert epoch_order(10, seed=7, epoch=0) == [9, 8, 5, 7, 1, 0, 2, 3, 6, 4]
    assert epoch_order(10, seed=7, epoch=3) == [9, 0, 7, 6, 5, 3, 8, 4, 2, 1]


def test_fractions_of_epochs_count_whole_rows():
    lengths = [10] * 10
    rows = [len(step) for step in step_rows(lengths, options=StepOptions(epochs=1.5, batch_rows=4))]
    assert rows == [4, 4, 2, 4, 1]
    tenth = list(step_rows(lengths, options=StepOptions(epochs=0.1, batch_rows=4)))
    assert [len(step) for step in tenth] == [1]
    first = [row for step in islice(step_rows(lengths, options=StepOptions(batch_rows=5)), 1) for row in step]
    half = [row for step in step_rows(lengths, options=StepOptions(epochs=0.5, batch_rows=5)) for row in step]
    assert half == first


def test_max_steps_ends_a_run_and_never_extends_it():
    lengths = [10] * 10
    assert len(list(step_rows(lengths, options=StepOptions(batch_rows=4, max_steps=2)))) == 2
    assert len(list(step_rows(lengths, options=StepOptions(batch_rows=4, max_steps=99)))) == 3


def test_options_come_out_of_a_training_spec():
    spec = TrainingSpec(epochs=2.0, max_steps=3, batch_rows=5, batch_tokens=600, seed=9)
    assert StepOptions.of(spec) == StepOptions(seed=9, epochs=2.0, batch_rows=5, batch_tokens=600, max_steps=3)
