"""A run folder, and engines whose trainer is a small script that follows orders."""

import json
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from scrimp.core.data import StepPlan
from scrimp.core.job import DataSpec, MethodChoice
from scrimp.core.recipe import Recipe, ResolvedJob
from scrimp.launch.engines import get, names
from scrimp.ledger.bill import MachineRate

FAKE_TRAINER = Path(__file__).parent / "fake_trainer.py"


@pytest.fixture(scope="session")
def job():
    recipe = Recipe(
        model="tiny", method=MethodChoice(name="lora"), weight_dtype="fp32", compute_dtype="fp32", layout="packed",
        loss="selected", sharding="none", optimizer="adamw", checkpointing="none", max_length_tokens=64,
        batch_rows=2, batch_tokens=None, micro_batch_tokens=128, epochs=1.0, max_steps=None, learning_rate=1e-4,
        schedule="cosine", warmup_steps=0, weight_decay=0.0, clip_norm=1.0, seed=0, eval_every_steps=None,
        checkpoint_every_steps=None, keep_checkpoints=2,
    )  # fmt: skip
    steps = StepPlan(
        steps=3, epochs=1.0, rows=6, total_tokens=60, trained_tokens=30, largest_step_tokens=20, longest_row_tokens=10
    )
    data = DataSpec(path="rows.jsonl")
    return ResolvedJob(run_id="run-1", name="job", recipe=recipe, data=data, steps=steps, run_folder="run", threads=3)


@pytest.fixture
def order(tmp_path):
    """Prepare the run folder with what the trainer shall do; returns the folder."""

    def prepare(**order):
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        (folder / "resolved.json").write_text(json.dumps(order))
        return folder

    return prepare


@pytest.fixture
def make_engine():
    """An engine with the fake trainer. Whatever a test leaves running is killed."""
    started = []

    def make(name="local", **options):
        rate = MachineRate(price_usd_per_hour=Decimal("0.10"), source="spec")
        engine = get(name)(rate=rate, command=(sys.executable, str(FAKE_TRAINER)), **options)
        inner = engine.start

        def start(*arguments, **more):
            handle = inner(*arguments, **more)
            started.append((engine, handle))
            return handle

        engine.start = start
        return engine

    yield make
    for engine, handle in started:
        engine.kill(handle)
        engine.wait(handle)


@pytest.fixture(params=names())
def engine(request, make_engine):
    """Every engine in the folder."""
    return make_engine(request.param)
