"""The README.md beside a result."""

from dataclasses import replace

import pytest

from scrimp.core.job import MethodChoice
from scrimp.train.card import CardFacts, card

pytestmark = pytest.mark.train

FACTS = CardFacts(
    base_model="Qwen/Qwen3-8B",
    data_sha256="d" * 64,
    model_sha256="m" * 64,
    rows=1234,
    loss_before=4.32571,
    loss_after=3.7391,
    versions={"torch": "2.13.0", "bitsandbytes": "none"},
)


def test_it_says_what_the_adapter_was_made_from_and_how_to_load_it(make_job):
    job = make_job(learning_rate=2e-4)
    text = card(job, FACTS)
    assert text.startswith("---\nbase_model: Qwen/Qwen3-8B\nlibrary_name: peft\n")
    assert "1,234 rows (sha256 dddddddddddd)" in text
    assert "4.3257 before, 3.7391 after" in text
    assert "learning rate 0.0002" in text
    assert "torch 2.13.0" in text
    assert "bitsandbytes" not in text, "it was not there"
    code = text.partition("```python\n")[2].partition("```")[0]
    compile(code, "README.md", "exec")
    assert "from_pretrained('Qwen/Qwen3-8B')" in code
    assert job.data.path not in text, "no path of this machine"


def test_a_base_without_a_hub_id_is_not_put_where_the_hub_would_refuse_it(make_job):
    text = card(make_job(), replace(FACTS, base_model="/models/own"))
    assert "base_model:" not in text
    assert "from_pretrained('/models/own')" in text


def test_a_whole_model_is_loaded_without_its_base(make_job):
    text = card(make_job(method=MethodChoice(name="full")), replace(FACTS, loss_before=None, loss_after=None))
    assert "library_name: transformers" in text
    assert "peft" not in text
    assert "no rows were held out" in text


def test_the_bundled_model_is_told_from_the_one_on_the_hub(make_job):
    text = card(make_job(), replace(FACTS, base_model="HuggingFaceTB/SmolLM2-135M-Instruct"))
    assert "4-bit weights" in text
    assert "4-bit" not in card(make_job(), FACTS)
