"""Reading the CSV tables of this room: every refusal names the file, the line and the column."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.resources import files

from scrimp.core.errors import ScrimpError

_LEADING_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?)")


def read_text(name: str) -> str:
    """The text of one file of `catalog/data`, from a checkout or an installed wheel."""
    return files("scrimp.catalog").joinpath("data", name).read_text(encoding="utf-8")


def refusal(where: str, line: int, *, what: str, expected: str) -> ScrimpError:
    """The error for a line that cannot be used."""
    return ScrimpError(
        what=f"{where}, line {line}: {what}", expected=expected, next_step=f"correct that line of {where}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table, by column name. An empty cell is not established, never zero."""

    where: str
    line: int
    cells: Mapping[str, str]

    def text(self, column: str) -> str:
        """The cell, stripped; empty when it is empty or the column is not there."""
        return self.cells.get(column, "").strip()

    def required(self, column: str) -> str:
        """The cell.

        Raises:
            ScrimpError: it is empty.
        """
        value = self.text(column)
        if not value:
            raise self.refuse(f'"{column}" is empty', expected="a value: this column is mandatory")
        return value

    def number(self, column: str) -> float | None:
        """The number a cell begins with (`600 (bridge, pairs)` is 600), None when the cell is empty or `n/a`.

        Raises:
            ScrimpError: the cell holds text that begins with no number.
        """
        value = self.text(column)
        if not value or value.lower() == "n/a":
            return None
        match = _LEADING_NUMBER.match(value)
        if match is None:
            raise self.refuse(f'"{column}" is "{value}"', expected="a number first, words after it")
        return float(match.group(1))

    def required_number(self, column: str) -> float:
        """As `number`, for a cell that may be neither empty nor zero.

        Raises:
            ScrimpError: empty, not a number, or zero.
        """
        self.required(column)
        value = self.number(column)
        if not value:
            raise self.refuse(f'"{column}" is "{self.text(column)}"', expected="a number above zero")
        return value

    def day(self, column: str) -> date | None:
        """The cell as an ISO date, None when it is empty.

        Raises:
            ScrimpError: not a date.
        """
        value = self.text(column)
        if not value:
            return None
        try:
            return date.fromisoformat(value)
        except ValueError as error:
            raise self.refuse(f'"{column}" is "{value}"', expected="a date as 2026-08-22") from error

    def refuse(self, what: str, *, expected: str) -> ScrimpError:
        """The error for this line."""
        return refusal(self.where, self.line, what=what, expected=expected)


def read_rows(text: str, *, where: str, columns: Sequence[str] = ()) -> Iterator[Row]:
    """The lines of a CSV text that has at least `columns`.

    Raises:
        ScrimpError: a column is missing, or a line has more or fewer cells than the header.
    """
    reader = csv.reader(text.splitlines(keepends=True))
    header = next(reader, [""])
    for column in columns:
        if column not in header:
            raise refusal(
                where, 1, what=f'column "{column}" is missing', expected=f"a header with {', '.join(columns)}"
            )
    for values in reader:
        if not values:
            continue
        if len(values) != len(header):
            raise refusal(
                where,
                reader.line_num,
                what=f"{len(values)} cells under {len(header)} headings",
                expected="one cell for every column; quote a cell that holds a comma",
            )
        yield Row(where=where, line=reader.line_num, cells=dict(zip(header, values, strict=True)))
