"""Specs as people write them, and every way to get one wrong."""

from decimal import Decimal
from pathlib import Path

import pytest

from scrimp.core.errors import SpecError
from scrimp.core.job import DataSpec, JobSpec, LimitsSpec, LocalMachineSpec, MarketSpec, MethodChoice, TrainingSpec
from scrimp.spec.check import BOUNDS
from scrimp.spec.options import spec_options
from scrimp.spec.read import parse_spec, read_spec

MINIMAL = "model: m\ndata: rows.jsonl\n"
EXAMPLES = Path(__file__).parents[2] / "examples"


def refused(text: str, *overrides: str) -> str:
    with pytest.raises(SpecError) as caught:
        parse_spec(text, where="job.yaml", overrides=overrides)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_the_friendly_forms_mean_the_exact_keys():
    friendly = parse_spec(
        """
model: Qwen/Qwen3-8B
data: rows.jsonl
method: {name: lora, rank: 8, targets: q_proj}
training:
limits: {budget: 5 USD, deadline: 1d 6h}
market: {gpus: A100, max_price: 2 USD/h, max_price_age: 30d, tiers: community}
local: {price: $0.50/h, power: 60 W, electricity: 0.13 USD/kWh, grid: 475 g/kWh}
sample_prompts: Who are you?
""",
        where="job.yaml",
    )
    exact = JobSpec(
        model="Qwen/Qwen3-8B",
        data=DataSpec(path="rows.jsonl"),
        method=MethodChoice(name="lora", options={"rank": 8, "targets": ("q_proj",)}),
        limits=LimitsSpec(budget_usd=Decimal(5), deadline_s=30 * 3600.0),
        market=MarketSpec(
            gpus=("A100",),
            max_price_usd_per_hour=Decimal(2),
            max_price_age_s=30 * 86400.0,
            tiers=("community",),
        ),
        local=LocalMachineSpec(price_usd_per_hour=Decimal("0.50"), power_w=60.0),
        sample_prompts=("Who are you?",),
    )
    assert friendly == exact


@pytest.mark.parametrize(
    "method",
    [
        "{name: lora, options: {rank: 8, alpha: 16}}",
        "{name: lora, rank: 8, alpha: 16}",
        "{name: lora, rank: 8, options: {alpha: 16}}",
    ],
)
def test_options_of_a_method_may_stand_beside_its_name(method):
    spec = parse_spec(f"{MINIMAL}method: {method}", where="job.yaml")
    assert spec.method == MethodChoice(name="lora", options={"rank": 8, "alpha": 16})


def test_options_without_a_method_belong_to_auto():
    assert parse_spec(f"{MINIMAL}method: {{rank: 8}}", where="job.yaml").method == MethodChoice(options={"rank": 8})


@pytest.mark.parametrize(
    ("written", "budget"),
    [("5", "5"), ("5.50", "5.5"), ("$5", "5"), ("5 USD", "5"), ("'5 usd'", "5"), ("0.1", "0.1"), ("1_000", "1000")],
)
def test_money(written, budget):
    assert parse_spec(f"{MINIMAL}limits: {{budget: {written}}}", where="job.yaml").limits.budget_usd == Decimal(budget)


@pytest.mark.parametrize(
    ("key", "written", "seconds"),
    [("deadline", "12h", 43200), ("deadline", "90m", 5400), ("deadline", "1d 6h", 108000), ("deadline_s", "60", 60)],
)
def test_durations(key, written, seconds):
    assert parse_spec(f"{MINIMAL}limits: {{{key}: {written}}}", where="job.yaml").limits.deadline_s == seconds


def test_yaml_is_read_by_its_newer_rules():
    spec = parse_spec(
        f"{MINIMAL}name: 'no'\ntraining: {{packing: on, checkpointing: none, learning_rate: 1e-3, "
        "max_steps: 10_000}\nmarket: {regions: [no, 12:30]}\n",
        where="job.yaml",
    )
    assert (spec.training.packing, spec.training.checkpointing) == ("on", "none")
    assert spec.training.learning_rate == 0.001
    assert spec.training.max_steps == 10000
    assert spec.market.regions == ("no", "12:30")


def test_a_spec_of_the_size_of_the_first_example_is_read():
    spec = parse_spec(
        """
model: smollm2-135m-instruct
data: {path: data/x_train.jsonl, eval_path: data/x_test.jsonl, max_length_tokens: 512}
method: {name: lora, rank: 16}
training: {max_steps: 60, batch_rows: 8, learning_rate: 1.0e-3}
market: {where: local}
sample_prompts: [What is a cat?, "Say: hello"]
""",
        where="quickstart.yaml",
    )
    assert spec.data == DataSpec(path="data/x_train.jsonl", eval_path="data/x_test.jsonl", max_length_tokens=512)
    assert spec.training == TrainingSpec(max_steps=60, batch_rows=8, learning_rate=0.001)
    assert spec.sample_prompts == ("What is a cat?", "Say: hello")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_the_shipped_examples_are_right_and_their_data_is_there(path):
    assert Path(read_spec(path).data.path).exists()


WRONG = {
    "unknown key": (
        "training:\n  epoch: 2\n",
        ["job.yaml:4:3", 'training has no key "epoch"', "did you mean epochs?", "epochs: 1.0"],
    ),
    "key of another section": (
        "learning_rate: 1e-3\n",
        ["job.yaml:3:1", "did you mean training.learning_rate?", "training: {learning_rate: 0.0002}"],
    ),
    "key like no other": ("zzz: 1\n", ["job.yaml:3:1", 'no key "zzz"', "one of model, data,"]),
    "section": ("trainin: {epochs: 2}\n", ["job.yaml:3:1", "did you mean training?", "training: {epochs: 1.0}"]),
    "word for a number": ("training:\n  epochs: two\n", ["job.yaml:4:11", '"two"', "a number", "epochs: 1.0"]),
    "quoted number": ("training: {batch_rows: '8'}\n", ["job.yaml:3:24", "a whole number", "batch_rows: 8"]),
    "truth for a number": ("training: {epochs: true}\n", ["job.yaml:3:20", "is true", "a number"]),
    "half a row": ("training: {batch_rows: 2.5}\n", ["job.yaml:3:24", "2.5", "a whole number"]),
    "number for a name": ("name: 2024\n", ["job.yaml:3:7", "text, in quotes", "name: '2024'"]),
    "unknown choice": ("training: {schedule: cosin}\n", ["job.yaml:3:22", "did you mean cosine?", "schedule: cosine"]),
    "empty value": ("training: {epochs: }\n", ["job.yaml:3", "training.epochs is empty", "epochs: 1.0"]),
    "no epochs": ("training: {epochs: 0}\n", ["job.yaml:3:20", "training.epochs is 0", "above 0", "epochs: 1.0"]),
    "no rows": ("training: {batch_rows: 0}\n", ["job.yaml:3:24", "batch_rows is 0", "from 1", "batch_rows: 8"]),
    "share above one": ("eval_share: 1\n", ["did you mean data.eval_share?"]),
    "negative budget": ("limits: {budget: -5}\n", ["job.yaml:3:18", "-5 USD", "above 0 USD", "budget: 5 USD"]),
    "negative budget in words": ("limits: {budget: -5 USD}\n", ["job.yaml:3:18", "-5 USD", "budget: 5 USD"]),
    "other money": ("limits: {budget: 5 EUR}\n", ["job.yaml:3:18", "5 EUR", "budget: 5 USD"]),
    "deadline without a unit": ("limits: {deadline: 12}\n", ["job.yaml:3:20", "without a unit", "deadline: 12h"]),
    "deadline of a second": ("limits: {deadline: 1s}\n", ["job.yaml:3:20", "1.00 s", "deadline: 12h"]),
    "no learning": ("training: {learning_rate: 0}\n", ["job.yaml:3:27", "above 0", "learning_rate: 0.0002"]),
    "rate that is no number": ("training: {learning_rate: .nan}\n", ["job.yaml:3:27", "nan", "above 0"]),
    "endless": ("training: {weight_decay: .inf}\n", ["job.yaml:3:26", "inf", "from 0 to 1"]),
    "huge whole number": (f"training: {{seed: {'9' * 390}}}\n", ["job.yaml:3:18", "from 0 to 4294967295", "seed: 0"]),
    "budget that is no number": ("limits: {budget: .nan}\n", ["job.yaml:3:18"]),
    "step below a row": (
        "training: {batch_tokens: 1024}\n",
        ["job.yaml:3:26", "2048 tokens (data.max_length_tokens)", "batch_tokens: 2048"],
    ),
    "spot at home": ("market: {where: local, spot: only}\n", ["job.yaml:3:30", "where: cloud or any", "spot: auto"]),
    "name that is a path": ("name: a/b\n", ["job.yaml:3:7", "a/b", "letters, digits", "name: job"]),
    "no name": ("name: ''\n", ["job.yaml:3:7", "letters, digits"]),
    "nothing for a name": ("output_dir: '  '\n", ["job.yaml:3:13", "output_dir is empty", "output_dir: runs"]),
    "empty card": ("market: {gpus: [A100, '']}\n", ["job.yaml:3:16", "market.gpus is empty"]),
    "list for a word": ("name: [a]\n", ["job.yaml:3:7", "name is a list", "text"]),
    "mapping for a word": ("name: {a: b}\n", ["job.yaml:3:7", "name is a mapping"]),
    "word for a section": ("training: fast\n", ["job.yaml:3:11", "the keys are epochs", "training: {epochs: 1.0}"]),
    "no space in a section": ("training:\n  epochs:2\n", ["job.yaml:4:3", "epochs: 2", "a space after the colon"]),
    "unknown method": ("method: lroa\n", ["job.yaml:3:9", '"lroa"', "lora", "example:  method: lora"]),
    "unknown method's name": ("method: {name: lroa}\n", ["job.yaml:3:16", '"lroa"', "example:  name: lora"]),
    "unknown option": ("method: {name: lora, rnak: 8}\n", ["job.yaml:3:22", '"rnak"', "did you mean rank", "rank: 16"]),
    "option of no method": ("method: {rnak: 8}\n", ["job.yaml:3:10", "no method has an option", "rank"]),
    "option of full": ("method: {name: full, rank: 8}\n", ["job.yaml:3:22", 'method "full" has no option "rank"']),
    "method's name misspelt": ("method: {nmae: lora}\n", ["job.yaml:3:10", "did you mean name"]),
    "impossible option": ("method: {name: lora, rank: 0}\n", ["job.yaml:3:28", "rank", "1 to 1024", "rank: 16"]),
    "option of a wrong type": ("method: {name: lora, rank: x}\n", ["job.yaml:3:28", "rank", "type int"]),
    "mapping as an option": ("method: {name: lora, rank: {a: 1}}\n", ["job.yaml:3:28", "rank"]),
    "list as an option's list": ("method: {name: lora, targets: [[q_proj]]}\n", ["job.yaml:3:31", "targets"]),
    "method that is a list": ("method: [lora]\n", ["job.yaml:3:9", "method is a list", "method: {name: auto}"]),
    "the same key twice": (
        "training:\n  epochs: 2\n  seed: 1\n  epochs: 3\n",
        ["job.yaml:6:3", 'the key "epochs" a second time (first in line 4)', "epochs: 2  or  epochs: 3"],
    ),
    "the same value twice": ("limits: {budget: 5, budget_usd: 6}\n", ["job.yaml:3:21", "second time"]),
    "the same option twice": (
        "method: {name: lora, rank: 8, options: {rank: 9}}\n",
        ["job.yaml:3:22", '"rank" gives rank a second time'],
    ),
    "tab": ("training:\n\tepochs: 2\n", ["job.yaml:4:1", "a tab", "spaces"]),
    "indentation": ("training:\n   epochs: 2\n  seed: 1\n", ["job.yaml:5:3", "indentation", "same column"]),
    "no space after a colon": ("name:x\nproject: y\n", ["job.yaml:3:5", "no space after the colon", "name: x"]),
    "two colons": ("name: a: b\n", ["job.yaml:3:8", "a second colon", "quotes"]),
    "open quote": ('name: "x\nproject: y\n', ["job.yaml:3:7", "never closed"]),
    "open bracket": ("sample_prompts: [a, b\nproject: y\n", ["job.yaml:3:17", "never closed"]),
    "key alone": ("epochs\n", ["job.yaml:3", "a key without a colon"]),
    "two documents": ("---\nmodel: n\n", ["job.yaml:3:1", "a second document"]),
    "reserved character": ("name: @home\n", ["job.yaml:3:7", 'name: "@home"']),
    "tag": ("name: !!python/name:os.system x\n", ["job.yaml:3:7", "tag", "python/name:os.system"]),
    "alias to nothing": ("name: *x\n", ["job.yaml:3:7", "defined nowhere"]),
    "value in itself": ("market: {gpus: &a [*a]}\n", ["job.yaml:3:16", "contains itself"]),
    "list as a key": ("? [a]\n: b\n", ["job.yaml:3:3", "in the place of a key"]),
    "control character": ("name: a\x07b\n", ["job.yaml:3:8", "control character"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG.keys())
def test_a_mistake_is_answered_with_place_expectation_and_example(text, said):
    message = refused(MINIMAL + text)
    for part in said:
        assert part in message, message
    assert "write, for example:  " in message


def test_a_missing_key_is_named_with_what_it_is_for():
    message = refused("training: {epochs: 1}\n")
    assert "model is missing" in message
    assert "model: Qwen/Qwen3-8B" in message
    assert "data is missing" in message
    assert "data.path is missing" in refused("model: m\ndata: {split: x}\n")


def test_evaluating_on_the_training_rows_is_refused():
    message = refused("model: m\ndata: {path: a.jsonl, eval_path: a.jsonl}\n")
    assert "job.yaml:2:34: data.eval_path is the file that is trained on" in message


def test_all_mistakes_are_reported_at_once_from_top_to_bottom():
    message = refused(
        "modle: m\ndata: {eval_share: 1.5}\ntraining:\n  epochs: two\n  batch_rows: 0\nlimits: {budget: x}\n",
        "training.seed=-1",
    )
    places = ["job.yaml:1:1", "job.yaml:2:7", "job.yaml:2:20", "job.yaml:4:11", "job.yaml:5:15", "job.yaml:6:18"]
    found = [message.index(place) for place in [*places, 'override "training.seed=-1"']]
    assert found == sorted(found)
    # The six places, the missing model and the override.
    assert message.startswith("8 mistakes in the spec")


def test_the_line_is_shown_with_a_mark_under_the_column():
    assert "\n    3 | name: [a]\n      |       ^\n" in refused(f"{MINIMAL}name: [a]\n")


def test_a_very_long_line_is_shown_in_part():
    message = refused(f"{MINIMAL}sample_prompts: [{', '.join(['x'] * 500)}, [1]]\n")
    assert max(len(line) for line in message.splitlines()) < 140
    assert "[1]" in message


@pytest.mark.parametrize("key", BOUNDS)
def test_every_number_has_bounds_and_the_example_for_a_bad_one_is_a_line_that_works(key):
    option = spec_options()[key]
    section, _, name = option.key.rpartition(".")
    head = "model: m\n" + ("" if section == "data" else "data: d\n") + f"{section}:\n"
    needed = "  path: d\n" if section == "data" else ""
    message = refused(f"{head}{needed}  {name}: -1\n")
    line = head.count("\n") + needed.count("\n") + 1
    assert f"job.yaml:{line}:" in message
    example = message.rsplit("write, for example:  ", 1)[1]
    fixed = parse_spec(f"{head}{needed}  {example}\n", where="job.yaml")
    assert isinstance(fixed, JobSpec)


def test_every_number_of_a_spec_has_bounds():
    import typing

    numbers = {
        key for key, option in spec_options().items()
        if {int, float, Decimal} & {option.kind, *typing.get_args(option.kind)}
    }  # fmt: skip
    assert numbers == set(BOUNDS)


# Unknown keys of `method` are options of the method; they have tests of their own.
@pytest.mark.parametrize("key", [key for key in spec_options() if not key.startswith("method.")])
def test_a_misspelt_key_is_answered_with_the_right_one(key):
    section, _, name = spec_options()[key].short.rpartition(".")
    typo = f"{name}x"
    text = f"{MINIMAL}{section}: {{{typo}: 1}}\n" if section and section != "data" else f"{MINIMAL}{typo}: 1\n"
    assert name in refused(text).split("did you mean ")[1].split("?")[0]


def test_an_empty_spec_says_what_a_spec_needs():
    for text in ("", "# only a comment\n", "---\n"):
        message = refused(text)
        assert "job.yaml" in message
        assert "model" in message
        assert "scrimp init job.yaml" in message


def test_a_list_is_no_spec():
    assert "job.yaml:1:1: the spec is a list" in refused("- model\n")


def test_brackets_without_end_are_refused_and_not_followed():
    for text in ("[" * 100_000, "[" * 100_000 + "]" * 100_000, "- " * 100_000):
        assert "job.yaml:2: brackets or lists too deep" in refused(f"a:\n {text}")


def test_repeated_references_do_not_grow():
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 60)]
    assert 'no key "a0"' in refused(MINIMAL + "\n".join(lines))


class TestFiles:
    def test_a_missing_file_is_answered_with_the_nearest_in_its_folder(self, tmp_path):
        (tmp_path / "quickstart.yaml").write_text(MINIMAL, encoding="utf-8")
        with pytest.raises(SpecError) as caught:
            read_spec(tmp_path / "quikstart.yaml")
        assert "quikstart.yaml does not exist" in caught.value.what
        assert str(tmp_path / "quickstart.yaml") in caught.value.expected

    def test_a_missing_folder_and_a_folder_without_specs(self, tmp_path):
        with pytest.raises(SpecError, match="nor does its folder"):
            read_spec(tmp_path / "no" / "job.yaml")
        with pytest.raises(SpecError, match="holds none"):
            read_spec(tmp_path / "job.yaml")

    def test_a_folder_is_no_spec(self, tmp_path):
        with pytest.raises(SpecError, match="cannot be read"):
            read_spec(tmp_path)

    def test_a_file_in_another_encoding(self, tmp_path):
        file = tmp_path / "job.yaml"
        file.write_bytes("model: m\nname: Müller\n".encode("latin-1"))
        with pytest.raises(SpecError, match=r"job\.yaml:2:8: byte 0xfc is not UTF-8"):
            read_spec(file)

    def test_a_byte_order_mark_and_windows_lines_do_no_harm(self, tmp_path):
        file = tmp_path / "job.yaml"
        file.write_bytes(b"\xef\xbb\xbfmodel: m\r\ndata: hub/rows\r\nname: x\r\n")
        assert read_spec(file).name == "x"
        file.write_bytes(b"\xef\xbb\xbfmodel: m\r\ndata: hub/rows\r\nnmae: x\r\n")
        with pytest.raises(SpecError, match=r"job\.yaml:3:1"):
            read_spec(file)


def test_a_key_whose_value_was_refused_is_not_called_missing_too():
    with pytest.raises(SpecError) as caught:
        parse_spec("model: a\ndata: [rows.jsonl]\n", where="job.yaml")
    assert "data is a list" in str(caught.value)
    assert "missing" not in str(caught.value)
    with pytest.raises(SpecError, match="data is missing"):
        parse_spec("model: a\n", where="job.yaml")


def test_a_spec_that_may_not_be_read_is_not_written_anew(tmp_path, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "job.yaml").write_text("model: a", encoding="utf-8")
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(SpecError, match="Permission denied") as caught:
        read_spec(tmp_path / "job.yaml")
    assert caught.value.next_step.startswith("ls -l")
