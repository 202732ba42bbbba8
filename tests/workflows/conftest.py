"""Fixtures of the workflows' tests."""

import importlib.util
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from scrimp.core.recipe import ResolvedJob
from scrimp.spec.events import event_line
from scrimp.spec.write import dump_yaml
from scrimp.workflows.job_file import write_job
from scrimp.workflows.world import World

TESTS = Path(__file__).parents[1]


def _load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def interrupted_run(tmp_path):
    """(folder, plan, world) of a run that a signal stopped after step 7 of 120."""
    factory, plans = _load(TESTS / "ledger" / "run_factory.py"), _load(TESTS / "report" / "plan_factory.py")
    folder = tmp_path / "runs" / "20250602-120000-quickstart"
    folder.mkdir(parents=True)
    plan = plans.make_plan()
    (folder / "plan.yaml").write_text(dump_yaml(plan), encoding="utf-8")
    events = factory.make_events(steps=7, ending="interrupted")
    (folder / "events.jsonl").write_text("".join(map(event_line, events)), encoding="utf-8")
    job = ResolvedJob(
        run_id=folder.name, name="quickstart", recipe=plan.chosen.recipe, data=plan.spec.data, steps=plans.STEPS,
        run_folder=str(folder), price_usd_per_hour=Decimal("0.10"),
    )  # fmt: skip
    write_job(job, folder / "resolved.json")
    world = World(
        env={"SCRIMP_HOME": str(tmp_path)}, now=lambda: datetime(2026, 12, 1, tzinfo=UTC), cwd=tmp_path,
        note=lambda text: None,
    )  # fmt: skip
    return folder, plan, world


@pytest.fixture(scope="session")
def tiny_model_for_runs(tmp_path_factory, tiny_tokenizer_folder):
    """The tiny random model of the trainer's tests."""
    return _load(TESTS / "train" / "conftest.py").save_tiny_model(
        tmp_path_factory.mktemp("tiny-model"), tiny_tokenizer_folder
    )
