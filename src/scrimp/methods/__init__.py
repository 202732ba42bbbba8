"""One file per tuning method: what it trains, what it stores, what it allows.

The file name is the name users type. A file defines `METHOD`, an instance of a final subclass of `TuningMethod`.
"""

import importlib
from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args, get_origin

from scrimp.core.errors import SpecError, nearest, unknown_name
from scrimp.core.job import OptionValue
from scrimp.methods.method import MethodOptions, TuningMethod

_NOT_METHODS = {"__init__", "linear", "method"}


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """All methods, by listing this folder."""
    return tuple(sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem not in _NOT_METHODS))


def get(name: str) -> "TuningMethod[Any]":
    """The method of that name.

    Raises:
        UnknownNameError: no such file here.
    """
    if name not in names():
        raise unknown_name("method", name, names(), list_command=f"use one of: {', '.join(names())}, or auto")
    return importlib.import_module(f"scrimp.methods.{name}").METHOD


def options_for(name: str, values: Mapping[str, OptionValue]) -> MethodOptions:
    """The method's own options with defaults filled in and every value checked.

    Raises:
        SpecError: an unknown option (the nearest is named), a wrong type or an impossible value.
    """
    method = get(name)
    known = {item.name: item for item in fields(method.options_type)}
    for key, value in values.items():
        if key not in known:
            close = nearest(key, known)
            raise SpecError(
                what=f'method "{name}" has no option "{key}"',
                expected=(f"did you mean {' or '.join(close)}? " if close else "") + f"one of {', '.join(known)}",
                next_step=f"method: {{name: {name}, options: {{{close[0] if close else next(iter(known), '')}: ...}}}}",
            )
        _check_type(name, key, value, known[key].type)
    made = method.options_type(**{key: tuple(v) if isinstance(v, list | tuple) else v for key, v in values.items()})
    method.check(made)
    return made


def _check_type(method: str, key: str, value: OptionValue, declared: object) -> None:
    """Refuse a value that is not of the declared type: a scalar, a union of scalars, or a tuple of one kind."""
    if get_origin(declared) is tuple:
        kind = get_args(declared)[0]
        right = isinstance(value, tuple | list) and all(isinstance(item, kind) for item in value)
        wanted, example = f"a list of {kind.__name__}", f"[{value if isinstance(value, kind) else '...'}]"
    else:
        kinds = [kind for kind in get_args(declared) or (declared,) if isinstance(kind, type)]
        # A whole number is a number; true and false are none, although Python counts them as such.
        right = isinstance(value, (*kinds, int) if float in kinds else tuple(kinds))
        right = right and (bool in kinds or not isinstance(value, bool))
        wanted, example = f"a value of type {' or '.join(kind.__name__ for kind in kinds)}", "..."
    if not right:
        raise SpecError(
            what=f'option "{key}" of method "{method}" is {value!r}',
            expected=wanted,
            next_step=f"method: {{name: {method}, options: {{{key}: {example}}}}}",
        )
