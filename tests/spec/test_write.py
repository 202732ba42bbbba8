"""The commented spec, the complete list of options and the schema."""

import json
import os
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import jsonschema
import pytest
import yaml

import scrimp.spec
from scrimp import methods
from scrimp.core.errors import SpecError
from scrimp.core.job import DataSpec, JobSpec, LimitsSpec, MethodChoice, TrainingSpec
from scrimp.core.plan import Plan
from scrimp.spec.document import parse_document
from scrimp.spec.fields import FIELD_EXAMPLES, FIELD_HELP
from scrimp.spec.kinds import choices_in, element_in, keys_of, record_in
from scrimp.spec.options import option_lines, spec_options
from scrimp.spec.read import load_yaml, parse_spec
from scrimp.spec.schema import job_schema, schema_text
from scrimp.spec.write import commented_spec, dump_yaml
from scrimp.spec.yaml_text import one_line

SPEC = JobSpec(
    model="Qwen/Qwen3-8B",
    data=DataSpec(path="rows.jsonl", system_prompt="Two\nlines: yes"),
    method=MethodChoice(name="lora", options={"rank": 8}),
    training=TrainingSpec(learning_rate=1e-4, packing="on"),
    limits=LimitsSpec(budget_usd=Decimal("7.5"), deadline_s=43200.0),
    sample_prompts=("What is a cat, and why do people keep them?", "A second question that is long enough for a line"),
)
SNAPSHOT = Path(__file__).with_name("options.txt")


def test_every_key_stands_in_the_commented_spec_with_its_help():
    lines = commented_spec(SPEC).splitlines()
    for key, option in spec_options().items():
        if key != "method.options":
            name = option.short.rsplit(".", 1)[-1]
            (line,) = [line for line in lines if line.lstrip(" #").startswith(f"{name}:") and option.help in line]
            assert line.endswith(f"# {option.help}")


def test_a_commented_spec_fits_a_wide_screen():
    spec = JobSpec(model="m", data=DataSpec(path="rows.jsonl"))
    assert max(len(line) for line in commented_spec(spec).splitlines()) <= 120


def test_what_is_set_is_written_and_defaults_are_commented_out():
    text = commented_spec(SPEC, schema="job.schema.json")
    assert text.startswith("# yaml-language-server: $schema=job.schema.json\n")
    written = yaml.safe_load(text)
    assert written["limits"] == {"budget": "7.5 USD", "deadline": "12h"}
    assert written["method"] == {"name": "lora", "rank": 8}
    assert set(written["training"]) == {"learning_rate", "packing"}
    assert "name" not in written
    assert "  # alpha: 32 " in text
    assert "  # epochs: 1.0 " in text


def commented_lines():
    lines = commented_spec(JobSpec(model="m", data=DataSpec(path="d.jsonl"), method=MethodChoice(name="lora"))).split(
        "\n"
    )
    return [index for index, line in enumerate(lines) if line.lstrip().startswith("# ") and index > 2], lines


@pytest.mark.parametrize("index", commented_lines()[0])
def test_each_commented_line_works_when_it_is_uncommented(index):
    lines = commented_lines()[1]
    text = "\n".join([*lines[:index], lines[index].replace("# ", "", 1), *lines[index + 1 :]])
    assert isinstance(parse_spec(text, where="job.yaml"), JobSpec)


def test_defaults_that_are_uncommented_change_nothing():
    default = JobSpec(model="m", data=DataSpec(path="d.jsonl"), method=MethodChoice(name="lora"))
    examples = {spec_options()[key].short.rsplit(".", 1)[-1] for key in FIELD_EXAMPLES}
    text = "\n".join(
        line.replace("# ", "", 1)
        if re.match(r" *# \w+: ", line) and line.lstrip(" #").split(":")[0] not in examples
        else line
        for line in commented_spec(default).split("\n")
    )
    spec = parse_spec(text, where="job.yaml")
    assert replace(spec, method=default.method) == default
    assert spec.method.options == {"rank": 16, "alpha": 32, "dropout": 0.0, "targets": ("all-linear",)}


def test_every_key_has_one_line_of_help_and_nothing_else_has():
    sections = {name for name, key in keys_of(JobSpec).items() if record_in(key.kind)}
    assert set(FIELD_HELP) == set(spec_options()) | sections
    assert set(FIELD_EXAMPLES) <= set(spec_options())
    for text in FIELD_HELP.values():
        assert 0 < len(text) <= 84
        assert "\n" not in text
        assert not text.endswith(".")


def test_keys_whose_default_says_nothing_have_an_example():
    from scrimp.spec.kinds import REQUIRED

    for key, option in spec_options().items():
        if option.default in (None, REQUIRED, ()):
            assert key in FIELD_EXAMPLES, key


def test_help_names_every_choice():
    for key, option in spec_options().items():
        # The tiers are too many for one line; `scrimp offers` and the schema list them.
        if element_in(option.kind) is None:
            for choice in choices_in(option.kind):
                assert choice in option.help, key


def test_no_method_has_an_option_that_hides_a_key_of_the_spec():
    for name in methods.names():
        assert not {"name", "options"} & set(keys_of(methods.get(name).options_type))


def test_the_list_of_options_is_the_one_that_was_agreed():
    text = "\n".join(option_lines()) + "\n"
    if os.environ.get("SCRIMP_UPDATE_GOLDEN"):
        SNAPSHOT.write_text(text, encoding="utf-8")
    assert text == SNAPSHOT.read_text(encoding="utf-8"), (
        "options changed: read the difference, then SCRIMP_UPDATE_GOLDEN=1 python -m pytest tests/spec/test_write.py"
    )


@pytest.mark.parametrize(
    "text", ["on", "no", "1e-3", "0o7", "089", "12:30", "1_0", "~", "", "=", "<<", "2024-01-01", ".inf"]
)
def test_text_that_looks_like_something_else_is_quoted(text):
    line = f"name: {one_line(text)}"
    assert parse_document(line, source="x").root.entries["name"].value == text
    assert yaml.safe_load(line) == {"name": text}


class TestSchema:
    def test_the_shipped_file_is_current(self):
        shipped = Path(scrimp.spec.__file__).with_name("job.schema.json").read_text(encoding="utf-8")
        assert shipped == schema_text(), "run: scrimp init --schema > src/scrimp/spec/job.schema.json"

    def test_it_is_a_schema(self):
        jsonschema.Draft202012Validator.check_schema(job_schema())
        assert json.loads(schema_text()) == job_schema()

    @pytest.mark.parametrize(
        "text",
        [
            "{model: m, data: d}",
            "{model: m, data: {path: d, max_rows: 3}, method: lora, training: }",
            "{model: m, data: d, method: {name: lora, rank: 8, options: {targets: q_proj}}}",
            "{model: m, data: d, method: {rank: 8}}",
            "{model: m, data: d, limits: {budget: 5 USD, deadline: 1d 6h}, market: {gpus: A100, max_price: 2 USD/h}}",
            "{model: m, data: d, limits: {budget_usd: 5, deadline_s: 3600}, market: {gpus: [A100], tiers: community}}",
            "{model: m, data: d, local: {price: $1, power: 60 W, electricity: 0.2 USD/kWh, grid: 400 g/kWh}}",
        ],
    )
    def test_it_takes_what_the_reader_takes(self, text):
        jsonschema.validate(yaml.safe_load(text), job_schema())
        parse_spec(text, where="job.yaml")

    @pytest.mark.parametrize(
        "text",
        [
            "{model: m}",
            "{model: 3, data: d}",
            "{model: m, data: d, epochs: 2}",
            "{model: m, data: d, training: {epoch: 2}}",
            "{model: m, data: d, training: {epochs: 0}}",
            "{model: m, data: d, training: {schedule: cosin}}",
            "{model: m, data: {path: d, eval_share: 1}}",
            "{model: m, data: d, method: lroa}",
            "{model: m, data: d, method: {name: full, rank: 8}}",
            "{model: m, data: d, method: {name: lora, rank: x}}",
            "{model: m, data: d, limits: {budget: 5 EUR}}",
            "{model: m, data: d, limits: {deadline: 12}}",
            "{model: m, data: d, limits: {budget: 5, budget_usd: 5}}",
            "{model: m, data: d, name: a/b}",
            "[model, data]",
        ],
    )
    def test_it_refuses_what_the_reader_refuses(self, text):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(yaml.safe_load(text), job_schema())
        with pytest.raises(SpecError):
            parse_spec(text, where="job.yaml")

    def test_every_key_is_described(self):
        schema = job_schema()
        for key, option in spec_options().items():
            section, _, name = key.rpartition(".")
            if section == "method":
                continue
            at = schema["properties"][section] if section else schema
            properties = next(form for form in at.get("anyOf", [at]) if "properties" in form)["properties"]
            assert properties[name]["description"] == option.help
            assert option.short.rsplit(".", 1)[-1] in properties


class TestEditedPlans:
    @pytest.fixture
    def text(self, plan):
        return dump_yaml(plan)

    def read(self, tmp_path, text):
        path = tmp_path / "plan.yaml"
        path.write_text(text, encoding="utf-8")
        return load_yaml(Plan, path)

    def test_a_plan_reads_as_itself(self, plan, text, tmp_path):
        assert self.read(tmp_path, text) == plan

    def test_a_histogram_takes_few_lines(self, plan):
        histogram = tuple((length, 1) for length in range(1, 1001))
        text = dump_yaml(replace(plan, profile=replace(plan.profile, length_histogram=histogram)))
        assert len(text.splitlines()) < len(dump_yaml(plan).splitlines()) + 120
        assert max(len(line) for line in text.splitlines()) <= 120

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ("learning_rate: 0.001", "learning_rat: 0.001", ["did you mean learning_rate"]),
            ("learning_rate: 0.001", "learning_rate: -1", ["chosen.recipe.learning_rate is -1", "above 0"]),
            ("micro_batch_tokens: 2048", "micro_batch_tokens: many", ["micro_batch_tokens", "a whole number"]),
            ("batch_rows: 16", "batch_rows: 0", ["chosen.recipe.batch_rows is 0", "from 1"]),
            ("market: spot", "market: spt", ["did you mean spot"]),
            ("created_at:", "created_ta:", ["did you mean created_at", "created_at is missing"]),
            ("budget_usd: '5'", "budget: -5", ["spec.limits.budget_usd is -5 USD"]),
            ("price_usd_per_hour: '1.5'", "price: 1.5 EUR", ["1.5 EUR", "price: 2 USD/h"]),
            ("{value: 1.0, low: 1.0, high: 1.0,", "{value: 9.0, low: 1.0, high: 1.0,", ["does not hold"]),
        ],
    )
    def test_a_slip_in_a_plan_is_answered_with_its_line(self, text, tmp_path, old, new, said):
        assert old in text
        with pytest.raises(SpecError) as caught:
            self.read(tmp_path, text.replace(old, new, 1))
        message = str(caught.value)
        for part in [f"plan.yaml:{text[: text.index(old)].count(chr(10)) + 1}:", *said]:
            assert part in message, message

    def test_a_missing_key_is_named(self, text, tmp_path):
        with pytest.raises(SpecError, match=r"chosen\.recipe\.micro_batch_tokens is missing"):
            self.read(tmp_path, text.replace("    micro_batch_tokens: 2048\n", "", 1))

    def test_the_friendly_forms_work_in_a_plan_too(self, text, tmp_path):
        plan = self.read(tmp_path, text.replace("budget_usd: '5'", "budget: 6 USD"))
        assert plan.spec.limits.budget_usd == Decimal(6)

    def test_an_empty_plan_is_no_plan(self, tmp_path):
        with pytest.raises(SpecError, match="empty"):
            self.read(tmp_path, "")
        with pytest.raises(SpecError, match="is a list"):
            self.read(tmp_path, "- a")

    def test_a_spec_is_no_plan_and_a_plan_is_no_spec(self, text, tmp_path):
        with pytest.raises(SpecError, match=r"job\.yaml is a plan, not a spec") as caught:
            parse_spec(text, where="job.yaml")
        assert caught.value.next_step == "scrimp run job.yaml"
        with pytest.raises(SpecError, match=r"plan\.yaml is a spec, not a plan"):
            self.read(tmp_path, dump_yaml(SPEC))
