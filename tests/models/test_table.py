"""The table of known models: every row against what was published, and the names people type."""

import re

import pytest

from scrimp.models.dialects import DIALECTS
from scrimp.models.table import KnownModel, find_known, known_models, known_shapes

ROWS = known_models()


@pytest.mark.parametrize("row", ROWS, ids=[row.hub_ids[0] for row in ROWS])
def test_row_reproduces_the_published_parameters(row: KnownModel):
    assert row.shape.params == pytest.approx(row.published_params, rel=0.005)


@pytest.mark.parametrize("row", ROWS, ids=[row.hub_ids[0] for row in ROWS])
def test_row_is_whole(row: KnownModel):
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+", hub_id) for hub_id in row.hub_ids)
    assert row.shape.family in DIALECTS
    assert row.shape.gated_mlp == DIALECTS[row.shape.family].gated_mlp
    assert row.params_source
    assert row.licence
    assert re.search(r"20\d\d-\d\d-\d\d", row.shape.source)
    assert set(row.names.values()) <= set(row.hub_ids)
    assert row.shape.heads % row.shape.kv_heads == 0


def test_some_models_that_everybody_asks_for_are_there():
    shapes = known_shapes()
    assert len(shapes) >= 90
    assert shapes["Qwen/Qwen3-8B"].params == 8_190_735_360
    assert shapes["meta-llama/Llama-3.1-70B"].layers == 80
    assert shapes["meta-llama/Llama-3.1-70B-Instruct"].name == "meta-llama/Llama-3.1-70B-Instruct"


def test_no_name_means_two_models():
    seen: dict[str, str] = {}
    for row in ROWS:
        for name, hub_id in row.names.items():
            assert seen.setdefault(name, hub_id) == hub_id, name


@pytest.mark.parametrize(
    ("typed", "hub_id"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("META-LLAMA/llama-3.1-8b", "meta-llama/Llama-3.1-8B"),
        ("llama-3.1-8b-instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("llama3.1-8b", "meta-llama/Llama-3.1-8B"),
        ("llama2-7b", "meta-llama/Llama-2-7b-hf"),
        ("qwen2.5:7b", "Qwen/Qwen2.5-7B"),
        ("Qwen3_8B", "Qwen/Qwen3-8B"),
        ("gemma3-4b-it", "google/gemma-3-4b-it"),
        ("mistral-7b-instruct", "mistralai/Mistral-7B-Instruct-v0.3"),
        ("  phi-4 ", "microsoft/phi-4"),
    ],
)
def test_names_as_people_type_them(typed: str, hub_id: str):
    found = find_known(typed)
    assert found is not None
    assert found[0] == hub_id
    assert found[1].name == hub_id


@pytest.mark.parametrize("typed", ["llama-27b", "llama", "", "somebody/Llama-3.1-8B", "llama-3-1-8b-x"])
def test_names_that_are_not_there_are_not_guessed(typed: str):
    assert find_known(typed) is None
