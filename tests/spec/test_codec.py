"""Nouns to plain values and back."""

import json
from dataclasses import replace

import pytest

from scrimp.core.errors import SpecError
from scrimp.core.plan import Plan
from scrimp.spec.codec import dump, dump_json, load, load_json


def test_a_plan_goes_through_json_unchanged(plan):
    assert load_json(Plan, dump_json(plan), where="plan.json") == plan
    assert load(Plan, json.loads(json.dumps(dump(plan))), where="plan.json") == plan


def test_money_and_dates_are_text(plan):
    values = dump(plan)
    assert values["chosen"]["offer"]["price_usd_per_hour"] == "1.5"
    assert values["created_at"].startswith("2026-01-02T00:00:00")


def test_every_wrong_field_is_named(plan):
    values = dump(replace(plan, alternatives=()))
    del values["plan_id"]
    values["chosen"]["recipe"]["batch_rows"] = "many"
    with pytest.raises(SpecError) as caught:
        load(Plan, values, where="plan.json")
    assert "plan.json does not hold a whole Plan" in caught.value.what
    assert "plan_id: " in caught.value.what
    assert "chosen.recipe.batch_rows: " in caught.value.what


def test_text_that_is_no_json_is_refused():
    with pytest.raises(SpecError, match=r"plan\.json is not valid JSON"):
        load_json(Plan, "{", where="plan.json")
