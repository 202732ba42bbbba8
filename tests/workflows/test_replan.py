"""A recipe that runs out of memory before its first step gives way to a smaller one: real processes, real limits."""

import json
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from scrimp.core.errors import NoPlanError
from scrimp.launch.engines.local import LocalEngine
from scrimp.ledger.bill import MachineRate
from scrimp.ledger.store import Ledger
from scrimp.spec.events import read_events
from scrimp.workflows.execute import execute
from scrimp.workflows.job_file import read_job, write_job
from scrimp.workflows.open_run import FIRST_PLAN_FILE, Watch
from scrimp.workflows.plan import read_plan
from scrimp.workflows.run import open_run, plan_to_run
from scrimp.workflows.world import World

pytestmark = [
    pytest.mark.train,
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits of address space are Linux's"),
]
TRAINER = Path(__file__).parent / "limited_trainer.py"
ROWS = Path(__file__).parents[2] / "examples" / "data" / "devils_dictionary.jsonl"
SPEC = """\
name: tight
model: {model}
data: {{path: {rows}, max_length_tokens: 256, eval_share: 0.02, max_rows: 500}}
method: {{name: lora, rank: 4}}
training: {{max_steps: 2, batch_rows: 120, precision: fp32, seed: 5, probe: {probe}}}
market: {{where: local}}
sample_prompts: ["Define hope."]
"""


@pytest.fixture
def start(tmp_path, tiny_model_for_runs):
    """Opens a run of the tiny model and executes it with a trainer that has little memory."""
    world = World(
        env={**os.environ, "SCRIMP_HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1"},
        now=lambda: datetime(2026, 12, 1, tzinfo=UTC),
        cwd=tmp_path,
        note=lambda text: None,
    )

    def go(order, *, probe="off", change=None):
        spec = tmp_path / "spec.yaml"
        spec.write_text(SPEC.format(model=tiny_model_for_runs, rows=ROWS, probe=probe), encoding="utf-8")
        opened = open_run(plan_to_run(spec, overrides=(), world=world), world=world)
        opened = replace(opened, job=replace(opened.job, threads=1))
        if change:
            recipe = replace(opened.job.recipe, **change)
            chosen = replace(opened.plan.chosen, recipe=recipe)
            opened = replace(opened, plan=replace(opened.plan, chosen=chosen), job=replace(opened.job, recipe=recipe))
        write_job(opened.job, opened.folder / "resolved.json")
        engine = LocalEngine(
            rate=MachineRate(price_usd_per_hour=Decimal("0.10"), source="spec"),
            command=(sys.executable, str(TRAINER), order),
        )
        seen = []
        watch = Watch(on_plan=lambda *_: None, on_event=seen.append)
        ledger = Ledger(world.ledger_url)
        try:
            return opened, execute(opened, engine=engine, ledger=ledger, world=world, watch=watch), seen
        except NoPlanError as error:
            return opened, error, seen

    return go


def _steps(folder):
    steps = [event for event in read_events(folder / "events.jsonl") if event.kind == "step"]
    return [(event.step, event.values["total_tokens"], event.values["loss"]) for event in steps]


def test_a_limit_of_the_kernel_halves_the_micro_batch_until_it_fits_and_the_loss_stays(start):
    roomy, summary, _ = start(str(2**40))
    tight, done, seen = start(str(160 * 2**20))
    assert summary.record.state == done.record.state == "finished"
    assert not [event for event in read_events(roomy.folder / "events.jsonl") if event.kind == "replanned"]
    told = [event for event in seen if event.kind == "replanned"]
    assert told
    assert "allocate memory" in told[0].values["reason"]
    now, first = read_plan(tight.folder / "plan.yaml"), read_plan(tight.folder / FIRST_PLAN_FILE)
    before, after = first.chosen.recipe, now.chosen.recipe
    assert before == tight.job.recipe
    assert after.micro_batch_tokens == told[-1].values["micro_batch_tokens"] < before.micro_batch_tokens
    assert replace(after, micro_batch_tokens=0) == replace(before, micro_batch_tokens=0)
    assert read_job(tight.folder / "resolved.json").recipe == after
    assert now.chosen.memory.device_bytes.value < first.chosen.memory.device_bytes.value
    pairs = list(zip(_steps(roomy.folder), _steps(tight.folder), strict=True))
    assert len(pairs) == 2
    for (step, tokens, loss), (other_step, other_tokens, other_loss) in pairs:
        assert (step, tokens) == (other_step, other_tokens)
        assert other_loss == pytest.approx(loss, rel=1e-4)
    graded = {line.quantity: line for line in done.record.graded}
    assert "planned again after memory ran out" in graded["peak_bytes"].basis
    assert done.record.attempts == len(told) + 1
    assert "memory ran out" in Path(done.report_path).read_text(encoding="utf-8")


def test_a_probe_that_was_killed_by_the_kernel_is_tried_again_smaller(start):
    opened, done, seen = start("kill:9000", probe="on")
    assert done.record.state == "finished"
    kinds = [event.kind for event in seen]
    assert kinds.count("replanned") == 1
    assert kinds.index("replanned") < kinds.index("probed") < kinds.index("step")
    assert "signal 9" in next(event for event in seen if event.kind == "replanned").values["reason"]
    assert read_job(opened.folder / "resolved.json").recipe.micro_batch_tokens <= 9000


def test_with_nothing_smaller_left_it_says_what_would_help(start):
    """Checkpointing is on and a micro-batch is one row: the ladder has ended."""
    opened, error, seen = start("kill:0", change={"micro_batch_tokens": 256, "checkpointing": "full"})
    assert isinstance(error, NoPlanError)
    assert f"scrimp run {opened.folder / 'spec.yaml'} method.name=qlora" in error.next_step
    assert "data.max_length_tokens=128" in error.next_step
    assert [event.kind for event in seen].count("started") == 1
    record = json.loads((opened.folder / "resolved.json").read_text())
    assert record["recipe"]["checkpointing"] == "full"


def test_a_failure_of_another_kind_is_not_tried_again(start):
    opened, _, _ = start("kill:9000000")
    from scrimp.core.run import RunEvent
    from scrimp.launch.attend import Outcome
    from scrimp.workflows.replan import next_try

    ended = Outcome(exit_code=10, signals=0, killed=False)
    assert next_try(opened, ended, target="spec.yaml", on_event=lambda event: None) is None
    with (opened.folder / "events.jsonl").open("w") as file:
        from scrimp.spec.events import event_line

        for kind, values in (("started", {}), ("loaded", {}), ("failed", {"error": "NaN", "exit_code": 10})):
            file.write(event_line(RunEvent(at_s=1.0, attempt=1, kind=kind, step=0, values=values)))
    assert next_try(opened, ended, target="spec.yaml", on_event=lambda event: None) is None
