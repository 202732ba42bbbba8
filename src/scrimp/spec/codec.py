"""Nouns to plain JSON values and back, with every field checked on the way in.

The one place where files (plan.yaml, resolved.json, events.jsonl, the ledger's JSON columns) become frozen dataclasses.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

from scrimp.core.errors import SpecError

T = TypeVar("T")


@lru_cache(maxsize=64)
def adapter(kind: Any) -> Any:
    """pydantic's validator of a dataclass, built once."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def dump(noun: object) -> dict[str, Any]:
    """A noun as JSON-ready values: Decimals and dates as text, tuples as lists."""
    return adapter(type(noun)).dump_python(noun, mode="json")


def load(kind: type[T], values: Mapping[str, Any], *, where: str) -> T:
    """A noun of type `kind` out of `values`, or every field that is wrong.

    Raises:
        SpecError: a value is missing, of the wrong type or impossible; `where` names the file in the message.
    """
    from pydantic import ValidationError

    try:
        return adapter(kind).validate_python(values)
    except ValidationError as error:
        lines = [f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}" for item in error.errors()]
        raise SpecError(
            what=f"{where} does not hold a whole {kind.__name__}:\n  " + "\n  ".join(lines),
            expected=f"a file written by scrimp {_writer(kind)}",
            next_step="write it again, or undo the edit in the fields named above",
        ) from error


def dump_json(noun: object, *, indent: int | None = None) -> str:
    """A noun as JSON text."""
    return adapter(type(noun)).dump_json(noun, indent=indent).decode()


def load_json(kind: type[T], text: str | bytes, *, where: str) -> T:
    """A noun out of JSON text.

    Raises:
        SpecError: not JSON, or not this noun.
    """
    import json

    try:
        values = json.loads(text)
    except ValueError as error:
        raise SpecError(
            what=f"{where} is not valid JSON: {error}",
            expected=f"a file written by scrimp {_writer(kind)}",
            next_step="write it again",
        ) from error
    return load(kind, values, where=where)


def _writer(kind: type[object]) -> str:
    if kind.__name__ == "Corrections":
        return "calibrate"
    return "run" if kind.__name__ in {"ResolvedJob", "RunEvent", "RunRecord"} else "plan"
