"""The ladder of smaller recipes."""

from dataclasses import replace

import pytest

from scrimp.calibrate.table import BLANK_RECIPE
from scrimp.core.data import StepPlan
from scrimp.planner.smaller import change_words, out_of_memory_error, smaller_recipe

STEPS = StepPlan(
    steps=10, epochs=1.0, rows=80, total_tokens=9000, trained_tokens=3000, largest_step_tokens=1000,
    longest_row_tokens=300,
)  # fmt: skip


def _ladder(recipe):
    found = []
    while (following := smaller_recipe(recipe, STEPS)) is not None:
        found.append((following.micro_batch_tokens, following.checkpointing, change_words(recipe, following)))
        recipe = following
    return found


def test_micro_batches_are_halved_to_the_longest_row_then_checkpointing_comes():
    start = replace(BLANK_RECIPE, micro_batch_tokens=65_536)
    assert _ladder(start) == [
        (500, "none", "micro-batch 500 instead of 65,536 tokens"),
        (300, "none", "micro-batch 300 instead of 500 tokens"),
        (300, "selective", "selective checkpointing instead of none"),
        (300, "full", "full checkpointing instead of selective"),
    ]


def test_only_what_is_computed_at_once_changes():
    start = replace(BLANK_RECIPE, micro_batch_tokens=1000)
    recipe = start
    while (following := smaller_recipe(recipe, STEPS)) is not None:
        same = {"micro_batch_tokens": 0, "checkpointing": "none"}
        assert replace(following, **same) == replace(start, **same)
        recipe = following


@pytest.mark.parametrize(
    ("method", "offered", "left_out"), [("full", "method.name=lora", ""), ("qlora", "model=", "method.name=qlora")]
)
def test_the_end_of_the_ladder_names_what_would_help(method, offered, left_out):
    recipe = replace(BLANK_RECIPE, method=replace(BLANK_RECIPE.method, name=method), checkpointing="full")
    error = out_of_memory_error(recipe, loaded=True, target="job.yaml")
    assert f"scrimp run job.yaml {offered}" in error.next_step
    assert not left_out or left_out not in error.next_step
    assert error.exit_code == 5


def test_a_model_that_does_not_load_is_not_helped_by_shorter_rows():
    error = out_of_memory_error(BLANK_RECIPE, loaded=False, target="job.yaml")
    assert "while the model was loaded" in error.what
    assert "max_length" not in error.next_step
