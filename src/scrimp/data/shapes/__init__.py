"""One file per row shape; found by listing this folder. A file defines `SHAPE`, a `RowShape`.

The file name is the name users type as `data.shape`.
"""

import importlib
import json
from collections.abc import Sequence
from pathlib import Path

from scrimp.core.errors import DataError
from scrimp.data.row import SourceRow
from scrimp.data.shapes.shape import RowShape

_NOT_SHAPES = {"__init__", "shape"}
# Where columns of several shapes stand side by side, the one that says more about the turns wins: copies of a
# conversation as plain `text` are common, the opposite is not.
_ORDER = ("messages", "sharegpt", "alpaca", "prompt_completion", "text")


def names() -> tuple[str, ...]:
    """All shapes, by listing this folder, those tried first at the front."""
    found = [p.stem for p in Path(__file__).parent.glob("*.py") if p.stem not in _NOT_SHAPES]
    rank = {name: index for index, name in enumerate(_ORDER)}
    return tuple(sorted(found, key=lambda name: (rank.get(name, len(rank)), name)))


def get(name: str) -> RowShape:
    """The shape of that name, which must be one of `names()`."""
    return importlib.import_module(f"scrimp.data.shapes.{name}").SHAPE


def recognise(rows: Sequence[SourceRow], *, label: str) -> RowShape:
    """The shape of a data set, from its first rows: the first shape that knows every one of them.

    Raises:
        DataError: no shape knows the rows; the message shows their columns and an example of each shape.
    """
    shapes = [get(name) for name in names()]
    for shape in shapes:
        if all(shape.recognises(row) for row in rows):
            return shape
    for shape in shapes:
        if shape.recognises(rows[0]):
            odd = next(row for row in rows if not shape.recognises(row))
            raise DataError(
                what=f"{label} mixes shapes: its first row is {shape.name}, but {odd.place} has the columns "
                f"{', '.join(odd.values) or '(none)'}",
                expected=f"every row to have {shape.columns}",
                next_step="split the file by shape, or rename the columns of the odd rows",
            )
    examples = "\n".join(f"  {shape.name}: {json.dumps(shape.example, ensure_ascii=False)}" for shape in shapes)
    columns = dict.fromkeys(column for row in rows for column in row.values)
    raise DataError(
        what=f"the shape of {label} is not recognised; its columns are: {', '.join(columns) or '(none)'}",
        expected=f"rows of one of these shapes\n{examples}",
        next_step="rename the columns; in a CSV file, check that the first line names them",
    )
