"""scrimp init on the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import scrimp.spec
from scrimp.cli import init as verb
from scrimp.spec.read import read_spec
from scrimp.workflows.init import Question


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(verb.command, arguments, catch_exceptions=False)


def test_people_see_what_was_written_and_what_to_type(run):
    result = run("--model", "Qwen/Qwen3-8B", "--data", "rows.jsonl", "--budget", "5 USD")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "wrote  job.yaml",
        "       .scrimp/job.schema.json (for editors; may be deleted)",
        "data   rows.jsonl is not there yet",
        "next   scrimp plan job.yaml",
    ]


def test_machines_get_one_document(run):
    result = run("--json", "my job.yaml", "--where", "local")
    assert json.loads(result.stdout) == {"path": "my job.yaml", "next": "scrimp run 'my job.yaml'"}
    assert "not there yet" in result.stderr


def test_the_schema_printed_is_the_schema_shipped(run):
    shipped = Path(scrimp.spec.__file__).with_name("job.schema.json").read_text(encoding="utf-8")
    assert run("--schema").stdout == shipped
    assert list(Path().iterdir()) == []


def test_an_unknown_place_is_refused_by_the_option(run):
    assert run("--where", "clod").exit_code == 2


def test_questions_go_to_stderr_and_offer_a_default():
    @click.command()
    def asking():
        answers = [
            verb._ask(Question(name="model", text="Which model?", default="m")),
            verb._ask(Question(name="where", text="Where?", default="any", choices=("local", "any"))),
        ]
        click.echo(" ".join(answers))

    result = CliRunner().invoke(asking, input="\nnowhere\nlocal\n")
    assert result.stdout == "m local\n"
    assert "Which model? [m]" in result.stderr
    assert "'nowhere' is not one of" in result.stderr


def scrimp_init(folder, *arguments, stdin):
    command = [sys.executable, "-m", "scrimp", "init", *arguments]
    return subprocess.run(command, cwd=folder, stdin=stdin, capture_output=True, text=True, check=False, timeout=60)


def test_an_existing_file_ends_with_exit_code_2_and_three_parts(tmp_path):
    (tmp_path / "job.yaml").write_text("mine", encoding="utf-8")
    done = scrimp_init(tmp_path, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert done.stdout == ""
    assert [line.split(":")[0].strip() for line in done.stderr.splitlines()] == ["error", "expected", "next"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no POSIX terminals")
def test_a_terminal_is_asked_what_the_flags_leave_open(tmp_path):
    import pty

    ours, theirs = pty.openpty()
    with os.fdopen(ours, "wb", buffering=0) as keyboard, os.fdopen(theirs, "rb") as terminal:
        keyboard.write(b"Qwen/Qwen3-8B\n\n")
        done = scrimp_init(tmp_path, "--data", "rows.jsonl", stdin=terminal)
    assert done.returncode == 0, done.stderr
    assert "Which model" in done.stderr
    assert "Which rows" not in done.stderr
    spec = read_spec(tmp_path / "job.yaml")
    assert (spec.model, spec.market.where) == ("Qwen/Qwen3-8B", "any")
