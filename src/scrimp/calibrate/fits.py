"""What `make calibrate` fits, in order, and the files inside the package that hold the results.

A fit is a document: `source` says rows, groups, table, date and command behind it, `intervals` hold the 80% interval of
measured over forecast by region, everything else is the fit's own. A forecaster reads its own file and nothing else.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from scrimp.calibrate.memory.fit import fit_document as fit_memory_document
from scrimp.calibrate.memory.grade import measured_rows
from scrimp.calibrate.memory.rows import memory_rows
from scrimp.calibrate.table import Row
from scrimp.calibrate.time.fit import fit_document as fit_time_document
from scrimp.calibrate.time.rows import time_rows
from scrimp.estimate.memory.fitted import FILE as MEMORY_FILE
from scrimp.estimate.time.fitted import FILE as TIME_FILE

Tables = Callable[[str], Sequence[Row]]
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """One forecaster's fit: its file, and how the file's content follows from the tables in calibration/."""

    name: str
    file: Path
    document: Callable[[Tables, date], Document]


def _memory(tables: Tables, today: date) -> Document:
    return fit_memory_document(measured_rows(list(memory_rows(tables("measured_memory.csv")))), today=today)


def _time(tables: Tables, today: date) -> Document:
    return fit_time_document(list(time_rows(tables("measured_time.csv"))), today=today)


FITS = (
    Fit(name="time", file=TIME_FILE, document=_time),
    Fit(name="memory", file=MEMORY_FILE, document=_memory),
)


def write_fit(fit: Fit, tables: Tables, *, today: date) -> bool:
    """Fit anew and write the file if anything but the date is different; whether it was."""
    document = fit.document(tables, today)
    if fit.file.exists() and _undated(json.loads(fit.file.read_text(encoding="utf-8"))) == _undated(document):
        return False
    fit.file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return True


def _undated(document: Document) -> dict[str, Any]:
    source = {name: value for name, value in document.get("source", {}).items() if name != "date"}
    return {**document, "source": source}
