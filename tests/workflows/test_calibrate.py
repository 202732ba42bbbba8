"""The user's loop: finished runs are recorded, learnt from and judged, and plans change by what was learnt."""

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scrimp.core.errors import SpecError
from scrimp.core.job import DataSpec, JobSpec, MarketSpec
from scrimp.core.recipe import ResolvedJob
from scrimp.core.run import RunEvent
from scrimp.ledger.store import Ledger
from scrimp.spec.events import event_line
from scrimp.workflows import corrections as correction_files
from scrimp.workflows.calibrate import calibrate, reset
from scrimp.workflows.corrections import formulas_version, read_corrections
from scrimp.workflows.execute import settle
from scrimp.workflows.formulas import features_of, formula_plan
from scrimp.workflows.open_run import OpenRun
from scrimp.workflows.plan import plan, plan_from, write_plan
from scrimp.workflows.world import World

EXAMPLES = Path(__file__).parents[2] / "examples"
SPEC = JobSpec(
    model="Qwen/Qwen3-8B",
    data=DataSpec(path=str(EXAMPLES / "data" / "devils_dictionary.jsonl"), max_rows=60),
    market=MarketSpec(where="cloud", gpus=("RTX4090",)),
)


class Home:
    """A ledger, run folders, and runs of one plan on one kind of hardware."""

    def __init__(self, folder):
        self.notes = []
        self.world = World(
            env={"HOME": str(folder), "SCRIMP_HOME": str(folder / "scrimp"), "HF_HUB_OFFLINE": "1"},
            now=lambda: datetime(2026, 12, 1, 12, tzinfo=UTC), cwd=folder, note=self.notes.append,
        )  # fmt: skip
        self.ledger = Ledger(self.world.ledger_url)
        self.file = folder / "scrimp" / "calibration.json"

    def plan(self):
        """The best plan of the test job."""
        plans = plan(SPEC, world=self.world)
        return plan_from(plans, plans.candidates[0], world=self.world)

    def ran(self, number, *, slow=1.0, large=1.0, hungry=None, cards=None, ending="finished"):
        """A run: steps `slow`, memory `large`, metered power `hungry` times what the formulas said of its plan."""
        made = self.plan()
        alone = formula_plan(made).chosen
        folder = self.world.cwd / "runs" / f"run-{number}"
        folder.mkdir(parents=True)
        write_plan(made, folder / "plan.yaml")
        events = _events(
            steps=made.steps.steps, step_s=slow * alone.time.step_s.value, peak=large * alone.memory.peak_bytes.value,
            around_s=alone.time.total_s.value - alone.time.train_s.value, ending=ending,
            energy_kwh=None if hungry is None else hungry * slow * alone.energy.energy_kwh.value,
            gpu_kwh=None if cards is None else cards * slow * alone.energy.gpu_kwh.value,
        )  # fmt: skip
        (folder / "events.jsonl").write_text("".join(map(event_line, events)), encoding="utf-8")
        job = ResolvedJob(
            run_id=folder.name, name="job", recipe=made.chosen.recipe, data=made.spec.data, steps=made.steps,
            run_folder=str(folder), price_usd_per_hour=made.chosen.offer.price_usd_per_hour,
        )  # fmt: skip
        opened = OpenRun(folder=folder, plan=made, job=job, created_at=self.world.now())
        return settle(opened, ledger=self.ledger, world=self.world).record


def _events(*, steps, step_s, peak, around_s, ending, **energy):
    def event(kind, step, at, **values):
        return RunEvent(at_s=1_000.0 + at, attempt=1, kind=kind, step=step, values=values)

    found = [event("started", 0, 0.0, pid=1, host="box", device="RTX4090", threads=1)]
    found += [
        event("step", step, around_s / 2 + step * step_s, loss=2.0, step_s=step_s) for step in range(1, steps + 1)
    ]
    end = around_s + steps * step_s
    if ending == "finished":
        found.append(event("measured", steps, end, peak_bytes=peak, peak_kind="allocated", **energy))
    return [*found, event(ending, steps, end)]


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


def _by_quantity(found):
    return {item.quantity: item for item in found.judged}


def test_a_finished_run_leaves_a_line_that_can_be_learnt_from(home):
    record = home.ran(1, slow=1.5)
    kept = home.ledger.run("run-1")
    lines = {line.quantity: line for line in kept.graded}

    assert set(lines) == {"peak_bytes", "step_s", "train_s", "total_s", "cost_usd"} | (set(lines) & {"energy_kwh"})
    assert all(line.formula == pytest.approx(line.forecast) for line in lines.values())
    assert lines["train_s"].measured == pytest.approx(1.5 * lines["train_s"].formula)
    assert kept == record
    assert kept.features["micro_batch_tokens"] == home.plan().chosen.recipe.micro_batch_tokens
    assert kept.scrimp_version


def test_plans_change_by_the_factor_that_was_learnt_and_come_back_after_a_reset(home):
    before = home.plan().chosen
    for number in range(6):
        home.ran(number, slow=1.5)
    assert home.plan().chosen == before, "nothing changes by itself"

    found = calibrate(world=home.world)
    learnt = read_corrections(home.world).find(
        "train_s", device=before.device.name, method=before.recipe.method.name, model=before.recipe.model
    )
    after = home.plan().chosen

    assert 1.4 < learnt.value < 1.5
    assert after.time.train_s.value == pytest.approx(learnt.value * before.time.train_s.value)
    assert after.time.train_s.low == pytest.approx(learnt.low * before.time.train_s.value)
    assert after.money.total_usd.value > before.money.total_usd.value
    assert "corrected by 6 of your runs" in after.time.train_s.basis
    assert after.memory == before.memory, "memory was right and stays"
    assert _by_quantity(found)["train_s"].after < 0.1 < _by_quantity(found)["train_s"].before
    assert not _by_quantity(found)["peak_bytes"].helps

    assert reset(world=home.world).removed
    assert home.plan().chosen == before
    assert not reset(world=home.world).removed


def test_runs_of_corrected_plans_teach_the_same_and_not_the_rest(home):
    """Were their corrected forecasts taken for the formulas', the factor would fall back to one."""
    for number in range(4):
        home.ran(number, slow=1.5)
    first = calibrate(world=home.world)
    for number in range(4, 12):
        record = home.ran(number, slow=1.5)
    lines = {line.quantity: line for line in record.graded}
    second = calibrate(world=home.world)

    assert lines["train_s"].forecast > 1.3 * lines["train_s"].formula
    assert lines["train_s"].inside
    value = {len(found.corrections): _by_quantity(found)["train_s"].value for found in (first, second)}
    assert all(1.35 < factor <= 1.5 for factor in value.values())
    assert _by_quantity(second)["train_s"].value >= _by_quantity(first)["train_s"].value
    assert second.replaced


def test_power_is_learnt_from_a_meter_and_from_nothing_else(home):
    for number in range(4):
        home.ran(number)
    assert "power_w" not in _by_quantity(calibrate(world=home.world))
    before = home.plan().chosen.energy.energy_kwh
    for number in range(4, 9):
        home.ran(number, hungry=1.4)
    found = _by_quantity(calibrate(world=home.world))["power_w"]

    assert (found.runs, found.helps) == (5, True)
    assert home.plan().chosen.energy.energy_kwh.value == pytest.approx(found.value * before.value)
    assert 1.3 < found.value < 1.4


def test_the_counters_of_cards_are_learnt_from_where_nothing_measures_the_machine(home):
    for number in range(4):
        home.ran(number, cards=0.7)
    found = _by_quantity(calibrate(world=home.world))["power_w"]

    assert (found.runs, found.helps) == (4, True)
    assert 0.7 < found.value < 0.8


def test_ranges_do_not_narrow_by_their_own_corrections(home):
    for number in range(4):
        home.ran(number, slow=1.5)
    first = calibrate(world=home.world)
    for number in range(4, 8):
        home.ran(number, slow=1.5)
    second = calibrate(world=home.world)

    assert _by_quantity(second)["train_s"].held_before == _by_quantity(first)["train_s"].held_before


def test_a_dry_run_writes_nothing(home):
    for number in range(3):
        home.ran(number, large=1.3)
    found = calibrate(dry_run=True, world=home.world)

    assert _by_quantity(found)["peak_bytes"].helps
    assert not found.written
    assert not home.file.exists()


def test_runs_that_did_not_finish_teach_nothing_and_a_busy_machine_little(home):
    for number, ending in enumerate(("interrupted", "failed", "stopped_at_cap")):
        home.ran(number, slow=9.0, ending=ending)
    assert calibrate(world=home.world).judged == ()
    for number in range(3, 9):
        home.ran(number, slow=1.2)
    usual = _by_quantity(calibrate(world=home.world))["train_s"].value
    home.ran(9, slow=12.0)
    assert _by_quantity(calibrate(world=home.world))["train_s"].value == pytest.approx(usual, rel=0.05)


def test_two_runs_are_too_few(home):
    for number in range(2):
        home.ran(number, slow=2.0)
    found = calibrate(world=home.world)

    assert found.corrections == ()
    assert {item.after for item in found.judged} == {None}


def test_a_run_whose_folder_is_gone_is_learnt_from_while_the_formulas_are_the_same(home, monkeypatch):
    for number in range(4):
        home.ran(number, slow=1.5)
    there = calibrate(world=home.world)
    shutil.rmtree(home.world.cwd / "runs")
    gone = calibrate(world=home.world)

    assert _by_quantity(gone)["train_s"].value == pytest.approx(_by_quantity(there)["train_s"].value)
    monkeypatch.setattr("scrimp.workflows.calibrate.formulas_version", lambda *version: version or "now")
    found = calibrate(world=home.world)
    assert found.judged == ()
    assert len(found.left_out) == 4
    assert "formulas of" in found.left_out[0].reason


def test_what_was_learnt_of_other_formulas_is_left_aside_and_said(home, monkeypatch):
    for number in range(3):
        home.ran(number, slow=1.5)
    calibrate(world=home.world)
    document = json.loads(home.file.read_text(encoding="utf-8"))
    home.file.write_text(json.dumps({**document, "scrimp_version": "0.0.9"}), encoding="utf-8")

    assert read_corrections(home.world) is None
    assert "scrimp calibrate renews it" in home.notes[-1]


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 2, "made_at": "2026-12-01", "corrections": []}'])
def test_a_damaged_file_stops_a_plan_with_the_way_out_and_is_replaced_by_the_next_calibration(home, text):
    home.file.parent.mkdir(parents=True)
    home.file.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        home.plan()
    assert "scrimp calibrate" in caught.value.next_step
    home.ledger.runs()
    assert not calibrate(world=home.world).replaced
    assert read_corrections(home.world).corrections == ()


def test_the_file_is_for_people_to_read(home):
    for number in range(3):
        home.ran(number, slow=1.5)
    calibrate(world=home.world)
    document = json.loads(home.file.read_text(encoding="utf-8"))

    assert document["schema"] == 1
    assert document["made_at"].startswith("2026-12-01")
    assert {item["quantity"] for item in document["corrections"]} == {"train_s"}
    assert [path.name for path in home.file.parent.glob("*.part")] == []


def test_formulas_keep_within_a_minor_version():
    assert formulas_version("0.1.3") == formulas_version("0.1.0") != formulas_version("0.2.0")
    assert correction_files.formulas_version()


def test_features_are_flat(home):
    made = home.plan()
    options = replace(made.chosen.recipe.method, options={"rank": 8, "targets": ("q_proj", "v_proj")})
    recipe = replace(made.chosen.recipe, method=options)
    found = features_of(replace(made, chosen=replace(made.chosen, recipe=recipe)))

    assert (found["option_rank"], found["option_targets"]) == (8, "q_proj+v_proj")
    assert all(isinstance(value, str | int | float) for value in found.values())
