"""The CSV reader refuses what it cannot use, and says on which line."""

from datetime import date

import pytest

from scrimp.catalog.table import Row, read_rows
from scrimp.core.errors import ScrimpError


def _row(**cells: str) -> Row:
    return Row(where="t.csv", line=7, cells=cells)


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("600 (bridge, pairs)", 600.0),
        ("112.5 (bridge, pairs; usually absent)", 112.5),
        ("0", 0.0),
        ("", None),
        ("n/a", None),
    ],
)
def test_a_number_is_what_a_cell_begins_with(cell, number):
    assert _row(x=cell).number("x") == number


def test_text_where_a_number_belongs_is_refused_with_its_line():
    with pytest.raises(ScrimpError, match=r't\.csv, line 7: "x" is "about 5"'):
        _row(x="about 5").number("x")


@pytest.mark.parametrize("cell", ["", "0", "0.0"])
def test_a_mandatory_number_may_be_neither_empty_nor_zero(cell):
    with pytest.raises(ScrimpError, match="line 7"):
        _row(x=cell).required_number("x")


def test_days_are_iso_dates_or_nothing():
    assert _row(x="2026-08-22").day("x") == date(2026, 8, 22)
    assert _row(x="").day("x") is None
    with pytest.raises(ScrimpError, match="line 7"):
        _row(x="22.8.2026").day("x")


def test_quoted_commas_and_blank_lines_are_read():
    rows = list(read_rows('a,b\n1,"x, y"\n\n2,z\n', where="t.csv", columns=("a", "b")))
    assert [(row.line, row.text("b")) for row in rows] == [(2, "x, y"), (4, "z")]


def test_a_line_with_a_cell_too_many_is_refused():
    with pytest.raises(ScrimpError, match=r"line 3: 3 cells under 2 headings"):
        list(read_rows("a,b\n1,2\n1,2,3\n", where="t.csv"))


def test_a_missing_column_is_named():
    with pytest.raises(ScrimpError, match='column "c" is missing'):
        list(read_rows("a,b\n1,2\n", where="t.csv", columns=("a", "c")))


def test_an_empty_text_lacks_its_columns():
    with pytest.raises(ScrimpError, match="missing"):
        list(read_rows("", where="t.csv", columns=("a",)))
