"""Intervals hold their value, and arithmetic keeps it so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrimp.core.estimate import Estimate, exact, within

NUMBERS = st.floats(min_value=0, max_value=1e12)


@st.composite
def estimates(draw):
    low, value, high = sorted((draw(NUMBERS), draw(NUMBERS), draw(NUMBERS)))
    return Estimate(value=value, low=low, high=high, basis="drawn")


@given(estimates(), estimates(), st.floats(min_value=0, max_value=1e3))
def test_sums_and_multiples_are_intervals_too(first, second, factor):
    both = first.plus(second)
    assert both.low <= both.value <= both.high
    assert both.value == first.value + second.value
    scaled = first.scaled(factor)
    assert scaled.low <= scaled.value <= scaled.high


@pytest.mark.parametrize(("low", "value", "high"), [(2, 1, 3), (0, 4, 3), (float("nan"), 1, 2)])
def test_an_interval_that_does_not_hold_its_value_is_refused(low, value, high):
    with pytest.raises(ValueError, match="does not hold"):
        Estimate(value=value, low=low, high=high, basis="x")


def test_holds():
    forecast = within(10.0, low_ratio=0.8, high_ratio=1.5, basis="table")
    assert forecast.holds(8.0)
    assert forecast.holds(15.0)
    assert not forecast.holds(15.1)
    assert exact(3.0, basis="count").holds(3.0)
