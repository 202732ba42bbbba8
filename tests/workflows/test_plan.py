"""The plan workflow: plan files round-trip, are told from specs, and planning is a function of its arguments."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scrimp.core.errors import ResourceError, SpecError
from scrimp.core.job import DataSpec, JobSpec, MarketSpec
from scrimp.workflows.plan import is_plan_file, plan, plan_from, read_plan, write_plan
from scrimp.workflows.world import World

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def world(tmp_path) -> World:
    """No caches, no network, a stopped clock."""
    return World(
        env={"HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"},
        now=lambda: datetime(2026, 12, 1, 12, tzinfo=UTC),
        cwd=tmp_path,
        note=lambda text: None,
    )


def _spec(**market: object) -> JobSpec:
    return JobSpec(
        model="Qwen/Qwen3-8B",
        data=DataSpec(path=str(EXAMPLES / "data" / "devils_dictionary.jsonl"), max_rows=60),
        market=MarketSpec(**{"where": "cloud", **market}),
    )


def test_planning_twice_gives_the_same(world):
    assert plan(_spec(gpus=("RTX4090",)), world=world) == plan(_spec(gpus=("RTX4090",)), world=world)


def test_a_plan_file_round_trips_and_is_told_from_a_spec(world, tmp_path):
    plans = plan(_spec(gpus=("RTX4090", "H100")), world=world)
    made = plan_from(plans, plans.candidates[1], world=world)
    write_plan(made, tmp_path / "plan.yaml")
    assert read_plan(tmp_path / "plan.yaml") == made
    assert is_plan_file(tmp_path / "plan.yaml")
    assert not is_plan_file(EXAMPLES / "quickstart.yaml")
    assert not is_plan_file(tmp_path / "nowhere.yaml")


def test_an_edited_plan_is_read_as_edited_and_a_broken_one_is_refused(world, tmp_path):
    plans = plan(_spec(gpus=("RTX4090",)), world=world)
    file = tmp_path / "plan.yaml"
    write_plan(plan_from(plans, plans.candidates[0], world=world), file)
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("learning_rate: 0.0002", "learning_rate: 0.0005"), encoding="utf-8")
    assert read_plan(file).chosen.recipe.learning_rate == 0.0005
    file.write_text(text.replace("micro_batch_tokens:", "micro_batch_token:"), encoding="utf-8")
    with pytest.raises(SpecError, match="micro_batch_token"):
        read_plan(file)


def test_the_plan_names_its_model_so_that_it_is_found_again(world):
    plans = plan(replace(_spec(gpus=("RTX4090",)), model="qwen3-8b"), world=world)
    assert plans.spec.model == "Qwen/Qwen3-8B"
    assert {candidate.recipe.model for candidate in plans.candidates} == {"Qwen/Qwen3-8B"}


def test_plans_made_at_another_time_or_of_another_candidate_differ_in_their_id(world):
    plans = plan(_spec(gpus=("RTX4090",)), world=world)
    later = replace(world, now=lambda: datetime(2026, 12, 1, 13, tzinfo=UTC))
    first, second = plans.candidates[:2]
    ids = {
        plan_from(plans, first, world=world).plan_id,
        plan_from(plans, second, world=world).plan_id,
        plan_from(plans, first, world=later).plan_id,
    }
    assert len(ids) == 3
    assert plan_from(plans, first, world=world).plan_id in ids


def test_points_hold_the_front_and_the_chosen_plan(world):
    plans = plan(_spec(), world=world)
    last = plans.candidates[-1]
    points = plan_from(plans, last, world=world).alternatives
    assert sum(point.on_front for point in points) == len(plans.front)
    assert [point for point in points if point.chosen][-1].cost_usd == last.money.total_usd.value
    assert len(points) < 100


def test_a_plan_that_cannot_be_written_says_where_and_what_to_type(world, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    plans = plan(_spec(gpus=("RTX4090",)), world=world)
    with pytest.raises(ResourceError, match="cannot be written to") as caught:
        write_plan(plan_from(plans, plans.candidates[0], world=world), tmp_path / "file" / "plan.yaml")
    assert "-o" in caught.value.next_step
