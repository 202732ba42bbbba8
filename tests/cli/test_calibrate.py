"""scrimp calibrate: a table of before and after, what is used, what was left out; JSON; empty; reset."""

import importlib.util
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from scrimp.cli.main import cli
from scrimp.core.run import Graded
from scrimp.ledger.store import Ledger

_spec = importlib.util.spec_from_file_location("run_factory", Path(__file__).parents[1] / "ledger" / "run_factory.py")
nouns = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(nouns)


class Home:
    """A ledger of runs whose folders are gone, and the command line on top of it."""

    def __init__(self, folder):
        self.folder = folder
        self.ledger = Ledger(f"sqlite:///{folder}/ledger.db")

    def ran(self, number, *, slow=1.0, version=None, device="CPU 2 cores (AVX-512 bf16)"):
        """A finished run that took `slow` times what the formulas said, with memory as foretold."""
        from scrimp import __version__

        def line(quantity, forecast, measured):
            return Graded(
                quantity=quantity, forecast=forecast, low=0.8 * forecast, high=1.3 * forecast, measured=measured,
                basis="formula", formula=forecast,
            )  # fmt: skip

        graded = (line("peak_bytes", 2e9, 2e9 * (1 + number / 1000)), line("train_s", 100.0, 100.0 * slow))
        self.ledger.save_run(
            nouns.make_record(
                run_id=f"run-{number}", folder="/gone", device=device, graded=graded,
                scrimp_version=__version__ if version is None else version,
            )
        )  # fmt: skip

    def run(self, *arguments):
        # Wide enough that no cell is broken, whatever the folder is called.
        return CliRunner().invoke(cli, ["calibrate", *arguments], catch_exceptions=False, env={"COLUMNS": "400"})


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIMP_HOME", str(tmp_path))
    monkeypatch.delenv("SCRIMP_LEDGER", raising=False)
    return Home(tmp_path)


def test_the_table_shows_errors_before_and_after_and_what_is_used(home):
    for number in range(6):
        home.ran(number, slow=1.5)
    found = home.run()

    assert found.exit_code == 0
    for words in (
        "6 finished runs: 1 of 2 forecasts are better when corrected", "time in steps", "50.0%", "no: not better",
        "Forecasts are multiplied by", "lora", f"written to {home.folder / 'calibration.json'}", "--reset",
    ):  # fmt: skip
        assert words in found.output, words


def test_json_has_all_of_it_and_a_dry_run_writes_nothing(home):
    for number in range(6):
        home.ran(number, slow=1.5)
    home.ran(6, slow=3.0, version="0.0.1")
    document = json.loads(home.run("--json", "--dry-run").output)

    judged = {item["quantity"]: item for item in document["judged"]}
    assert (judged["train_s"]["used"], judged["peak_bytes"]["used"]) == (True, False)
    assert judged["train_s"]["before"] == pytest.approx(0.5)
    assert judged["train_s"]["after"] < 0.1
    assert {item["quantity"] for item in document["corrections"]} == {"train_s"}
    assert [item["run_id"] for item in document["left_out"]] == ["run-6"]
    assert document["written"] is False
    assert not (home.folder / "calibration.json").exists()


def test_an_empty_ledger_says_what_to_type(home):
    found = home.run("--dry-run")
    assert "no finished run to learn from yet" in found.output
    assert "scrimp run examples/quickstart.yaml" in found.output


def test_too_few_runs_say_how_many_are_needed(home):
    home.ran(0, slow=2.0)
    assert "needs 3 runs" in home.run("--dry-run").output


def test_reset_forgets_once(home):
    for number in range(3):
        home.ran(number, slow=1.5)
    home.run()
    assert (home.folder / "calibration.json").exists()
    assert json.loads(home.run("--reset", "--json").output)["removed"] is True
    assert not (home.folder / "calibration.json").exists()
    assert "nothing to forget" in home.run("--reset").output


def test_reset_and_dry_run_do_not_go_together(home):
    found = home.run("--reset", "--dry-run")
    assert found.exit_code == 2
    assert "do not go together" in found.output
