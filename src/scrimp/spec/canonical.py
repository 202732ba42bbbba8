"""Friendly writing to exact keys: a tree as people write it becomes the tree of the dataclass, places kept.

limits: {budget: 5 USD, deadline: 12h}   ->  limits: {budget_usd: 5, deadline_s: 43200}
market: {gpus: A100}                     ->  market: {gpus: [A100]}
method: {name: lora, rank: 8}            ->  method: {name: lora, options: {rank: 8}}
method: lora                             ->  method: {name: lora}
training:                                ->  training: {}
"""

import shlex
from dataclasses import dataclass, field, replace
from typing import Any

from scrimp.core.errors import nearest
from scrimp.spec.document import Items, Leaf, Node, Table, place_line, read_scalar
from scrimp.spec.kinds import REST, SHORT_FOR, Key, element_in, is_number, is_optional, keys_of, record_in
from scrimp.spec.options import nearest_options, spec_options
from scrimp.spec.places import Mistake, Place
from scrimp.spec.quantities import quantity_of, short_key
from scrimp.spec.yaml_text import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Canon:
    """One pass over a tree; what is wrong is collected in `mistakes` and left out of the result."""

    mistakes: list[Mistake] = field(default_factory=list[Mistake])

    def node(self, node: Node, kind: Any, *, path: str) -> Node | None:
        """The exact form of a value of that type; None when nothing can be made of it."""
        record = record_in(kind)
        if isinstance(node, Leaf) and node.value is None and is_optional(kind):
            return node
        if record is not None:
            return self._record(node, record, path=path)
        if element_in(kind) is not None:
            return self._list(node, element_in(kind), path=path)
        return node

    def _record(self, node: Node, record: Any, *, path: str) -> Node | None:
        if isinstance(node, Table):
            return self._table(node, record, path=path)
        short = SHORT_FOR.get(record)
        if isinstance(node, Leaf) and node.value is None:
            return Table(entries={}, keys={}, place=node.place)
        if isinstance(node, Leaf) and short:
            return Table(entries={short: node}, keys={short: node.place}, place=node.place)
        self.mistakes.append(
            Mistake(
                place=node.place,
                what=f"{path or 'the spec'} is {said(node)}",
                expected=f"keys and values; the keys are {', '.join(_shown_keys(record))}",
                example=_mapping_example(record, path=path, text=node.value if isinstance(node, Leaf) else None),
            )
        )
        return None

    def _list(self, node: Node, kind: Any, *, path: str) -> Node:
        if isinstance(node, Leaf):
            return Items(items=() if node.value is None else (node,), place=node.place)
        if isinstance(node, Items):
            made = [self.node(item, kind, path=f"{path}[{index}]") for index, item in enumerate(node.items)]
            return replace(node, items=tuple(item for item in made if item is not None))
        return node

    def _table(self, table: Table, record: Any, *, path: str) -> Table:
        entries: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        rest: dict[str, Node] = {}
        rest_keys: dict[str, Place] = {}
        for written, node in table.entries.items():
            place = table.keys[written]
            key = find_key(record, written)
            if key is None and record in REST:
                rest[written], rest_keys[written] = node, place
            elif key is None:
                self.mistakes.append(unknown_key(record, written, path=path, place=place))
            elif key.name in entries:
                self.mistakes.append(_twice(key.name, written, first=keys[key.name], second=place))
            else:
                keys[key.name] = place
                made = self._value(node, key, written=written, path=_dotted(path, key.name))
                if made is not None:
                    entries[key.name] = made
        if rest:
            name = REST[record]
            keys.setdefault(name, next(iter(rest_keys.values())))
            entries[name] = self._joined(entries.get(name), rest, rest_keys, place=keys[name])
        return Table(entries=entries, keys=keys, place=table.place)

    def _joined(self, given: Node | None, rest: dict[str, Node], keys: dict[str, Place], *, place: Place) -> Node:
        """Loose keys and the mapping that they belong into as one mapping."""
        if not isinstance(given, Table):
            return Table(entries=rest, keys=keys, place=place)
        for name in rest.keys() & given.keys.keys():
            self.mistakes.append(_twice(name, name, first=given.keys[name], second=keys[name]))
        return Table(entries={**rest, **given.entries}, keys={**keys, **given.keys}, place=given.place)

    def _value(self, node: Node, key: Key, *, written: str, path: str) -> Node | None:
        quantity = quantity_of(key.name) if is_number(key.kind) else None
        if quantity is None or not isinstance(node, Leaf):
            return self.node(node, key.kind, path=path)
        value = node.value
        bare = isinstance(value, int | float) and not isinstance(value, bool)
        try:
            if quantity.needs_unit and written != key.name and (bare or _is_number(value)):
                raise ValueError(f"{path} is {value}, without a unit")
            number = quantity.read(value) if isinstance(value, str) else value
        except ValueError as error:
            expected = f"a number with its unit, such as {quantity.example}"
            example = example_line(path, quantity.example, place=node.place, written=written)
            what = str(error).split(";", maxsplit=1)[0]
            self.mistakes.append(Mistake(place=node.place, what=what, expected=expected, example=example))
            return None
        # Money stays decimal text on its way, so that 0.1 is 0.1; a bare number of dollars is its shortest text.
        exact = number if isinstance(number, float | int) or number is None else str(number)
        return replace(node, value=str(exact) if bare and "_usd" in quantity.suffix else exact)


def find_key(record: Any, written: str) -> Key | None:
    """The field of a dataclass by its exact name or, for a quantity, by its name without the unit."""
    keys = keys_of(record)
    if written in keys:
        return keys[written]
    return next((key for key in keys.values() if is_number(key.kind) and short_key(key.name) == written), None)


def unknown_key(record: Any, written: str, *, path: str, place: Place) -> Mistake:
    """The mistake for a key that the mapping does not have: the nearest one of it, or where such a key belongs."""
    here = f'{path} has no key "{written}"' if path else f'the spec has no key "{written}"'
    own = _shown_keys(record)
    elsewhere = nearest_options(written)
    close = nearest(written, (*own, *(name.rsplit(".", 1)[-1] for name in elsewhere)), count=1)
    if close and close[0] in own:
        dotted, nested = _exact(_dotted(path, close[0])), False
        expected = f"did you mean {' or '.join(nearest(written, own, count=2))}?"
    elif elsewhere:
        dotted, nested = _exact(elsewhere[0]), True
        expected = f"did you mean {' or '.join(elsewhere)}?"
    else:
        example = _mapping_example(record, path=path, text=None)
        return Mistake(place=place, what=here, expected=f"one of {', '.join(own)}", example=example)
    return Mistake(place=place, what=here, expected=expected, example=_example(dotted, place=place, nested=nested))


def example_line(path: str, value: object, *, place: Place, written: str | None = None) -> str:
    """A correct line: `epochs: 1.0` for a file, `training.epochs=1.0` for an override, `--budget 5` for a flag."""
    text = one_line(value)
    if place.source.startswith("--"):
        return f"{place.source} {shlex.quote(str(value))}"
    if place.line is None:
        return f"{_short_path(path)}={text}"
    return f"{written or short_key(path.rsplit('.', 1)[-1])}: {text}"


def said(node: Node) -> str:
    """What was written, in a word or two: `"two"`, `a list`, `empty`."""
    if isinstance(node, Table):
        return "a mapping"
    if isinstance(node, Items):
        return "a list"
    if node.value is None:
        return "empty"
    text = f'"{node.value}"' if isinstance(node.value, str) else one_line(node.value)
    return text if len(text) <= 60 else f"{text[:50]}..."


def _exact(dotted: str) -> str:
    """The exact dotted name of a key that may be written short."""
    return next((item.key for item in spec_options().values() if dotted in (item.key, item.short)), dotted)


def _short_path(path: str) -> str:
    option = spec_options().get(path)
    return option.short if option else path


def _example(dotted: str, *, place: Place, nested: bool) -> str:
    option = spec_options().get(dotted)
    if option is None:
        # A section: show its first key.
        nested = True
        option = next((item for item in spec_options().values() if item.key.startswith(f"{dotted}.")), None)
    if option is None:
        return f"{dotted.rsplit('.', 1)[-1]}: ..."
    dotted = option.key
    if place.line is None or not nested:
        return example_line(dotted, option.example, place=place)
    section, _, last = option.short.rpartition(".")
    return f"{section}: {{{last}: {one_line(option.example)}}}" if section else f"{last}: {one_line(option.example)}"


def _mapping_example(record: Any, *, path: str, text: object) -> str:
    """A correct mapping with one key; `epochs:2` as the value tells that only a space is missing."""
    if isinstance(text, str) and (parts := text.split(":", 1))[0] in _shown_keys(record) and len(parts) == 2:
        return f"{parts[0]}: {parts[1].strip()}     (a space after the colon)"
    key = next(iter(keys_of(record)))
    option = spec_options().get(_dotted(path, key))
    value = one_line(option.example) if option else "..."
    return f"{path}: {{{short_key(key)}: {value}}}" if path else f"{key}: {value}"


def _shown_keys(record: Any) -> tuple[str, ...]:
    """The keys of a mapping as people write them."""
    return tuple(short_key(key.name) if is_number(key.kind) else key.name for key in keys_of(record).values())


def _is_number(value: object) -> bool:
    return isinstance(value, str) and isinstance(read_scalar(value.strip()), int | float)


def _twice(name: str, written: str, *, first: Place, second: Place) -> Mistake:
    return Mistake(
        place=second,
        what=f'"{written}" gives {name} a second time (first in line {first.line})',
        expected="each value once",
        example=f"only one of:  {place_line(first, second)}",
    )


def _dotted(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
