"""One file per engine; the file name is the name users type. A file defines `ENGINE`, its engine class."""

import importlib
from pathlib import Path

from scrimp.core.errors import unknown_name
from scrimp.launch.engine import Engine


def names() -> tuple[str, ...]:
    """All engines, by listing this folder."""
    return tuple(sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__"))


def get(name: str) -> type[Engine]:
    """The engine class of that name.

    Raises:
        UnknownNameError: no such file here.
    """
    if name not in names():
        raise unknown_name("engine", name, names(), list_command=f"use one of: {', '.join(names())}")
    return importlib.import_module(f"scrimp.launch.engines.{name}").ENGINE
