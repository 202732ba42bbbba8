"""runs, show, ledger and report on a ledger with runs of every kind, at 80 columns, piped, as JSON, and empty."""

import csv
import importlib.util
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner

from scrimp.cli.main import cli
from scrimp.core.data import StepPlan
from scrimp.core.errors import ResourceError, SpecError, UnknownNameError
from scrimp.core.recipe import ResolvedJob
from scrimp.launch import lock
from scrimp.ledger.bill import BilledRun, MachineRate, bill
from scrimp.ledger.history import history_of
from scrimp.ledger.store import Ledger
from scrimp.spec.codec import dump_json
from scrimp.spec.events import event_line
from scrimp.spec.write import dump_yaml

TESTS = Path(__file__).parents[1]
RATE = MachineRate(
    price_usd_per_hour=Decimal("0.10"), power_w=60.0, electricity_usd_per_kwh=Decimal("0.13"), source="the spec"
)


def _load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


nouns = _load(TESTS / "ledger" / "run_factory.py")
plans = _load(TESTS / "report" / "plan_factory.py")


class Home:
    """A ledger and run folders, and the command line on top of them."""

    def __init__(self, folder):
        self.folder = folder
        self.ledger = Ledger(f"sqlite:///{folder}/ledger.db")
        self.now = datetime.now(UTC)

    def add(self, run_id, *, events, billed=True, days_ago=1, **changes):
        """A run of those events, with its folder."""
        folder = self.folder / "runs" / run_id
        folder.mkdir(parents=True)
        (folder / "events.jsonl").write_text("".join(map(event_line, events)))
        plan = plans.make_plan()
        (folder / "plan.yaml").write_text(dump_yaml(plan))
        steps = StepPlan(
            steps=120, epochs=1.0, rows=9, total_tokens=9, trained_tokens=9, largest_step_tokens=9, longest_row_tokens=9
        )
        job = ResolvedJob(
            run_id=run_id, name="quickstart", recipe=plan.chosen.recipe, data=plan.spec.data, steps=steps,
            run_folder=str(folder), price_usd_per_hour=Decimal("0.10"),
        )  # fmt: skip
        (folder / "resolved.json").write_text(dump_json(job))
        history = history_of(events)
        created = self.now - timedelta(days=days_ago)
        record = nouns.make_record(
            run_id=run_id, folder=str(folder), created_at=created, steps_planned=120, steps_done=history.steps_done,
            eval_loss_before=history.loss_before, eval_loss_after=history.loss_after, attempts=len(history.attempts),
            **changes,
        )  # fmt: skip
        if billed:
            project = changes.get("project", "default")
            owner = BilledRun(run_id=run_id, project=project, rate=RATE)
            self.ledger.record(*bill(history, run=owner, process_ended=True).entries)
        self.ledger.save_run(record)
        return folder

    def run(self, *arguments, columns=80):
        env = {"SCRIMP_HOME": str(self.folder), "COLUMNS": str(columns), "NO_COLOR": "1", "SCRIMP_LEDGER": None}
        return CliRunner().invoke(cli, list(arguments), env=env)

    def text(self, *arguments, columns=80):
        done = self.run(*arguments, columns=columns)
        assert done.exception is None, done.exception
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.text(*arguments, "--json"))


@pytest.fixture
def empty(tmp_path):
    return Home(tmp_path)


@pytest.fixture
def home(empty):
    """Three runs: one finished, one interrupted, one that failed in another project."""
    at_s = (empty.now - timedelta(days=3)).timestamp()
    empty.add("20250601-120000-quickstart", events=nouns.make_events(steps=120, at_s=at_s), days_ago=3)
    interrupted = nouns.make_events(steps=40, ending="interrupted", at_s=at_s + 86_400)
    empty.add("20250602-120000-quickstart", events=interrupted, days_ago=2, state="interrupted", graded=())
    failed = nouns.make_events(steps=10, ending="failed", at_s=at_s + 2 * 86_400)
    empty.add("20250603-090000-support", events=failed, state="failed", project="support", name="support", graded=())
    return empty


def test_an_empty_ledger_is_friendly_and_says_what_to_type(empty):
    assert empty.text("runs").splitlines() == ["no runs yet", "next: scrimp run examples/quickstart.yaml"]
    assert empty.text("ledger").splitlines() == ["nothing was spent yet", "next: scrimp run examples/quickstart.yaml"]
    assert empty.json("runs")["runs"] == []
    assert empty.json("ledger")["total_usd"] == "0"
    done = empty.run("show")
    assert isinstance(done.exception, UnknownNameError)
    assert "scrimp run" in done.exception.next_step


def test_runs_newest_first_within_80_columns(home):
    text = home.text("runs")
    assert max(map(len, text.splitlines())) <= 80
    rows = text.splitlines()
    assert rows[0].split()[:5] == ["run", "state", "loss", "spent", "age"]
    assert [row.split()[0] for row in rows[1:4]] == [
        "20250603-090000-support",
        "20250602-120000-quickstart",
        "20250601-120000-quickstart",
    ]
    assert "4.000 -> 3.500" in rows[3]
    assert "next: scrimp resume 20250602-120000-quickstart" in text
    assert "\x1b" not in text


def test_a_wide_terminal_shows_every_column(home):
    heading = home.text("runs", columns=180).splitlines()[0].split()
    assert heading == [
        "run", "name", "project", "state", "model", "method", "machine", "loss", "spent", "forecast", "age",
    ]  # fmt: skip


def test_runs_are_filtered(home):
    def found(*options):
        return [run["run_id"] for run in home.json("runs", *options)["runs"]]

    assert found("--state", "interrupted") == ["20250602-120000-quickstart"]
    assert found("--project", "support") == ["20250603-090000-support"]
    assert found("--name", "quickstart", "--limit", "1") == ["20250602-120000-quickstart"]
    assert home.text("runs", "--project", "none").splitlines() == ["no run meets these filters", "next: scrimp runs"]


def test_json_spends_what_the_entries_add_up_to(home):
    run = home.json("runs", "--state", "finished")["runs"][0]
    assert Decimal(run["spent_usd"]) == home.ledger.run(run["run_id"]).spent_usd > 0
    assert run["eval_loss_after"] == 3.5
    assert run["folder_is_here"]
    assert len(run["graded"]) == 2


def test_show_tells_all_about_a_finished_run(home):
    text = home.text("show", "20250601")
    assert max(map(len, text.splitlines())) <= 80
    for words in (
        "held-out loss 4.000 -> 3.500", "forecast against measured", "attempts", "0 to 120", "electricity, attempt 1",
        "together, exactly $0.00", "120 of 120 steps", "finished", "scrimp report 20250601-120000-quickstart",
    ):  # fmt: skip
        assert words in text, words


def test_show_gives_the_electricity_and_its_carbon_from_the_bill(home):
    carbon = home.json("show", "20250601")["carbon"]
    assert carbon["energy_source"] == "60 W as configured x time"
    assert carbon["carbon_gco2e"] == pytest.approx(carbon["energy_kwh"] * 475)
    assert carbon["method"] == "stated"
    assert "60 W as configured x time" in home.text("show", "20250601", columns=200)


def test_show_says_how_to_go_on_with_an_interrupted_run(home):
    text = home.text("show", "20250602")
    assert "scrimp resume 20250602-120000-quickstart" in text
    assert "memory at its peak" in text, "the forecast, as nothing is measured yet"
    document = home.json("show", "20250602")
    assert document["next"] == "scrimp resume 20250602-120000-quickstart"
    assert document["attempts_in_full"][0]["ending"] == "interrupted"
    assert set(document["forecasts"]) == {
        "peak_bytes", "step_s", "train_s", "total_s", "cost_usd", "energy_kwh",
    }  # fmt: skip
    assert {item["name"] for item in document["files"]} == {"plan.yaml", "events.jsonl"}


def test_show_takes_last_and_a_folder(home, monkeypatch):
    assert home.json("show")["run_id"] == "20250603-090000-support"
    monkeypatch.chdir(home.folder / "runs")
    assert home.json("show", "20250601-120000-quickstart")["run_id"] == "20250601-120000-quickstart"
    assert home.json("show", str(home.folder / "runs" / "20250602-120000-quickstart"))["state"] == "interrupted"


def test_an_unknown_run_is_answered_with_the_nearest(home):
    done = home.run("show", "20250601-120000-quickstrat")
    assert isinstance(done.exception, UnknownNameError)
    assert "20250601-120000-quickstart" in done.exception.expected
    assert "is the beginning of 3 runs" in str(home.run("show", "2025").exception)


def test_a_run_whose_folder_is_gone_is_still_shown(home):
    folder = home.folder / "runs" / "20250602-120000-quickstart"
    folder.rename(home.folder / "elsewhere")
    assert "not on this machine" in home.text("show", "20250602", columns=200)
    assert "resume" not in home.text("runs").splitlines()[-1]
    done = home.run("report", "20250602")
    assert isinstance(done.exception, ResourceError)
    assert "-o report.html" in done.exception.next_step


def test_a_plan_that_cannot_be_read_costs_only_the_forecast(home):
    (home.folder / "runs" / "20250602-120000-quickstart" / "plan.yaml").write_text("chosen: {")
    done = home.run("show", "20250602", "--json")
    assert json.loads(done.stdout)["forecasts"] == {}
    assert "plan.yaml cannot be read" in done.stderr


def test_a_running_run_shows_its_meter(home):
    events = nouns.make_events(steps=30, ending=None, at_s=home.now.timestamp())
    folder = home.add("20250604-100000-live", events=events, billed=False, days_ago=0, state="running", graded=())
    with lock.take(folder) as held:
        held.name_holder(4242)
        run = home.json("runs", "--state", "running")["runs"][0]
        assert (run["state"], run["steps_done"], run["spent_usd"]) == ("running", 30, "0.03")
        assert "running 30/120" in home.text("runs")
        shown = home.json("show", "20250604")
        assert shown["trained_by"]["pid"] == 4242
        assert shown["entries"] == []
        assert "so far" in home.text("show", "20250604")


def test_a_run_that_was_killed_with_everything_is_billed_at_the_next_look(home, monkeypatch):
    from scrimp.workflows import execute, report

    monkeypatch.setattr(execute, "write_run_report", report.write_run_report)
    events = nouns.make_events(steps=30, ending=None, at_s=home.now.timestamp())
    home.add("20250604-100000-lost", events=events, billed=False, days_ago=0, state="running", graded=())
    before = home.ledger.spent_usd()
    done = home.run("ledger", "--json")
    assert "20250604-100000-lost ended without a word; recorded as interrupted" in done.stderr
    total = Decimal(json.loads(done.stdout)["total_usd"])
    assert total == home.ledger.spent_usd() > before
    again = home.run("runs", "--json")
    assert again.stderr == ""
    lost = json.loads(again.stdout)["runs"][0]
    assert (lost["state"], lost["steps_done"]) == ("interrupted", 30)
    assert home.ledger.spent_usd() == total


def test_a_running_run_on_another_machine_is_left_alone(home):
    record = replace(home.ledger.run("20250601"), run_id="far", state="running", folder="/on/another/machine")
    home.ledger.save_run(record)
    done = home.run("runs", "--state", "running", "--json")
    assert [run["run_id"] for run in json.loads(done.stdout)["runs"]] == ["far"]
    assert done.stderr == ""


def test_the_ledger_lists_entries_and_their_exact_sum(home):
    text = home.text("ledger")
    assert max(map(len, text.splitlines())) <= 80
    assert f"exactly ${home.ledger.spent_usd():f}, the sum of 6 entries" in " ".join(text.split())


@pytest.mark.parametrize(
    ("by", "labels"),
    [
        ("project", ["default", "support"]),
        ("provider", ["local"]),
        ("kind", ["electricity", "machine"]),
        ("model", ["smollm2-135m-instruct"]),
        ("run", ["20250601-120000-quickstart", "20250602-120000-quickstart", "20250603-090000-support"]),
    ],
)
def test_sums_by_anything_make_the_total(home, by, labels):
    document = home.json("ledger", "--by", by)
    assert [item["label"] for item in document["sums"]] == labels
    assert sum(Decimal(item["amount_usd"]) for item in document["sums"]) == Decimal(document["total_usd"])
    assert labels[0] in home.text("ledger", "--by", by)


def test_sums_by_day_are_days_of_utc(home):
    days = [item["label"] for item in home.json("ledger", "--by", "day")["sums"]]
    assert days == [f"{home.now - timedelta(days=ago):%Y-%m-%d}" for ago in (3, 2, 1)]


def test_the_ledger_is_filtered_by_time_run_and_kind(home):
    assert len(home.json("ledger", "--since", "60h")["entries"]) == 4
    assert len(home.json("ledger", "--until", "60h")["entries"]) == 2
    assert len(home.json("ledger", "--since", "2020-01-01")["entries"]) == 6
    assert home.json("ledger", "--since", "2999-01-01T00:00+02:00")["entries"] == []
    assert {entry["run_id"] for entry in home.json("ledger", "--run", "last")["entries"]} == {"20250603-090000-support"}
    assert len(home.json("ledger", "--kind", "electricity", "--project", "default")["entries"]) == 2
    assert home.text("ledger", "--project", "x").splitlines() == ["no entry meets these filters", "next: scrimp ledger"]


def test_a_time_that_is_none_is_refused(home):
    done = home.run("ledger", "--since", "yesterday")
    assert isinstance(done.exception, SpecError)
    assert "7d" in done.exception.next_step


def test_csv_holds_every_digit(home):
    rows = list(csv.DictReader(StringIO(home.text("ledger", "--csv"))))
    assert len(rows) == 6
    assert sum(Decimal(row["amount_usd"]) for row in rows) == home.ledger.spent_usd()
    for row in rows:
        assert Decimal(row["amount_usd"]) == Decimal(row["quantity"]) * Decimal(row["unit_usd"])
        assert datetime.fromisoformat(row["started_at"]).tzinfo is not None


def test_the_report_is_written_into_the_folder_or_elsewhere(home):
    path = Path(home.text("report", "20250601").strip())
    assert path == home.folder / "runs" / "20250601-120000-quickstart" / "report.html"
    assert "held-out loss fell" in path.read_text(encoding="utf-8")
    other = home.folder / "a" / "b.html"
    document = home.json("report", "20250602", "-o", str(other))
    assert document == {
        "run_id": "20250602-120000-quickstart", "path": str(other), "size_bytes": other.stat().st_size,
    }  # fmt: skip


def test_a_report_that_cannot_be_written_says_where_else(home):
    (home.folder / "file").write_text("")
    done = home.run("report", "last", "-o", str(home.folder / "file" / "r.html"))
    assert isinstance(done.exception, ResourceError)
    assert done.exception.exit_code == 8
    assert "-o" in done.exception.next_step


def test_looking_at_runs_loads_nothing_heavy(home):
    import os
    import subprocess
    import sys

    probe = "import sys; from scrimp.cli.main import cli; cli(['runs'], standalone_mode=False); print(*sys.modules)"
    env = {**os.environ, "SCRIMP_HOME": str(home.folder)}
    done = subprocess.run([sys.executable, "-c", probe], env=env, capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert not loaded & {"pydantic", "yaml", "jinja2", "torch", "transformers", "numpy", "tokenizers"}
