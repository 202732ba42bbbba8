"""`scrimp plan` as typed, on the shipped catalogue: for people, for grep, as JSON, as a plan file, and its errors."""

import json
import shutil
import sys

import pytest

from scrimp.cli.main import main
from scrimp.core.plan import Plan, PlanSet
from scrimp.spec.codec import load
from scrimp.workflows.plan import read_plan

ROWS = "".join(
    json.dumps({"prompt": f"Define word {n}.", "completion": "An answer of some words. " * (n % 7 + 1)}) + "\n"
    for n in range(40)
)
SPEC = """\
model: Qwen/Qwen3-8B
data: {path: rows.jsonl}
market: {where: cloud}
limits: {budget: 5 USD, deadline: 10h}
"""


@pytest.fixture
def scrimp(tmp_path, monkeypatch, capsys):
    """A function (arguments) -> (exit code, stdout, stderr), run in a folder with job.yaml and rows.jsonl."""
    (tmp_path / "rows.jsonl").write_text(ROWS, encoding="utf-8")
    (tmp_path / "job.yaml").write_text(SPEC, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in ("COLUMNS", "HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "SCRIMP_CACHE"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["scrimp", "plan", *arguments])
        code = 0
        try:
            main()
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else 1
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_the_first_screen_answers_everything(scrimp, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = scrimp("job.yaml")
    assert (code, err) == (0, "")
    first = " ".join(out.splitlines()[:2])
    assert first.startswith("Cheapest: ")
    for word in (" on 1x ", " at ", "$", "min", "memory", "GiB"):
        assert word in first
    for heading in ("Fastest: ", "job ", "data ", "in detail", "recipe ", "memory ", "time ", "cost ", "energy "):
        assert heading in out
    for word in ("does not fit", "price unknown", "dominated", "the newest ", "next "):
        assert word in out
    assert "scrimp run job.yaml market.where=local" in " ".join(out.split())
    assert "gpurentalprices.com" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out


def test_a_pipe_gets_one_line_a_plan(scrimp):
    _, out, _ = scrimp("job.yaml", "--all")
    lines = [line for line in out.splitlines() if "1x RTX4090" in line and "runpod " in line and "lora" in line]
    assert lines
    for word in ("$", "of 24.0", "min ("):
        assert word in lines[0]


def test_top_and_all_change_how_much_is_shown(scrimp):
    _, few, _ = scrimp("job.yaml", "--top", "1")
    _, many, _ = scrimp("job.yaml", "--all")
    assert "more with --all" in few
    assert "more with --all" not in many
    assert len(many.splitlines()) > 5 * len(few.splitlines())


def test_json_is_one_document_that_reads_back_as_a_plan_set(scrimp):
    code, out, err = scrimp("job.yaml", "--json", "--top", "3")
    assert (code, err) == (0, "")
    values = json.loads(out)
    assert len(values["candidates"]) == 3
    assert values["candidates_found"] > 100
    assert values["written"] is None
    plans = load(PlanSet, {key: value for key, value in values.items() if key in PlanSet.__slots__}, where="stdout")
    assert plans.front[0] == plans.candidates[0]
    assert {item.kind for item in plans.rejected} >= {"memory", "price_unknown", "dominated"}


def test_co2_is_compared_in_one_way_of_counting_and_says_which(scrimp):
    providers = "market.providers=[aws,gcp,runpod]"
    _, out, _ = scrimp("job.yaml", providers)
    text = " ".join(out.split())
    assert "CO2e compared by" in text
    assert "≠ not to be compared" in text
    _, out, _ = scrimp("job.yaml", providers, "--json", "--all")
    values = json.loads(out)
    comparison = values["carbon_comparison"]
    # runpod's places are not known: world average, beside the others and not among them.
    assert comparison["apart"] == sum(item["offer"]["provider"] == "runpod" for item in values["candidates"])
    assert comparison["compared"] == len(values["candidates"]) - comparison["apart"]
    figures = {
        rank: figure["mass_gco2e"]["value"]
        for rank, item in enumerate(values["candidates"], start=1)
        for figure in item["energy"]["carbon"]
        if figure["grid"]["method"] == comparison["method"] and figure["grid"]["reach"] != "world"
    }
    assert min(figures, key=figures.get) == comparison["least"]


def test_a_plan_file_reads_back_as_the_picked_plan(scrimp, tmp_path):
    code, out, _ = scrimp("job.yaml", "--pick", "3", "-o", "plans/third.yaml", "--json")
    assert code == 0
    values = json.loads(out)
    assert values["written"] == "plans/third.yaml"
    plan = read_plan(tmp_path / "plans" / "third.yaml")
    assert isinstance(plan, Plan)
    third = load(PlanSet, {k: v for k, v in values.items() if k in PlanSet.__slots__}, where="stdout").candidates[2]
    assert plan.chosen == third
    assert [point.chosen for point in plan.alternatives].index(True) == 2
    assert plan.spec.data.path.endswith("rows.jsonl")
    assert (tmp_path / "plans" / "third.yaml").read_text(encoding="utf-8").startswith("# A plan that scrimp made.")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("market.where=cloud",), "rent that machine, install scrimp on it, and there: scrimp run job.yaml"),
        (("market.where=local",), "scrimp plan job.yaml {} market.where=local -o plan.yaml, then scrimp run plan.yaml"),
        (("market.where=local", "-o", "plan.yaml"), "scrimp run plan.yaml"),
    ],
)
def test_the_next_command_is_one_that_works(scrimp, arguments, words):
    model = "model=HuggingFaceTB/SmolLM2-135M-Instruct"
    _, out, _ = scrimp("job.yaml", model, *arguments)
    assert words.format(model) in " ".join(out.split())


def test_overrides_count(scrimp):
    _, out, _ = scrimp("job.yaml", "market.gpus=[L40S]", "method.name=qlora", "market.spot=only")
    assert out.startswith("Cheapest: qlora on 1x L40S")
    assert "spot" in out.splitlines()[0]


def test_the_tokenizer_at_hand_is_used(scrimp, tmp_path, tiny_tokenizer_folder):
    shutil.copytree(tiny_tokenizer_folder, tmp_path / "model")
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 1024,
        "max_position_embeddings": 512, "tie_word_embeddings": True,
    }  # fmt: skip
    (tmp_path / "model" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    code, out, _ = scrimp("job.yaml", "model=./model", "market.where=local")
    assert code == 0
    assert "counted with the model's tokenizer" in out
    assert "on this machine" in out.splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("job.yaml", "market.gpus=[A10O]"), 4, ("A10O", "Did you mean A10")),
        (("job.yaml", "market.providers=[runpot]"), 4, ("runpot", "Did you mean runpod")),
        (("job.yaml", "model=qwen3-8bb"), 4, ("qwen3-8bb",)),
        (("job.yaml", "limits.budget=0.001"), 5, ("over the budget of $0.0010", "more budget: limits.budget=")),
        (("job.yaml", "limits.deadline=60s"), 5, ("past the deadline of 60.0 s", "more time: limits.deadline=")),
        (("job.yaml", "method.name=full", "market.gpus=[RTX4090]", "market.max_gpus=1"), 5, ("nothing fits", "qlora")),
        (
            ("job.yaml", "market.where=local", "training.epochs=1000", "limits.deadline=2h"),
            5,
            ("on rented machines too: market.where=any",),
        ),
        (("job.yaml", "--pick", "99999"), 2, ("there is no plan 99999",)),
        (("nowhere.yaml",), 2, ("nowhere.yaml", "job.yaml")),
        (("job.yaml", "data.path=missing.jsonl"), 3, ("missing.jsonl",)),
    ],
)
def test_errors_have_three_parts_and_an_exit_code(scrimp, arguments, code, words):
    found, out, err = scrimp(*arguments)
    assert found == code
    assert out == ""
    assert err.startswith("error: ")
    assert "next: " in err
    for word in words:
        assert word in err


def test_an_error_under_json_is_one_document(scrimp):
    code, out, err = scrimp("job.yaml", "limits.budget=0.001", "--json")
    values = json.loads(out)
    assert (code, values["exit_code"], err) == (5, 5, "")
    assert values["error"] == "NoPlanError"
    assert "limits.budget=" in values["next"]
