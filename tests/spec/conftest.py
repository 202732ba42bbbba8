"""A plan made out of the declared types: fields that are added later need no change here."""

import typing
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from scrimp.core.job import LimitsSpec
from scrimp.core.plan import Plan
from scrimp.spec.kinds import branches, choices_in, element_in, is_optional, keys_of, record_in

PLAIN = {
    str: "x",
    int: 2,
    float: 1.0,
    bool: True,
    Decimal: Decimal("1.5"),
    date: date(2026, 1, 2),
    datetime: datetime(2026, 1, 2, tzinfo=UTC),
}


def sample(kind):
    """One value of a type: as little as possible."""
    if is_optional(kind):
        return None
    kind = branches(kind)[0]
    if record_in(kind):
        record = typing.get_origin(kind) or kind
        return record(**{name: sample(key.kind) for name, key in keys_of(kind).items()})
    if choices_in(kind):
        return choices_in(kind)[0]
    if element_in(kind) is not None:
        return ()
    return {} if typing.get_origin(kind) not in (None, tuple) else PLAIN[kind]


@pytest.fixture
def plan():
    """A small plan with some values that tests edit."""
    made = sample(Plan)
    recipe = replace(made.chosen.recipe, learning_rate=0.001, micro_batch_tokens=2048, batch_rows=16)
    recipe = replace(recipe, method=replace(recipe.method, name="lora", options={"rank": 8}))
    offer = replace(made.chosen.offer, market="spot", price_usd_per_hour=Decimal("1.5"))
    spec = replace(made.spec, limits=LimitsSpec(budget_usd=Decimal(5)), method=recipe.method, output_dir="runs")
    spec = replace(spec, data=replace(spec.data, eval_share=0.05), training=replace(spec.training, warmup_share=0.0))
    return replace(made, spec=spec, chosen=replace(made.chosen, recipe=recipe, offer=offer))
