"""From a spec to a traced plan: the bundled model on this machine, as a file, on the command line, without torch."""

import json
import sys

import pytest
from click.testing import CliRunner

from scrimp.cli.main import cli
from scrimp.core.errors import MissingPackageError, SpecError
from scrimp.workflows.plan import PlanRequest, read_plan
from scrimp.workflows.trace import trace_spec, trace_target
from scrimp.workflows.world import real_world

SPEC = "examples/quickstart.yaml"


@pytest.fixture
def notes():
    return []


@pytest.fixture
def world(notes):
    return real_world(note=notes.append)


@pytest.mark.train
def test_a_traced_plan_carries_the_traced_memory_and_both_are_shown(world, notes, tmp_path):
    pytest.importorskip("peft")
    output = tmp_path / "plan.yaml"
    found = trace_spec(PlanRequest(spec=SPEC, output=output), world=world)
    answer, chosen = found.answer, found.planned.chosen
    assert chosen.memory == answer.forecast != answer.formula
    assert chosen.memory.peak_bytes.basis.startswith("traced: scrimp's own step, on this CPU")
    assert answer.traced.trainable_params == 4_884_480
    assert abs(answer.difference_ratio) < 0.10
    assert any("forward and backward" in note for note in notes)
    assert read_plan(output).chosen.memory == chosen.memory
    with pytest.raises(SpecError) as caught:
        trace_target(output, overrides=("training.epochs=2",), world=world)
    assert caught.value.next_step


@pytest.mark.train
def test_the_command_line_prints_the_trace_as_json_and_as_a_table():
    pytest.importorskip("peft")
    shown = CliRunner().invoke(cli, ["probe", SPEC, "--trace"])
    assert shown.exit_code == 0, shown.output
    assert "formula is" in shown.stdout.replace("\n", " ")
    assert "alive at the peak" in shown.stdout
    exact = CliRunner().invoke(cli, ["plan", SPEC, "--exact", "--json"])
    assert exact.exit_code == 0, exact.output
    document = json.loads(exact.stdout)
    assert {"traced", "forecast", "formula", "difference_ratio"} <= set(document["exact"])


def test_without_torch_the_extra_is_named(world, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingPackageError) as caught:
        trace_spec(PlanRequest(spec=SPEC), world=world)
    assert '"train" extra' in caught.value.expected
    assert 'pip install "scrimp[train]"' in caught.value.next_step
