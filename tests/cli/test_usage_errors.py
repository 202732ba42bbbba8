"""What click itself refuses: text for people, the usual document for programs, exit code 2 for both."""

import json
import sys

import pytest

from scrimp.cli.main import main, verb_files

WRONG = [
    *((verb, "--no-such-option") for verb in verb_files()),
    ("pln",),
    ("plan",),
    ("ledger", "--by", "nothing"),
    ("data", "shwo"),
]


@pytest.fixture
def scrimp(monkeypatch, capsys):
    """A function (arguments) -> (exit code, stdout, stderr)."""

    def run(*arguments: str) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["scrimp", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        return (stopped.value.code, *capsys.readouterr())

    return run


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_a_wrong_call_under_json_is_one_document(scrimp, arguments):
    code, out, err = scrimp(*arguments, "--json")
    document = json.loads(out)
    assert (code, document["exit_code"], document["error"], err) == (2, 2, "SpecError", "")
    assert document["what"]
    assert document["next"].startswith("scrimp")
    assert document["next"].endswith("--help")


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_a_wrong_call_is_clicks_own_text_for_people(scrimp, arguments):
    code, out, err = scrimp(*arguments)
    assert (code, out) == (2, "")
    assert "Usage: scrimp" in err
    assert "Error: " in err


def test_a_stop_under_json_leaves_a_document_too(scrimp, monkeypatch):
    def stop():
        raise KeyboardInterrupt

    monkeypatch.setattr("scrimp.cli.main.cli", lambda **_: stop())
    code, out, err = scrimp("plan", "job.yaml", "--json")
    assert (code, json.loads(out)["exit_code"], err) == (130, 130, "")
    assert scrimp("plan", "job.yaml") == (130, "", "stopped\n")
