"""`training.epochs=2`: single values of a spec changed from the command line.

The value replaces what stands at the key: `method=qlora` is short for `method.name=qlora` and keeps the options of the
file, `method={name: qlora}` replaces the whole entry. Brackets and quotes are read as YAML, anything else as one plain
scalar, so that colons and # need no quoting twice. Values that come from flags instead are text as it stands.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from scrimp.core.job import JobSpec
from scrimp.spec.canonical import Canon, find_key, unknown_key
from scrimp.spec.document import Items, Leaf, Node, Table, parse_document, read_scalar
from scrimp.spec.kinds import REST, SHORT_FOR, Key, record_in
from scrimp.spec.places import Mistake, Place

_READ_AS_YAML = ("[", "{", '"', "'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value for one dotted key, from an override or a flag."""

    key: str
    node: Node
    place: Place


def parse_override(text: str) -> Setting | Mistake:
    """Read `key=value`.

    Raises:
        SpecError: the value begins like YAML and is none.
    """
    place = Place(source=f'override "{text}"')
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        return Mistake(
            place=place, what="no key=value pair", expected="a dotted key, =, a value", example="training.epochs=2"
        )
    value = value.strip()
    if not value.startswith(_READ_AS_YAML):
        return Setting(key=key.strip(), node=Leaf(value=read_scalar(value), place=place), place=place)
    document = parse_document(value, source=place.source)
    if document.mistakes:
        return replace(document.mistakes[0], place=place)
    return Setting(key=key.strip(), node=_moved(document.root, place), place=place)


def from_flag(flag: str, *, key: str, value: str) -> Setting:
    """The value of a command-line flag, as text: a model called 123 stays a name."""
    place = Place(source=flag)
    return Setting(key=key, node=Leaf(value=value, place=place), place=place)


def override_keys(overrides: Sequence[str]) -> set[str]:
    """The dotted keys that overrides give, as they are written."""
    return {text.partition("=")[0].strip() for text in overrides}


def apply_setting(tree: Table, setting: Setting, *, canon: Canon) -> Table:
    """The tree, which is in exact form already, with one value replaced; mistakes go to `canon`."""
    found = _resolve(setting, canon)
    if found is None:
        return tree
    names, node = found
    return _replaced(tree, names, node, setting.place)


def _resolve(setting: Setting, canon: Canon) -> tuple[list[str], Node] | None:
    """The exact names on the way to the value, and the value in exact form."""
    record: Any = JobSpec
    names: list[str] = []
    parts = setting.key.split(".")
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        key = find_key(record, part)
        if key is None and record in REST:
            return _into_rest(names, record, parts[index:], setting, canon)
        if key is None:
            canon.mistakes.append(unknown_key(record, part, path=".".join(names), place=setting.place))
            return None
        if last:
            return _exact_value(names, record, key, part, setting, canon)
        if key.name == REST.get(record):
            return _into_rest(names, record, parts[index + 1 :], setting, canon)
        record = record_in(key.kind)
        names.append(key.name)
        if record is None:
            canon.mistakes.append(_no_keys_below(setting, names))
            return None
    return None


def _exact_value(
    names: list[str], record: Any, key: Key, written: str, setting: Setting, canon: Canon
) -> tuple[list[str], Node] | None:
    """Let the friendly forms of a one-key mapping apply, then take the value out of it again."""
    wrapped = Table(entries={written: setting.node}, keys={written: setting.place}, place=setting.place)
    before = len(canon.mistakes)
    made = canon.node(wrapped, record, path=".".join(names))
    if len(canon.mistakes) > before or not isinstance(made, Table):
        return None
    names, node = [*names, key.name], made.entries[key.name]
    inner = record_in(key.kind)
    short = SHORT_FOR.get(inner)
    if short and isinstance(setting.node, Leaf) and isinstance(node, Table) and short in node.entries:
        return [*names, short], node.entries[short]
    return names, node


def _into_rest(
    names: list[str], record: Any, parts: list[str], setting: Setting, canon: Canon
) -> tuple[list[str], Node] | None:
    if len(parts) != 1:
        canon.mistakes.append(_no_keys_below(setting, [*names, *parts[:-1]]))
        return None
    return [*names, REST[record], parts[0]], setting.node


def _replaced(tree: Table, names: list[str], node: Node, place: Place) -> Table:
    first, *others = names
    if not others:
        return replace(tree, entries={**tree.entries, first: node}, keys={**tree.keys, first: place})
    below = tree.entries.get(first)
    inner = below if isinstance(below, Table) else Table(entries={}, keys={}, place=place)
    entries = {**tree.entries, first: _replaced(inner, others, node, place)}
    return replace(tree, entries=entries, keys={first: place, **tree.keys})


def _no_keys_below(setting: Setting, names: list[str]) -> Mistake:
    dotted = ".".join(names)
    return Mistake(
        place=setting.place,
        what=f"{dotted} is one value and has no keys below it",
        expected=f"{dotted}=VALUE",
        example="training.epochs=2",
    )


def _moved(node: Node | None, place: Place) -> Node:
    """The same tree, every place set to the override: lines inside a one-line text say nothing."""
    match node:
        case Table():
            entries = {key: _moved(value, place) for key, value in node.entries.items()}
            return Table(entries=entries, keys=dict.fromkeys(node.keys, place), place=place)
        case Items():
            return Items(items=tuple(_moved(item, place) for item in node.items), place=place)
        case Leaf():
            return replace(node, place=place)
        case None:
            return Leaf(value=None, place=place)
