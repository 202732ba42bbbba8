"""The text plot: points where they belong, never wider than asked, one point as well as many."""

from hypothesis import given
from hypothesis import strategies as st

from scrimp.planner.scatter import OFF_FRONT, ON_FRONT, Frame, Point, scatter

SIZES = st.floats(1e-3, 1e6)


def _frame(width=60, height=6):
    return Frame(width=width, height=height, x_low="1 h", x_high="9 h", y_low="$1", y_high="$90")


def test_the_cheapest_is_at_the_bottom_and_the_fastest_at_the_left():
    points = [Point(x=9, y=1, marked=True), Point(x=1, y=90, marked=True), Point(x=3, y=30, marked=False)]
    lines = scatter(points, _frame())
    assert lines[0] == f"$90 ┤{ON_FRONT}"
    assert lines[5].startswith(" $1 ┤")
    assert lines[5].rstrip().endswith(ON_FRONT)
    assert sum(line.count(OFF_FRONT) for line in lines) == 1
    assert lines[-1].split() == ["1", "h", "9", "h"]


@given(st.lists(st.tuples(SIZES, SIZES, st.booleans()), min_size=1, max_size=30), st.integers(24, 120))
def test_it_stays_within_its_width_and_loses_no_marked_point(points, width):
    lines = scatter([Point(x=x, y=y, marked=marked) for x, y, marked in points], _frame(width))
    assert max(map(len, lines)) <= width
    assert any(marked for _, _, marked in points) == any(ON_FRONT in line for line in lines)


def test_equal_points_lie_in_the_middle():
    lines = scatter([Point(x=5, y=5, marked=False)] * 3, _frame(height=5))
    assert OFF_FRONT in lines[2]
