"""One number of steps: what the plan counts is what is forecast, scheduled, taken, saved, told and recorded."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scrimp.estimate.time.forecast import checkpoint_count, evaluation_count
from scrimp.train.schedule import learning_rate
from scrimp.workflows.job_file import read_job
from scrimp.workflows.open_run import Watch
from scrimp.workflows.run import run
from scrimp.workflows.runs import show_run
from scrimp.workflows.world import World

pytestmark = pytest.mark.train
ROWS = Path(__file__).parents[2] / "examples" / "data" / "devils_dictionary.jsonl"
# Rows that no step divides evenly, an epoch and a half of them, evaluations and saves that meet the last step askew.
SPEC = """\
name: counted
model: {model}
data: {{path: {rows}, max_length_tokens: 128, eval_share: 0.05, max_rows: 40}}
method: {{name: lora, rank: 4}}
training: {{epochs: 1.5, batch_rows: 3, precision: fp32, eval_every_steps: 6, checkpoint_every_steps: 8, probe: "off"}}
market: {{where: local}}
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory, tiny_model_for_runs):
    """(plan, job, events, the run as shown) of a whole run on this machine."""
    folder = tmp_path_factory.mktemp("counted")
    spec = folder / "spec.yaml"
    spec.write_text(SPEC.format(model=tiny_model_for_runs, rows=ROWS), encoding="utf-8")
    world = World(
        env={**os.environ, "SCRIMP_HOME": str(folder / "home")},
        now=lambda: datetime(2026, 12, 1, tzinfo=UTC),
        cwd=folder,
        note=lambda text: None,
    )
    plans, events = [], []
    watch = Watch(on_plan=lambda plan, *_: plans.append(plan), on_event=events.append)
    summary = run(spec, world=world, watch=watch)
    job = read_job(Path(summary.record.folder) / "resolved.json")
    return plans[0], job, events, show_run(summary.record.run_id, world=world)


def test_plan_forecast_job_and_ledger_say_the_same_number(ran):
    plan, job, _, shown = ran
    steps = plan.steps.steps
    assert steps == plan.chosen.time.steps == job.steps.steps
    record = shown.summary.record
    assert steps == record.steps_planned == record.steps_done == shown.history.steps_done
    assert plan.steps.total_tokens == job.steps.total_tokens


def test_as_many_steps_are_taken_and_told(ran):
    plan, _, events, shown = ran
    told = [event for event in events if event.kind == "step"]
    assert [event.step for event in told] == list(range(1, plan.steps.steps + 1))
    assert len(shown.history.steps) == plan.steps.steps


def test_the_schedule_ends_with_the_last_step(ran):
    plan, _, events, _ = ran
    recipe, steps = plan.chosen.recipe, plan.steps.steps
    rates = [event.values["learning_rate"] for event in events if event.kind == "step"]
    assert rates == pytest.approx([learning_rate(recipe, step=n, steps=steps) for n in range(steps)])
    assert rates[-1] > 0


def test_the_forecast_pays_for_the_steps_and_what_happens_between_them(ran):
    plan, _, events, _ = ran
    time, recipe = plan.chosen.time, plan.chosen.recipe
    assert time.train_s.value == pytest.approx(plan.steps.steps * time.step_s.value)
    kinds = [event.kind for event in events]
    assert kinds.count("evaluated") == evaluation_count(recipe, plan.steps.steps)
    assert kinds.count("checkpointed") == checkpoint_count(recipe, plan.steps.steps)
