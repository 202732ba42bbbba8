"""`scrimp doctor` as people and machines see it."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner, Result

import scrimp.workflows.doctor as workflow
from scrimp.cli.doctor import command
from scrimp.cli.main import verb_files
from scrimp.workflows.checkup.finding import Check
from scrimp.workflows.doctor import Diagnosis

LONG_PATH = "/home/me/" + "a-long-folder-name/" * 6

DIAGNOSIS = Diagnosis(
    checks=(
        Check(group="machine", name="python", status="ok", found="3.12.4", values={"version": "3.12.4"}),
        Check(
            group="packages",
            name="train extra",
            status="note",
            found="missing for training on this machine: torch, transformers, peft, safetensors, numpy, psutil",
            next_step='pip install "scrimp[train]"',
            values={"torch": None},
        ),
        Check(group="disk", name="cache", status="ok", found=f"3 GiB free: {LONG_PATH}"),
        Check(group="ledger", name="ledger", status="problem", found="[bold]cannot[/] be written", next_step="chmod"),
    ),
    hub_asked=False,
)


def _run(*arguments: str, width: int = 80, **env: str) -> Result:
    around = {"COLUMNS": str(width), "NO_COLOR": "1", **env}
    return CliRunner().invoke(command, list(arguments), env=around)


@pytest.fixture
def recorded(monkeypatch) -> Diagnosis:
    """One of each: ok, note, problem, a long path, text that looks like markup."""
    monkeypatch.setattr(workflow, "examine", lambda **_: DIAGNOSIS)
    return DIAGNOSIS


@pytest.mark.parametrize("width", [60, 80, 160])
def test_every_line_fits_and_the_status_comes_first(recorded, width):
    lines = _run(width=width).stdout.splitlines()
    assert all(len(line) <= width for line in lines)
    starts = [line.split()[0] for line in lines if line.startswith(("ok", "note", "problem"))]
    assert starts == [check.status for check in recorded.checks]


def test_a_command_stands_on_a_line_of_its_own(recorded):
    assert 'next: pip install "scrimp[train]"' in [line.strip() for line in _run().stdout.splitlines()]


def test_the_words_of_others_are_no_markup_and_there_is_no_colour(recorded):
    out = _run().stdout
    assert "[bold]cannot[/] be written" in out
    assert "\x1b" not in out


def test_a_problem_makes_the_exit_code_1_also_under_json(recorded):
    assert _run().exit_code == 1
    assert _run("--json").exit_code == 1
    assert "1 problem to put right, 1 note" in _run().stdout


def test_notes_do_not(monkeypatch):
    monkeypatch.setattr(workflow, "examine", lambda **_: Diagnosis(checks=DIAGNOSIS.checks[:3], hub_asked=True))
    result = _run()
    assert result.exit_code == 0
    assert "no problem, 1 note; next: scrimp init" in result.stdout
    assert "--network" not in result.stdout


def test_json_is_one_document_with_every_finding(recorded):
    document = json.loads(_run("--json").stdout)
    assert (document["problems"], document["notes"], document["hub_asked"]) == (1, 1, False)
    assert document["checks"][1] == {
        "group": "packages",
        "name": "train extra",
        "status": "note",
        "found": recorded.checks[1].found,
        "next": 'pip install "scrimp[train]"',
        "values": {"torch": None},
    }


def test_the_network_option_reaches_the_workflow(monkeypatch):
    asked: list[bool] = []

    def examine(*, network: bool, **_: object) -> Diagnosis:
        asked.append(network)
        return DIAGNOSIS

    monkeypatch.setattr(workflow, "examine", examine)
    _run()
    _run("--network")
    assert asked == [False, True]


def test_the_real_thing_starts_without_torch_and_leaves_the_secrets_out(tmp_path):
    probe = (
        "import sys; sys.argv = ['scrimp', 'doctor', '--json']\n"
        "from scrimp.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as end: sys.stderr.write(f'code {end.code}\\n')\n"
        "sys.stderr.write(' '.join({name.partition('.')[0] for name in sys.modules}))"
    )
    env = {
        "PATH": "/usr/bin",
        "HOME": str(tmp_path),
        "HF_TOKEN": "hf_never_shown",
        "SCRIMP_LEDGER": "postgresql+nodriver://me:never_shown@host/db",
    }
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, env=env, cwd=tmp_path
    )
    document = json.loads(done.stdout)
    problems = [check["name"] for check in document["checks"] if check["status"] == "problem"]
    assert "ledger" in problems
    assert "code 1" in done.stderr
    assert "never_shown" not in done.stdout + done.stderr
    heavy = {"torch", "transformers", "peft", "numpy", "pandas", "datasets", "pyarrow", "pydantic", "gguf"}
    assert not heavy & set(done.stderr.split())


def test_it_is_a_verb_and_help_fits_80_columns():
    assert "doctor" in verb_files()
    result = _run("--help")
    assert "scrimp doctor --network" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
