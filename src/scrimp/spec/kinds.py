"""What the dataclasses say about a key: its type, its default, the words for what it takes.

Options have one home, the dataclasses of `core` and `methods`; reading, writing and the schema all ask here.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from scrimp.core.job import DataSpec, MethodChoice

# A scalar in the place of such a mapping is short for this one key of it: `method: lora`, `data: rows.jsonl`.
SHORT_FOR: Mapping[object, str] = {DataSpec: "path", MethodChoice: "name"}
# Keys that such a mapping does not know go into this one: `method: {name: lora, rank: 8}`.
REST: Mapping[object, str] = {MethodChoice: "options"}

REQUIRED = dataclasses.MISSING

_WORDS: Mapping[object, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    Decimal: "an amount of money",
    bool: "true or false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One field: its type and its default, `REQUIRED` when there is none; `help` from the field's metadata."""

    name: str
    kind: Any
    default: Any
    help: str = ""


@lru_cache(maxsize=128)
def keys_of(kind: Any) -> Mapping[str, Key]:
    """The fields of a dataclass (or of `Estimate[float]` and the like) with their types resolved."""
    origin = typing.get_origin(kind) or kind
    hints = typing.get_type_hints(origin)
    bound = dict(zip(getattr(origin, "__parameters__", ()), typing.get_args(kind), strict=False))
    return {
        item.name: Key(
            name=item.name,
            kind=bound.get(hints[item.name], hints[item.name]),
            default=item.default if item.default_factory is dataclasses.MISSING else item.default_factory(),
            help=str(item.metadata.get("help", "")),
        )
        for item in dataclasses.fields(origin)
    }


def branches(kind: Any) -> tuple[Any, ...]:
    """The members of a union without None; the type itself when it is no union."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return tuple(part for part in typing.get_args(kind) if part is not type(None))
    return (kind,)


def is_optional(kind: Any) -> bool:
    """Whether an empty value is one of the possible ones."""
    return type(None) in typing.get_args(kind)


def record_in(kind: Any) -> Any:
    """The dataclass among the branches, or None."""
    for part in branches(kind):
        if dataclasses.is_dataclass(typing.get_origin(part) or part):
            return part
    return None


def element_in(kind: Any) -> Any:
    """X of `tuple[X, ...]` among the branches, or None."""
    for part in branches(kind):
        if typing.get_origin(part) is tuple and typing.get_args(part)[-1] is Ellipsis:
            return typing.get_args(part)[0]
    return None


def choices_in(kind: Any) -> tuple[str, ...]:
    """The words of a Literal among the branches, or nothing."""
    return tuple(
        word for part in branches(kind) if typing.get_origin(part) is typing.Literal for word in typing.get_args(part)
    )


def is_number(kind: Any) -> bool:
    """Whether a number may stand here."""
    return any(part in (int, float, Decimal) for part in branches(kind))


def in_words(kind: Any) -> str:
    """What a value of this type looks like, for messages: `a whole number, or empty`."""
    parts: list[str] = []
    for part in branches(kind):
        if choices_in(part):
            parts.append("one of " + ", ".join(choices_in(part)))
        elif element_in(part) is not None:
            parts.append(f"a list; each entry {in_words(element_in(part))}")
        elif record_in(part) is not None:
            parts.append("keys out of " + ", ".join(keys_of(part)))
        else:
            parts.append(_WORDS.get(part, "keys and values"))
    if is_optional(kind):
        parts.append("null")
    return " or ".join(dict.fromkeys(parts))
