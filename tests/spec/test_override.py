"""key=value on the command line."""

from decimal import Decimal

import pytest

from scrimp.core.errors import SpecError
from scrimp.core.job import DataSpec, MethodChoice
from scrimp.spec.read import parse_spec, read_spec, spec_from_flags

FILE = """
model: m
data: {path: rows.jsonl, max_length_tokens: 512}
method: {name: lora, rank: 16, options: {alpha: 32}}
limits: {budget_usd: 5}
training: {epochs: 2}
"""


def read(*overrides, text=FILE):
    return parse_spec(text, where="job.yaml", overrides=overrides)


def refused(*overrides, text=FILE):
    with pytest.raises(SpecError) as caught:
        read(*overrides, text=text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("override", "get", "value"),
    [
        ("training.epochs=3", lambda spec: spec.training.epochs, 3.0),
        ("training.learning_rate=1e-4", lambda spec: spec.training.learning_rate, 1e-4),
        (" training.seed = 7 ", lambda spec: spec.training.seed, 7),
        ("limits.budget=7.50 USD", lambda spec: spec.limits.budget_usd, Decimal("7.50")),
        ('limits.budget="7 USD"', lambda spec: spec.limits.budget_usd, Decimal(7)),
        ("limits.budget_usd=7", lambda spec: spec.limits.budget_usd, Decimal(7)),
        ("limits.budget=null", lambda spec: spec.limits.budget_usd, None),
        ("limits.deadline=1d 6h", lambda spec: spec.limits.deadline_s, 108000.0),
        ("market.gpus=A100", lambda spec: spec.market.gpus, ("A100",)),
        ("market.gpus=[A100, H100]", lambda spec: spec.market.gpus, ("A100", "H100")),
        ("market={where: cloud}", lambda spec: spec.market.where, "cloud"),
        ("sample_prompts=['a: b', c]", lambda spec: spec.sample_prompts, ("a: b", "c")),
        ("model=Qwen/Qwen3-8B", lambda spec: spec.model, "Qwen/Qwen3-8B"),
        ("model='123'", lambda spec: spec.model, "123"),
        ("data.system_prompt=Be brief: #1 = you", lambda spec: spec.data.system_prompt, "Be brief: #1 = you"),
        ("training.packing=off", lambda spec: spec.training.packing, "off"),
        ("method.rank=8", lambda spec: spec.method.options, {"rank": 8, "alpha": 32}),
        ("method.options.rank=8", lambda spec: spec.method.options, {"rank": 8, "alpha": 32}),
        ("method.alpha=64", lambda spec: spec.method.options, {"rank": 16, "alpha": 64}),
        ("method.targets=q_proj", lambda spec: spec.method.options["targets"], ("q_proj",)),
        ("method=qlora", lambda spec: spec.method, MethodChoice(name="qlora", options={"rank": 16, "alpha": 32})),
        ("method={name: full}", lambda spec: spec.method, MethodChoice(name="full")),
        ("method.options={}", lambda spec: spec.method, MethodChoice(name="lora")),
        ("data=other.jsonl", lambda spec: spec.data, DataSpec(path="other.jsonl", max_length_tokens=512)),
        ("data={path: other.jsonl}", lambda spec: spec.data, DataSpec(path="other.jsonl")),
        ("data.max_rows=10", lambda spec: spec.data.max_rows, 10),
    ],
)
def test_an_override_replaces_what_stands_at_its_key(override, get, value):
    assert get(read(override)) == value


def test_overrides_reach_below_short_forms_and_into_what_is_not_there():
    spec = read("method.rank=8", "data.max_rows=3", "local.power=90 W", text="model: m\ndata: d\nmethod: lora\n")
    assert spec.method == MethodChoice(name="lora", options={"rank": 8})
    assert spec.data == DataSpec(path="d", max_rows=3)
    assert spec.local.power_w == 90


def test_the_last_of_several_overrides_counts():
    assert read("training.seed=1", "training.seed=2").training.seed == 2


def test_an_override_mends_what_is_wrong_in_the_file():
    assert read("training.epochs=1", text=FILE.replace("epochs: 2", "epochs: two")).training.epochs == 1
    assert read("model=m", text="data: d\n").model == "m"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("training.epoch=2", ["training has no key", "did you mean epochs?", "training.epochs=1.0"]),
        ("training.gradient_checkpointing=on", ["training has no key", "did you mean checkpointing"]),
        ("epochs=2", ["the spec has no key", "did you mean training.epochs?", "training.epochs=1.0"]),
        ("trainin.epochs=2", ["did you mean training?", "training.epochs=1.0"]),
        ("training.epochs=two", ['training.epochs is "two"', "a number", "training.epochs=1.0"]),
        ("training.epochs=", ["training.epochs is empty"]),
        ("training.epochs=0", ["training.epochs is 0", "above 0", "training.epochs=1.0"]),
        ("training.schedule=cosin", ["did you mean cosine?", "training.schedule=cosine"]),
        ("limits.budget=5 EUR", ["not an amount of money", "limits.budget=5 USD"]),
        ("limits.deadline=12", ["without a unit", "limits.deadline=12h"]),
        ("method.rnak=8", ["did you mean rank", "method.rank=16"]),
        ("method=lroa", ["lora", "method.name=lora"]),
        ("method=full", ['method "full" has no option "rank"']),
        ("training.epochs.x=1", ["training.epochs is one value"]),
        ("method.options.rank.x=1", ["is one value"]),
        ("training", ["no key=value pair", "training.epochs=2"]),
        ("=3", ["no key=value pair"]),
        ("market.gpus=[A100", ["never closed"]),
        ("market={where: cloud, where: any}", ["a second time"]),
        ("training=3", ["training is 3"]),
        ("limits={budget: -1}", ["limits.budget_usd is -1 USD"]),
    ],
)
def test_a_wrong_override_is_answered_under_its_own_name(override, said):
    message = refused(override)
    for part in [*said, override]:
        assert part in message, message


def test_a_method_that_lacks_the_options_of_the_file_can_be_chosen_from_the_command_line():
    assert read("method=full", "method.options={}").method == MethodChoice(name="full")


def test_a_path_in_an_override_is_seen_from_the_working_directory(tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text(FILE.replace("max_length", "eval_path: test.jsonl, max_length"), encoding="utf-8")
    spec = read_spec(file, overrides=["data.path=here.jsonl"])
    assert spec.data.path == "here.jsonl"
    assert spec.data.eval_path == str(tmp_path / "test.jsonl")


def test_flags_are_text_and_are_named_in_messages():
    flags = {
        "model": ("--model", "123"),
        "data.path": ("--data", "a: b.jsonl"),
        "limits.budget_usd": ("--budget", "$5"),
    }
    spec = spec_from_flags(flags)
    assert (spec.model, spec.data.path, spec.limits.budget_usd) == ("123", "a: b.jsonl", Decimal(5))
    with pytest.raises(SpecError) as caught:
        spec_from_flags(flags | {"market.where": ("--where", "clod")})
    assert caught.value.what == '--where: market.where is "clod"'
    assert "did you mean cloud?" in caught.value.expected
