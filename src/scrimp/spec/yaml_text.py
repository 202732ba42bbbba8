"""Plain values to YAML text that reads the same by YAML 1.1 and by the 1.2 core schema of `document`."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from scrimp.spec.document import read_scalar

_ENDLESS_LINE = 2**30
_PAGE = 110
_FLOW_CHARS = 88
_BREAKS = re.compile(r"[\n\r\x85\u2028\u2029]")


class _NotText:
    """Stands in for a regular expression: matches text that `document` would not read as text."""

    def match(self, text: str) -> bool:
        return not isinstance(read_scalar(text), str)


def one_line(value: object) -> str:
    """A value as it may stand after `key: ` on one line."""
    return _dump([value], flow=True).rstrip("\n")[1:-1]


def block(values: Mapping[str, Any] | Sequence[Any]) -> str:
    """A whole document: nested keys in blocks, short leaves in one line each, lists of short lists as running text."""
    return _dump(values, flow=False)


def _dump(values: object, *, flow: bool) -> str:
    import yaml

    kind = _dumper(flow=flow)
    width = _ENDLESS_LINE if flow else _PAGE
    text: str = yaml.dump(values, Dumper=kind, width=width, allow_unicode=True, sort_keys=False)
    return text


@lru_cache(maxsize=2)
def _dumper(*, flow: bool) -> Any:
    """PyYAML's safe dumper that quotes what either YAML version would take for a number, and breaks no line.

    `flow`: everything on one line; otherwise only short leaves of the tree.
    """
    import yaml

    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    def text(dumper: Any, value: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style='"' if _BREAKS.search(value) else None)

    def sequence(dumper: Any, value: Sequence[Any]) -> Any:
        node = dumper.represent_sequence("tag:yaml.org,2002:seq", value)
        return _styled(node, node.value, flow=flow)

    def mapping(dumper: Any, value: Mapping[str, Any]) -> Any:
        node = dumper.represent_mapping("tag:yaml.org,2002:map", value.items())
        return _styled(node, [part for pair in node.value for part in pair], flow=flow)

    kind: Any = type("ExactDumper", (base,), {"ignore_aliases": lambda self, data: True})  # pyright: ignore[reportUnknownLambdaType]
    kind.add_implicit_resolver("tag:yaml.org,2002:float", _NotText(), None)
    kind.add_representer(str, text)
    for listed in (list, tuple):
        kind.add_representer(listed, sequence)
    kind.add_representer(dict, mapping)
    # Money is text in our files, so that 0.10 stays 0.10; `codec` writes it so too.
    kind.add_representer(Decimal, lambda dumper, value: dumper.represent_str(f"{value:f}"))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType, reportUnknownMemberType]
    return kind


def _styled(node: Any, children: Sequence[Any], *, flow: bool) -> Any:
    """Leaves of the tree go on one line only while that line stays short; pairs follow one another."""
    leaf = all(isinstance(child.value, str) for child in children)
    pairs = all(child.id == "sequence" and child.flow_style for child in children)
    short = leaf and sum(len(child.value) + 4 for child in children) <= _FLOW_CHARS
    node.flow_style = flow or short or pairs
    return node
