"""Forecast: whole tables of runs at once, memory or speed, row by row."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scrimp.calibrate.memory.table import forecast_memory_row
from scrimp.calibrate.row_forecast import RowForecast
from scrimp.calibrate.table import row_key
from scrimp.calibrate.time.table import forecast_time_row
from scrimp.core.errors import DataError, ScrimpError
from scrimp.workflows.world import World

Kind = Literal["memory", "time"]
COLUMNS = ("predicted", "low", "high", "safe_need_gib", "fits", "basis")
# Columns without which a table is of another kind; the rest may be missing.
_NEEDED: Mapping[Kind, tuple[str, ...]] = {"memory": ("model", "method"), "time": ("model", "method")}
_KEYS = ("id", "row_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """A row that could not be forecast: its line in the file, its key, and why."""

    line: int
    key: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForecast:
    """The forecasts in the order of the rows; `key_column` is what the table calls its key."""

    kind: Kind
    key_column: str
    rows: tuple[RowForecast, ...]
    bad: tuple[BadRow, ...]


def forecast_table(
    path: Path, *, kind: Kind, world: World, on_row: Callable[[int, int], None] = lambda done, of: None
) -> TableForecast:
    """Every row of a CSV file with the columns of the measured tables (docs/how-to/forecast-a-table.md).

    A row that cannot be forecast is told in `bad` and stops nothing. `on_row` is told how many of how many are done.

    Raises:
        DataError: no such file, no CSV, no rows, or columns of something else.
    """
    cells = _read(world.cwd / path, kind)
    one = forecast_memory_row if kind == "memory" else forecast_time_row
    found: list[RowForecast] = []
    bad: list[BadRow] = []
    for line, row in cells:
        try:
            found.append(one(row))
        except ScrimpError as error:
            bad.append(BadRow(line=line, key=row_key(row), reason=f"{error.what}; {error.next_step}"))
        on_row(len(found) + len(bad), len(cells))
    key_column = next((name for name in _KEYS if name in cells[0][1]), _KEYS[0])
    return TableForecast(kind=kind, key_column=key_column, rows=tuple(found), bad=tuple(bad))


def as_csv(table: TableForecast) -> str:
    """The forecasts as CSV: the key, then `predicted, low, high, safe_need_gib, fits, basis`."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow((table.key_column, *COLUMNS))
    for row in table.rows:
        need = "" if row.safe_need_gib is None else f"{row.safe_need_gib:.4f}"
        fits = "" if row.fits is None else str(row.fits).lower()
        writer.writerow((row.key, *(f"{x:.4f}" for x in (row.predicted, row.low, row.high)), need, fits, row.basis))
    return file.getvalue()


def _read(path: Path, kind: Kind) -> Sequence[tuple[int, Mapping[str, str]]]:
    """(line, cells) of every row; a byte order mark and missing cells at the end are forgiven."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, restval="")
            rows = [(reader.line_num, _named(row)) for row in reader]
            columns = reader.fieldnames or ()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            what=f"{path} cannot be read: {error.strerror if isinstance(error, OSError) else error}",
            expected="a CSV file in UTF-8 with a header",
            next_step=f"scrimp forecast --{kind} rows.csv",
        ) from error
    missing = [name for name in _NEEDED[kind] if name not in columns]
    if missing:
        raise DataError(
            what=f"{path} has no column {' and '.join(missing)}",
            expected=f"the columns of calibration/measured_{kind}.csv; blanks are allowed",
            next_step="see docs/how-to/forecast-a-table.md for the columns that matter",
        )
    if not rows:
        raise DataError(
            what=f"{path} has a header and no rows",
            expected="one run a row",
            next_step=f"scrimp forecast --{kind} rows.csv",
        )
    return rows


def _named(row: Mapping[str | None, str | list[str]]) -> dict[str, str]:
    """Cells by column; those beyond the header are dropped."""
    return {name: value for name, value in row.items() if name is not None and isinstance(value, str)}
