"""`scrimp probe`: a real job of the tiny model, and how its forecasts come out."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from scrimp.cli.main import cli
from scrimp.core.errors import SpecError
from scrimp.estimate.probing import DOUBTS
from scrimp.workflows.open_run import Watch
from scrimp.workflows.probe import probe
from scrimp.workflows.world import World

pytestmark = pytest.mark.train
ROWS = Path(__file__).parents[2] / "examples" / "data" / "devils_dictionary.jsonl"
SPEC = """\
name: looked-ahead
model: {model}
data: {{path: {rows}, max_length_tokens: 256, eval_share: 0.05, max_rows: 100}}
method: {{name: lora, rank: 4}}
training: {{max_steps: 6, precision: fp32}}
market: {{where: local}}
"""


@pytest.fixture
def spec(tmp_path, tiny_model_for_runs):
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.format(model=tiny_model_for_runs, rows=ROWS), encoding="utf-8")
    return path


@pytest.fixture
def world(tmp_path):
    return World(
        env={**os.environ, "SCRIMP_HOME": str(tmp_path / "home")},
        now=lambda: datetime(2026, 12, 1, tzinfo=UTC),
        cwd=tmp_path,
        note=lambda text: None,
    )


def test_a_probe_corrects_the_plan_and_leaves_nothing_behind(spec, world, tmp_path):
    seen = []
    watch = Watch(on_plan=lambda *_: None, on_event=seen.append)
    before = set(tmp_path.rglob("*"))
    found = probe(spec, world=world, watch=watch)
    assert {path for path in set(tmp_path.rglob("*")) - before if path.is_file()} == set()
    assert [event.kind for event in seen][-1] == "probed"
    assert found.reading.steps == 3
    time, planned = found.corrected.time, found.plan.chosen.time
    assert time.step_s.value == pytest.approx(found.reading.step_s * DOUBTS.cpu_step.value)
    assert time.total_s.basis == "measured by a probe of 3 steps"
    assert time.steps == planned.steps == 6
    assert found.corrected.money is not None
    assert found.plan.chosen.money is not None
    # Money follows time: one machine, one price an hour.
    ratio = float(found.corrected.money.total_usd.value / found.plan.chosen.money.total_usd.value)
    assert ratio == pytest.approx(time.total_s.value / planned.total_s.value)
    assert found.corrected.memory.peak_bytes.holds(found.reading.peak_bytes * 1.03)


def test_a_plan_for_another_machine_is_refused(spec, world):
    watch = Watch(on_plan=lambda *_: None, on_event=lambda _: None)
    with pytest.raises(SpecError, match="not for this machine"):
        probe(spec, overrides=("market.where=cloud",), world=world, watch=watch)


def test_the_verb_prints_one_table_and_one_document(spec, monkeypatch, tmp_path):
    monkeypatch.setenv("SCRIMP_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["probe", str(spec), "--json"], catch_exceptions=False)
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    rows = {row["quantity"]: row for row in document["forecasts"]}
    assert {"peak_bytes", "step_s", "train_s", "total_s", "cost_usd"} <= set(rows)
    assert rows["step_s"]["measured"] == document["reading"]["step_s"]
    assert all(row["low"] <= row["corrected"] <= row["high"] for row in rows.values())
