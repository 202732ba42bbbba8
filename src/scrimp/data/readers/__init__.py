"""One file per file format; found by listing this folder. A file defines `READER`, a `FormatReader`."""

import importlib
from pathlib import Path

from scrimp.data.readers.reader import FormatReader

_NOT_FORMATS = {"__init__", "reader"}


def names() -> tuple[str, ...]:
    """All formats, by listing this folder."""
    return tuple(sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem not in _NOT_FORMATS))


def get(name: str) -> FormatReader:
    """The reader of that name, which must be one of `names()`."""
    return importlib.import_module(f"scrimp.data.readers.{name}").READER


def by_suffix() -> dict[str, FormatReader]:
    """Every file name ending that can be read, `.gz` ones included, with its reader."""
    found: dict[str, FormatReader] = {}
    for reader in map(get, names()):
        for suffix in reader.suffixes:
            found[suffix] = reader
            if reader.text:
                found[f"{suffix}.gz"] = reader
    return found
