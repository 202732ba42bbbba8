"""A tree in exact form to the frozen dataclass, or every mistake in it with its place."""

import json
from dataclasses import dataclass, field
from typing import Any, TypeVar

from scrimp import methods
from scrimp.core.errors import SpecError, UnknownNameError, nearest
from scrimp.core.job import MethodChoice, Scalar
from scrimp.spec.canonical import example_line, said
from scrimp.spec.codec import adapter
from scrimp.spec.document import Items, Leaf, Node, Table
from scrimp.spec.kinds import choices_in, element_in, in_words, keys_of, record_in
from scrimp.spec.options import method_keys, spec_options
from scrimp.spec.places import Mistake, Place

T = TypeVar("T")
Plain = Scalar | list["Plain"] | dict[str, "Plain"]
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """Turns one tree into one noun. `nodes` remembers the node of every path, `prefix` is where a JobSpec begins."""

    nodes: dict[Path, Node] = field(default_factory=dict[Path, Node])
    mistakes: list[Mistake] = field(default_factory=list[Mistake])

    def plain(self, node: Node, kind: Any, *, path: Path = ()) -> Plain:
        """The tree as JSON-ready values; a method's options are checked by the method on the way."""
        self.nodes[path] = node
        match node:
            case Leaf():
                return node.value
            case Items():
                inner = element_in(kind)
                return [self.plain(item, inner, path=(*path, index)) for index, item in enumerate(node.items)]
            case Table():
                record = record_in(kind)
                if record is MethodChoice:
                    node = self._settled(node)
                kinds = {name: key.kind for name, key in keys_of(record).items()} if record is not None else {}
                return {
                    name: self.plain(child, kinds.get(name), path=(*path, name)) for name, child in node.entries.items()
                }

    def build(self, tree: Table, kind: type[T]) -> T | None:
        """The noun, or None with `mistakes` filled."""
        from pydantic import ValidationError

        values = self.plain(tree, kind)
        try:
            # JSON and strict: "2" is no number, true is no number, 2.5 is no whole number, a list is a tuple.
            noun: T = adapter(kind).validate_json(json.dumps(values), strict=True)
        except ValidationError as error:
            for item in error.errors():
                if not self._told_already(item):
                    self.mistakes.append(self._mistake(item, kind))
            return None
        return noun

    def place(self, path: Path) -> Place:
        """Where the value of a path was written, or else the nearest mapping around it."""
        while path not in self.nodes:
            path = path[:-1]
        return self.nodes[path].place

    def _told_already(self, item: Any) -> bool:
        """Whether a key is only missing because what was written for it was refused before."""
        path: Path = tuple(item["loc"])
        around = self.nodes.get(path[:-1])
        return item["type"] == "missing" and isinstance(around, Table) and path[-1] in around.keys

    def _mistake(self, item: Any, kind: Any) -> Mistake:
        """One of pydantic's errors in our words."""
        path: Path = tuple(item["loc"])
        node, place, dotted = self.nodes.get(path), self.place(path), dotted_name(path)
        if item["type"] == "value_error":
            text = str(item["ctx"]["error"])
            return Mistake(place=place, what=text, expected="values that agree", example=place.text.strip())
        if item["type"] == "missing" or node is None:
            return _missing(path, kind_at(kind, path), place=place)
        return _wrong_type(node, dotted, kind_at(kind, path))

    def _settled(self, table: Table) -> Table:
        """The method's options with single values where lists belong, each checked by the method; wrong ones go."""
        name = table.entries.get("name", Leaf(value=MethodChoice().name, place=table.place))
        options = table.entries.get("options")
        if not isinstance(name, Leaf) or not isinstance(name.value, str):
            return table
        try:
            known = method_keys(name.value)
        except UnknownNameError as error:
            close = nearest(name.value, (*methods.names(), "auto"))
            shown = close[0] if close else "lora"
            short = name.place.line is not None and name.place.text.lstrip().startswith("method: " + str(name.value))
            example = f"method: {shown}" if short else example_line("method.name", shown, place=name.place)
            self.mistakes.append(Mistake(place=name.place, what=error.what, expected=error.expected, example=example))
            return table
        if not isinstance(options, Table):
            return table
        right: dict[str, Node] = {}
        for key, node in options.entries.items():
            if key in known and element_in(known[key].kind) is not None and isinstance(node, Leaf):
                node = Items(items=(node,), place=node.place)
            mistake = self._option_mistake(name, key, node, place=options.keys[key])
            if mistake:
                self.mistakes.append(mistake)
            else:
                right[key] = node
        settled = Table(entries=right, keys=options.keys, place=options.place)
        return Table(entries={**table.entries, "options": settled}, keys=table.keys, place=table.place)

    def _option_mistake(self, name: Leaf, key: str, node: Node, *, place: Place) -> Mistake | None:
        """What is wrong with one option of the method that `name` chooses."""
        method = str(name.value)
        known = method_keys(method)
        if key not in known:
            return _unknown_option(name, key, place=place)
        owner = method if method != "auto" else next(item for item in methods.names() if key in method_keys(item))
        value: Any = Builder().plain(node, None)
        try:
            if isinstance(value, dict):
                raise SpecError(what=f'option "{key}" of method "{owner}" is a mapping', expected="one value")
            methods.options_for(owner, {key: value})
        except SpecError as error:
            example = example_line(f"method.{key}", known[key].default, place=place)
            return Mistake(place=node.place, what=error.what, expected=error.expected, example=example)
        return None


def _unknown_option(name: Leaf, key: str, *, place: Place) -> Mistake:
    """An option that the method does not have; the method may have been chosen on the command line, for this file."""
    known = method_keys(str(name.value))
    method = "no method has an" if name.value == "auto" else f'method "{name.value}" has no'
    if name.place.line is None and place.line is not None:
        return Mistake(
            place=place,
            what=f'{method} option "{key}", and {name.place} chooses it',
            expected=f"options of {name.value}: {', '.join(known) or 'none'}",
            example=f"method={name.value} method.options={{}}    (on the command line: drops the file's options)",
        )
    close = nearest(key, (*known, "name", "options"))
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    shown = close[0] if close else next(iter(known), "name")
    value = known[shown].default if shown in known else name.value
    return Mistake(
        place=place,
        what=f'{method} option "{key}"',
        expected=hint + (f"one of {', '.join(known)}" if known else "no options at all"),
        example=example_line(f"method.{shown}", value, place=place),
    )


def _missing(path: Path, kind: Any, *, place: Place) -> Mistake:
    dotted = dotted_name(path)
    option = spec_options().get(dotted)
    if option is None:
        return Mistake(place=place, what=f"{dotted} is missing", expected=in_words(kind), example=f"{path[-1]}: ...")
    example = example_line(dotted, option.example, place=place)
    if len(path) > 1 and place.line is not None:
        example = f"{path[0]}: {{{example}}}"
    return Mistake(
        place=place, what=f"{dotted} is missing", expected=f"{option.in_words}: {option.help}", example=example
    )


def _wrong_type(node: Node, dotted: str, kind: Any) -> Mistake:
    option = spec_options().get(dotted)
    words = option.in_words if option else in_words(kind)
    value: object = option.example if option else None
    if isinstance(node, Leaf) and isinstance(node.value, str):
        close = nearest(node.value, choices_in(kind))
        if close:
            words, value = f"did you mean {close[0]}? {words}", close[0]
    elif isinstance(node, Leaf) and kind is str and node.value is not None:
        # A name that happens to look like a number or a truth value.
        words, value = "text, in quotes", said(node)
    example = example_line(dotted, "..." if value is None else value, place=node.place)
    return Mistake(place=node.place, what=f"{dotted} is {said(node)}", expected=words, example=example)


def kind_at(kind: Any, path: Path) -> Any:
    """The declared type at a path; None where there is none."""
    for part in path:
        record = record_in(kind)
        if isinstance(part, int):
            kind = element_in(kind)
        elif record is not None and part in keys_of(record):
            kind = keys_of(record)[part].kind
        else:
            return None
    return kind


def dotted_name(path: Path) -> str:
    """`market.gpus`, with list positions left out, as the tables of options have it."""
    return ".".join(part for part in path if isinstance(part, str))
