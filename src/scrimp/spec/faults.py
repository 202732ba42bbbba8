"""Impossible values (`check`) as mistakes with the places where they were written."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from scrimp.core.job import JobSpec
from scrimp.core.plan import Plan
from scrimp.core.recipe import Recipe
from scrimp.spec.build import Builder
from scrimp.spec.canonical import example_line
from scrimp.spec.check import BOUNDS, Fault, check_rules, check_values
from scrimp.spec.document import Items, Leaf, Node
from scrimp.spec.kinds import keys_of
from scrimp.spec.options import spec_options
from scrimp.spec.places import Mistake


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a file whose values have bounds: where it stands, and which keys of a spec its own keys mean."""

    at: tuple[str, ...] = ()
    means: Mapping[str, str] = field(default_factory=dict[str, str])

    def path(self, key: str) -> tuple[str, ...]:
        """Where the value that a spec calls `key` stands in the file."""
        own = next((own for own, meant in self.means.items() if meant == key), key)
        return (*self.at, *own.split("."))


def parts_of(kind: Any) -> tuple[Part, ...]:
    """The parts with bounds: a spec is one, a plan holds a spec and a recipe, both of which people edit."""
    if kind is JobSpec:
        return (Part(),)
    if kind is Plan:
        return (Part(at=("spec",)), Part(at=("chosen", "recipe"), means=_keys_that_a_recipe_shares()))
    return ()


def value_mistakes(builder: Builder, part: Part) -> list[Mistake]:
    """The impossible values of one part of a tree."""
    written = {
        key: _value(node, money=key in BOUNDS and "_usd" in key)
        for key in spec_options()
        if (node := builder.nodes.get(part.path(key))) is not None
    }
    known = {mistake.place for mistake in builder.mistakes}
    found = [_placed(builder, part, fault) for fault in check_values(written)]
    return [mistake for mistake in found if mistake.place not in known or mistake.place.line is None]


def rule_mistakes(builder: Builder, spec: JobSpec) -> list[Mistake]:
    """What is wrong between the keys of a spec."""
    return [_placed(builder, Part(), fault) for fault in check_rules(spec)]


def _placed(builder: Builder, part: Part, fault: Fault) -> Mistake:
    place = builder.place(part.path(fault.key))
    example = spec_options()[fault.key].example if fault.example is None else fault.example
    what = fault.what.replace(fault.key, ".".join(part.path(fault.key)))
    line = example_line(fault.key, example, place=place)
    return Mistake(place=place, what=what, expected=fault.expected, example=line)


def _value(node: Node, *, money: bool) -> object:
    """A node's value as `check` takes it; money, which travels as text, as a Decimal."""
    if isinstance(node, Items):
        return tuple(_value(item, money=False) for item in node.items)
    value = node.value if isinstance(node, Leaf) else None
    return Decimal(value) if money and isinstance(value, str) else value


def _keys_that_a_recipe_shares() -> dict[str, str]:
    """A recipe holds the spec's numbers under their last names."""
    ends = {key.rsplit(".", 1)[-1]: key for key in BOUNDS if key.startswith(("training.", "data."))}
    return {name: ends[name] for name in keys_of(Recipe) if name in ends}
