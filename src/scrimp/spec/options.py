"""The complete list of options: every key of a spec with its type, default, help and example.

Derived from the dataclasses, never written down a second time; the snapshot `tests/spec/options.txt` shows the result.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from scrimp import methods
from scrimp.core.errors import nearest
from scrimp.core.job import JobSpec
from scrimp.spec.fields import FIELD_EXAMPLES, FIELD_HELP
from scrimp.spec.kinds import REQUIRED, Key, choices_in, in_words, keys_of, record_in
from scrimp.spec.quantities import quantity_of, short_key
from scrimp.spec.yaml_text import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One key of a spec. `key` is its exact dotted name, `short` the one people write."""

    key: str
    short: str
    kind: Any
    default: Any
    help: str

    @property
    def example(self) -> object:
        """A value that is right: a written example, or the default."""
        return FIELD_EXAMPLES.get(self.key, self.default)

    @property
    def in_words(self) -> str:
        """What may be written."""
        quantity = quantity_of(self.key)
        return f"{in_words(self.kind)}, such as {quantity.example}" if quantity else in_words(self.kind)


@lru_cache(maxsize=1)
def spec_options() -> Mapping[str, Option]:
    """Every option of a spec by its dotted name, in the order of the dataclasses."""
    return {option.key: option for option in _options_of(JobSpec, "")}


def _options_of(kind: Any, prefix: str) -> list[Option]:
    found: list[Option] = []
    for key in keys_of(kind).values():
        dotted = f"{prefix}{key.name}"
        if record_in(key.kind) is not None:
            found += _options_of(record_in(key.kind), f"{dotted}.")
        else:
            help_text = FIELD_HELP.get(dotted, key.help)
            found.append(
                Option(
                    key=dotted, short=prefix + short_key(key.name), kind=key.kind, default=key.default, help=help_text
                )
            )
    return found


def method_keys(name: str) -> Mapping[str, Key]:
    """The options of a method; for `auto` those of all methods together.

    Raises:
        UnknownNameError: no such method.
    """
    chosen = methods.names() if name == "auto" else (name,)
    return {key.name: key for item in chosen for key in keys_of(methods.get(item).options_type).values()}


def nearest_options(key: str) -> tuple[str, ...]:
    """Dotted names like `key`: one that ends in the same word wherever it belongs, else those that look alike."""
    options = spec_options().values()
    last = key.rsplit(".", 1)[-1]
    same = tuple(item.short for item in options if last in {item.short.rsplit(".", 1)[-1], item.key.rsplit(".", 1)[-1]})
    if same:
        return same
    by_last = {item.short.rsplit(".", 1)[-1]: item.short for item in options}
    return tuple(by_last[word] for word in nearest(last, by_last, count=2))


def option_lines() -> tuple[str, ...]:
    """The complete list as text, one option a line: dotted key, short key, type, default."""
    lines = [_line(item.key, item.short, item.kind, item.default) for item in spec_options().values()]
    for name in methods.names():
        lines += [
            _line(f"method.options.{key.name} ({name})", f"method.{key.name}", key.kind, key.default)
            for key in method_keys(name).values()
        ]
    return tuple(lines)


def _line(key: str, short: str, kind: Any, default: Any) -> str:
    words = "|".join(choices_in(kind)) or in_words(kind)
    value = (
        str(default) if isinstance(default, Decimal) else one_line(default) if default is not REQUIRED else "required"
    )
    return f"{key}  [{short}]  {words}  = {value}"
