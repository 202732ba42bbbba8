"""CSV and TSV with a header line."""

import csv
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from scrimp.core.errors import DataError
from scrimp.data.readers.reader import FormatReader, lines_of

# A column name is a word or three; a first line with longer cells is data.
_LONGEST_COLUMN_NAME = 64


class CsvTable(FormatReader):
    """`.csv` (comma, or semicolon when the header has no comma) and `.tsv`."""

    suffixes = (".csv", ".tsv")
    text = True

    def rows(self, path: Path, *, label: str) -> Iterator[tuple[int | None, Mapping[str, object]]]:
        """Rows by the names of the header; every cell is text."""
        lines = (text for _, text in lines_of(path, label=label))
        first = next(lines, "")
        table = csv.reader(chain([first], lines), delimiter=_delimiter(path, first), strict=True)
        header: list[str] | None = None
        starts_at = 1
        try:
            for cells in table:
                if not cells:
                    pass
                elif header is None:
                    header = _checked_header(cells, label=label)
                elif len(cells) != len(header):
                    raise _ragged(cells, header, where=f"{label}, line {starts_at}")
                else:
                    yield starts_at, dict(zip(header, cells, strict=True))
                starts_at = table.line_num + 1
        except csv.Error as error:
            raise DataError(
                what=f"{label}, line {starts_at} is not valid CSV: {error}",
                expected='cells that hold a comma, a quote or a line end in quotes, a quote inside them doubled ("")',
                next_step="repair that line, or use a .jsonl file, where text needs no quoting rules",
            ) from error


def _delimiter(path: Path, header: str) -> str:
    if ".tsv" in [suffix.lower() for suffix in path.suffixes]:
        return "\t"
    return ";" if ";" in header and "," not in header else ","


def _checked_header(cells: list[str], *, label: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    reason = ""
    if "" in names:
        reason = "it has an empty cell"
    elif len(set(names)) < len(names):
        reason = "it has the same cell twice"
    elif any(len(name) > _LONGEST_COLUMN_NAME or "\n" in name for name in names):
        reason = "its cells are too long for column names"
    elif all(name.replace(".", "", 1).lstrip("-").isdigit() for name in names):
        reason = "its cells are numbers"
    if reason:
        raise DataError(
            what=f"{label}, line 1 is no header: {reason}: {', '.join(cells)[:80]}",
            expected="the first line to name the columns",
            next_step=f"put a line such as prompt,completion at the top of {label}",
        )
    return names


def _ragged(cells: list[str], header: list[str], *, where: str) -> DataError:
    return DataError(
        what=f"{where} has {len(cells)} cells, the header has {len(header)} ({', '.join(header)})",
        expected="as many cells in every line as in the header",
        next_step="put cells that hold a comma in quotes",
    )


READER = CsvTable()
