"""Nouns to YAML: a commented spec for people, and whole plans for the hand-over; `read` reads both back exactly."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar, cast

from scrimp.core.job import JobSpec, MethodChoice
from scrimp.spec.check import flatten
from scrimp.spec.codec import dump
from scrimp.spec.fields import FIELD_EXAMPLES, FIELD_HELP
from scrimp.spec.kinds import REQUIRED, is_number, keys_of, record_in
from scrimp.spec.options import Option, method_keys, spec_options
from scrimp.spec.paths import to_folder
from scrimp.spec.quantities import quantity_of, write_quantity
from scrimp.spec.read import load_yaml
from scrimp.spec.yaml_text import block, one_line

T = TypeVar("T")

SCHEMA_LINE = "# yaml-language-server: $schema="
_HEAD = """\
# A fine-tuning job for scrimp. Lines with "# " in front show a default or an example: take the "# " away to change one.
# Paths are relative to this file. Any key can also be set for one call: scrimp plan job.yaml training.epochs=2

"""
_HELP_COLUMN = 36
_LIST_CHARS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One line of the file: a key, its value (several lines for a long list), its help; `unset` when commented out."""

    key: str
    value: str
    help: str
    unset: bool

    def text(self, indent: str) -> str:
        """The line with its comment in the common column."""
        mark = f"{indent}{'# ' if self.unset else ''}"
        first, *more = f"{self.key}: {self.value}".split("\n")
        return "\n".join([_with_help(f"{mark}{first}", self.help), *(f"{mark}{item}" for item in more)])


def commented_spec(spec: JobSpec, *, schema: str | None = None) -> str:
    """The spec as YAML with a comment on every key; keys at their default are commented out.

    `schema` is the JSON Schema's path as seen from the file, for editors. Paths are written as they are in the spec.
    `parse_spec` of the result is the same spec.
    """
    parts = [f"{SCHEMA_LINE}{schema}\n" if schema else "", _HEAD]
    values = flatten(spec)
    sections = {name: record_in(key.kind) for name, key in keys_of(JobSpec).items()}
    plain = [_entry(spec_options()[name], values[name]) for name, section in sections.items() if section is None]
    parts += [f"{entry.text('')}\n" for entry in plain]
    for name, section in sections.items():
        if section is None:
            continue
        entries = [_entry(option, values[option.key]) for option in _section(name)]
        if section is MethodChoice:
            entries += _method_entries(spec.method)
        parts.append(f"\n{_with_help(f'{name}:', FIELD_HELP[name])}\n")
        parts += [f"{entry.text('  ')}\n" for entry in entries]
    return "".join(parts)


def dump_yaml(noun: object, *, folder: Path | None = None) -> str:
    """A noun (a Plan, a JobSpec) as YAML text that `load_yaml` reads back to an equal noun.

    `folder` is where the file will lie: data paths are then written relative to it. Without it they stay as they are.
    """
    placed = noun if folder is None else to_folder(noun, folder)
    return block(dump(placed))


def _with_help(line: str, text: str) -> str:
    # Only our own blanks go: a value may end in one of Unicode's.
    line = line.rstrip(" ")
    return f"{line:<{_HELP_COLUMN}}  # {text}" if text else line


def _section(name: str) -> list[Option]:
    return [option for key, option in spec_options().items() if key.startswith(f"{name}.") and key != "method.options"]


def _entry(option: Option, value: object) -> _Entry:
    unset = value == option.default and option.default is not REQUIRED
    shown = FIELD_EXAMPLES.get(option.key, option.default) if unset else value
    name = option.key.rsplit(".", 1)[-1]
    if is_number(option.kind) and quantity_of(name) and shown is not None:
        name, shown = (
            (option.short.rsplit(".", 1)[-1], shown)
            if isinstance(shown, str)
            else write_quantity(name, cast(Decimal | float, shown))
        )
    return _Entry(key=name, value=_value_text(shown), help=option.help, unset=unset)


def _method_entries(choice: MethodChoice) -> list[_Entry]:
    """The method's own options beside its name; for `auto` only those that are set."""
    known = method_keys(choice.name)
    entries: list[_Entry] = []
    for name, key in known.items():
        given = name in choice.options
        if given or choice.name != "auto":
            value = choice.options[name] if given else key.default
            entries.append(_Entry(key=name, value=_value_text(value), help=key.help, unset=not given))
    return entries


def _value_text(value: Any) -> str:
    """A value after its key: on one line, or a long list in lines of its own."""
    if isinstance(value, tuple):
        items = cast(tuple[object, ...], value)
        if len(one_line(list(items))) > _LIST_CHARS:
            return "\n" + "\n".join(f"  - {one_line(item)}" for item in items)
        return one_line(list(items))
    return one_line(dict(cast(Mapping[str, object], value)) if isinstance(value, Mapping) else value)


__all__ = ["commented_spec", "dump_yaml", "load_yaml"]
