"""scrimp init: answers to a commented spec."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from scrimp.core.errors import ResourceError, SpecError
from scrimp.spec.read import read_spec
from scrimp.spec.schema import schema_text
from scrimp.spec.write import SCHEMA_LINE
from scrimp.workflows.init import FLAG_KEYS, InitRequest, init, questions
from scrimp.workflows.world import World


@pytest.fixture
def world(tmp_path):
    return World(env={}, now=lambda: datetime(2026, 1, 2, tzinfo=UTC), cwd=tmp_path, note=lambda text: None)


def test_without_answers_a_spec_with_the_bundled_model_is_written(world, tmp_path):
    made = init(InitRequest(), world=world)
    spec = read_spec(tmp_path / "job.yaml")
    assert spec.model == "smollm2-135m-instruct"
    assert spec.market.where == "any"
    assert made.path == Path("job.yaml")
    assert made.next_step == "scrimp plan job.yaml"
    assert made.notes == ("data/rows.jsonl is not there yet",)


def test_answers_end_up_in_the_spec(world, tmp_path):
    answers = {
        "model": "Qwen/Qwen3-8B",
        "data": "tatsu-lab/alpaca",
        "where": "local",
        "method": "qlora",
        "budget": "7.50 USD",
        "deadline": "1d 6h",
    }
    assert answers.keys() == FLAG_KEYS.keys()
    made = init(InitRequest(answers=answers), world=world)
    spec = read_spec(tmp_path / "job.yaml")
    assert (spec.model, spec.data.path, spec.market.where) == ("Qwen/Qwen3-8B", "tatsu-lab/alpaca", "local")
    assert (spec.method.name, spec.limits.budget_usd, spec.limits.deadline_s) == ("qlora", Decimal("7.5"), 108000)
    assert made.next_step == "scrimp run job.yaml"
    assert "data set on the hub" in made.notes[0]
    text = (tmp_path / "job.yaml").read_text(encoding="utf-8")
    assert "budget: 7.50 USD" in text
    assert "# rank: 16" in text


def test_only_open_questions_are_asked(world):
    asked = []

    def ask(question):
        asked.append(question.name)
        return {"model": "m", "where": "cloud"}[question.name]

    made = init(InitRequest(answers={"data": "x.jsonl"}), world=world, ask=ask)
    assert asked == ["model", "where"]
    assert (made.spec.model, made.spec.data.path, made.spec.market.where) == ("m", "x.jsonl", "cloud")


def test_a_data_file_that_lies_here_is_suggested(world, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "support.jsonl").write_text("{}", encoding="utf-8")
    (tmp_path / "data" / "notes.txt").write_text("", encoding="utf-8")
    assert {item.name: item.default for item in questions(tmp_path)}["data"] == "data/support.jsonl"
    assert init(InitRequest(), world=world).notes == ("data/support.jsonl is there",)


def test_a_misspelt_data_file_is_answered_with_the_nearest(world, tmp_path):
    (tmp_path / "support.jsonl").write_text("{}", encoding="utf-8")
    made = init(InitRequest(answers={"data": "suport.jsonl"}), world=world)
    assert made.notes == ("suport.jsonl is not there yet; did you mean support.jsonl?",)


def test_paths_in_the_file_are_seen_from_the_file(world, tmp_path):
    (tmp_path / "rows.jsonl").write_text("{}", encoding="utf-8")
    made = init(InitRequest(path=Path("jobs/new/support"), answers={"data": "rows.jsonl"}), world=world)
    assert made.path == Path("jobs/new/support.yaml")
    assert made.spec.data.path == "../../rows.jsonl"
    assert made.notes == ("rows.jsonl is there",)
    assert Path(read_spec(tmp_path / made.path).data.path) == tmp_path / "rows.jsonl"


def test_editors_find_the_schema_beside_the_spec(world, tmp_path):
    made = init(InitRequest(path=Path("jobs/a.yaml")), world=world)
    first = (tmp_path / "jobs" / "a.yaml").read_text(encoding="utf-8").splitlines()[0]
    named = tmp_path / "jobs" / first.removeprefix(SCHEMA_LINE)
    assert named == tmp_path / made.schema_path
    assert named.read_text(encoding="utf-8") == schema_text()


def test_a_file_is_replaced_only_when_told_so_and_nothing_is_asked_before(world, tmp_path):
    (tmp_path / "job.yaml").write_text("mine", encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        init(InitRequest(), world=world, ask=lambda question: pytest.fail("asked for nothing"))
    assert "--force" in caught.value.expected
    assert (tmp_path / "job.yaml").read_text(encoding="utf-8") == "mine"
    init(InitRequest(force=True), world=world)
    assert read_spec(tmp_path / "job.yaml").name == "job"


def test_a_folder_gets_the_usual_name_in_it(world, tmp_path):
    (tmp_path / "jobs").mkdir()
    assert init(InitRequest(path=Path("jobs")), world=world).path == Path("jobs/job.yaml")


def test_a_name_of_another_kind_is_refused(world):
    with pytest.raises(SpecError, match=r"scrimp init job\.yaml"):
        init(InitRequest(path=Path("job.json")), world=world)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"where": "clod"}, ['--where: market.where is "clod"', "did you mean cloud?", "--where cloud"]),
        ({"budget": "-5"}, ["--budget: limits.budget_usd is -5 USD", "--budget '5 USD'"]),
        ({"budget": "5 EUR"}, ["not an amount of money", "--budget '5 USD'"]),
        ({"deadline": "12"}, ["without a unit", "--deadline 12h"]),
        ({"method": "lroa"}, ['"lroa"', "--method lora"]),
        ({"model": " "}, ["--model: model is empty", "--model Qwen/Qwen3-8B"]),
    ],
)
def test_an_impossible_answer_is_refused_under_the_name_of_its_flag_and_nothing_is_written(
    world, tmp_path, answers, said
):
    with pytest.raises(SpecError) as caught:
        init(InitRequest(answers=answers), world=world)
    for part in said:
        assert part in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(world, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ResourceError, match="cannot be written"):
        init(InitRequest(path=Path("file/job.yaml")), world=world)


@pytest.mark.parametrize(
    ("model", "doubts"),
    [
        ("smollm2-135m-instruct", ()),
        ("Qwen/Qwen3-8B", ()),
        ("somebody/new-model", ()),
        ("weights", ()),
        ("qwenn3-8b", ("the model qwenn3-8b is not known; did you mean Qwen3-8B or Qwen3-4B?",)),
    ],
)
def test_a_model_that_means_nothing_is_said_and_written_all_the_same(world, tmp_path, model, doubts):
    (tmp_path / "weights").mkdir()
    made = init(InitRequest(answers={"model": model}), world=world)
    assert made.doubts == doubts
    assert model in (tmp_path / made.path).read_text(encoding="utf-8")
