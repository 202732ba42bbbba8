"""YAML text to a tree that remembers where every value was written.

Scalars are read by the YAML 1.2 core schema, not by PyYAML's 1.1: `on`, `no` and `12:30` are words, `1e-3` is a number.
Underscores in numbers (`10_000`) are allowed. Tags are refused: a spec holds data and no objects.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from scrimp.core.job import Scalar
from scrimp.spec.places import Mistake, Place, spec_error
from scrimp.spec.syntax import split_lines, syntax_mistake

_NULL = re.compile(r"|~|null|Null|NULL")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?\d[\d_]*")
_BASED_INT = re.compile(r"0x[\da-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.\d+|\d[\d_]*(\.[\d_]*)?)([eE][-+]?\d+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
# Longer digit strings count nothing, and int() refuses them above 4300 digits.
_MAX_DIGITS = 400
_MAX_DEPTH = 60
_YAML = "tag:yaml.org,2002:"
_UNTAGGED = {f"{_YAML}str", f"{_YAML}map", f"{_YAML}seq"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A scalar."""

    value: Scalar
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list."""

    items: "tuple[Node, ...]"
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A mapping; `keys` says where each key was written."""

    entries: "Mapping[str, Node]"
    keys: Mapping[str, Place]
    place: Place


Node = Leaf | Items | Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The tree of one text (None when it holds nothing) and the mistakes that did not stop the reading."""

    root: Node | None
    mistakes: tuple[Mistake, ...]


def parse_document(text: str, *, source: str) -> Document:
    """Read one YAML document; duplicate keys, tags and keys that are no words are collected as mistakes.

    Raises:
        SpecError: the text is no YAML; says where and, for the usual slips, what to write.
    """
    import yaml

    lines = split_lines(text)
    too_deep = _too_deep(text)
    if too_deep is not None:
        place = Place(source=source, line=too_deep + 1, text=lines[too_deep])
        what, example = "brackets or lists too deep in one another", "gpus: [A100, H100]"
        raise spec_error([Mistake(place=place, what=what, expected=f"{_MAX_DEPTH} levels at most", example=example)])
    try:
        composed = _compose(text)
    except yaml.YAMLError as error:
        raise spec_error([syntax_mistake(error, text=text, source=source)]) from error
    if composed is None:
        return Document(root=None, mistakes=())
    reader = _Reader(source=source, lines=lines)
    root = reader.node(composed)
    nothing = isinstance(root, Leaf) and root.value is None
    return Document(root=None if nothing else root, mistakes=tuple(reader.mistakes))


def read_scalar(text: str) -> Scalar:
    """A plain (unquoted) scalar by the YAML 1.2 core schema."""
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if len(text) <= _MAX_DIGITS:
        if _INT.fullmatch(text):
            return int(text.replace("_", ""))
        if _BASED_INT.fullmatch(text):
            return int(text, 0)
        if _FLOAT.fullmatch(text):
            return float(text.replace("_", ""))
    return float(text.replace(".", "")) if _NOT_FINITE.fullmatch(text) else text


@lru_cache(maxsize=2)
def _loader(*, compiled: bool) -> Any:
    """PyYAML's safe loader without implicit types: every plain scalar arrives as the text that was written."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader) if compiled else yaml.SafeLoader
    return type("TextLoader", (base,), {"yaml_implicit_resolvers": {}})


def _compose(text: str) -> Any:
    import yaml

    compose: Any = yaml.compose  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  its stub is partial
    try:
        return compose(text, Loader=_loader(compiled=True))
    except yaml.YAMLError:
        # libyaml reads large plans ten times faster, but words its errors unlike PyYAML, whose words syntax.py knows.
        return compose(text, Loader=_loader(compiled=False))


def _too_deep(text: str) -> int | None:
    """The line (from 0) where the levels become too many.

    Composing recurses, in libyaml on the C stack, which ten thousand levels overflow; parsing to events does not.
    """
    import yaml

    depth = 0
    parse: Any = yaml.parse  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  its stub is partial
    try:
        for event in parse(text, Loader=_loader(compiled=True)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _MAX_DEPTH:
                return int(event.start_mark.line)
    except yaml.YAMLError as error:
        # libyaml looks ahead and has a limit of its own. Any other error is reported when the text is composed.
        mark: Any = getattr(error, "problem_mark", None)
        if mark is not None and "nesting depth" in str(error):
            return int(mark.line)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """One pass over PyYAML's nodes."""

    source: str
    lines: list[str]
    mistakes: list[Mistake] = field(default_factory=list[Mistake])
    # A value that is referred to twice is read once; one that holds itself is found here while it is being read.
    done: dict[int, Node | None] = field(default_factory=dict[int, Node | None])

    def node(self, raw: Any) -> Node:
        place = self.place(raw)
        if id(raw) not in self.done:
            self.done[id(raw)] = None
            self.done[id(raw)] = self.made(raw, place)
        known = self.done[id(raw)]
        if known is None:
            self.note(place, "a value that contains itself", "a value without a * reference to itself", "epochs: 2")
            return Leaf(value="*", place=place)
        return known

    def made(self, raw: Any, place: Place) -> Node:
        import yaml

        if raw.tag not in _UNTAGGED:
            untagged = re.sub(r"!\S*\s*", "", place.text).strip()
            tag = str(raw.tag).replace(_YAML, "!!")
            self.note(place, f"the tag {tag}; a spec holds data alone", "a value without a tag", untagged)
        if isinstance(raw, yaml.ScalarNode):
            text = str(raw.value)
            return Leaf(value=text if raw.style else read_scalar(text), place=place)
        if isinstance(raw, yaml.SequenceNode):
            return Items(items=tuple(self.node(item) for item in raw.value), place=place)
        return self.table(raw, place)

    def table(self, raw: Any, place: Place) -> Table:
        entries: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        for raw_key, raw_value in raw.value:
            key, key_place = raw_key.value, self.place(raw_key)
            if not isinstance(key, str):
                self.note(key_place, "a list or mapping in the place of a key", "a word as the key", "epochs: 2")
            elif key in entries:
                first = f'the key "{key}" a second time (first in line {keys[key].line})'
                self.note(key_place, first, "each key once", f"only one of:  {place_line(keys[key], key_place)}")
            else:
                entries[key], keys[key] = self.node(raw_value), key_place
        return Table(entries=entries, keys=keys, place=place)

    def place(self, raw: Any) -> Place:
        line: int = raw.start_mark.line
        text = self.lines[line] if line < len(self.lines) else ""
        return Place(source=self.source, line=line + 1, column=raw.start_mark.column + 1, text=text)

    def note(self, place: Place, what: str, expected: str, example: str) -> None:
        self.mistakes.append(Mistake(place=place, what=what, expected=expected, example=example))


def place_line(*places: Place) -> str:
    """The lines of some places side by side, each once."""
    return "  or  ".join(dict.fromkeys(place.text.strip() for place in places))
