"""The learning rate is a pure function of the step."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrimp.train.schedule import learning_rate

SCHEDULES = ("constant", "linear", "cosine")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_it_rises_to_the_full_rate_and_never_above(recipe, schedule):
    made = recipe(schedule=schedule, warmup_steps=4, learning_rate=1.0)
    rates = [learning_rate(made, step=step, steps=20) for step in range(20)]
    assert rates[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert max(rates) == 1.0
    assert all(later <= earlier for earlier, later in pairwise(rates[4:]))
    assert all(rate > 0 for rate in rates), "no step is wasted on a rate of zero"


def test_linear_and_cosine_meet_in_the_middle_and_end_near_zero(recipe):
    for schedule in ("linear", "cosine"):
        made = recipe(schedule=schedule, warmup_steps=0, learning_rate=2.0)
        assert learning_rate(made, step=50, steps=100) == pytest.approx(1.0)
        assert learning_rate(made, step=99, steps=100) < 0.03


@given(
    schedule=st.sampled_from(SCHEDULES),
    steps=st.integers(1, 200),
    warmup=st.integers(0, 250),
    step=st.integers(0, 199),
)
def test_every_step_of_every_schedule_has_a_rate(schedule, steps, warmup, step):
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Asked:
        schedule: str
        warmup_steps: int
        learning_rate: float = 1.0

    rate = learning_rate(Asked(schedule=schedule, warmup_steps=warmup), step=min(step, steps - 1), steps=steps)
    assert 0 < rate <= 1
