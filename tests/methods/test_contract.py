"""What every file in methods/ must hold. A new file is found by itself; nothing here names one."""

import dataclasses
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from scrimp import methods
from scrimp.core.errors import SpecError, UnknownNameError
from scrimp.core.model import ModelShape
from scrimp.core.recipe import WeightDtype
from scrimp.methods.linear import linears
from scrimp.methods.method import MethodOptions, TuningMethod
from scrimp.models.dialects import DIALECTS
from scrimp.models.table import known_shapes

NAMES = methods.names()
SHAPES = [
    shape
    for shape in known_shapes().values()
    if shape.name
    in {
        "HuggingFaceTB/SmolLM2-135M",
        "Qwen/Qwen3-8B",
        "microsoft/phi-4",
        "microsoft/phi-2",
        "mistralai/Mixtral-8x7B-v0.1",
        "google/gemma-2-9b",
    }
]

pytestmark = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def method(name: str) -> "TuningMethod[Any]":
    return methods.get(name)


def _defaults(method: "TuningMethod[Any]") -> MethodOptions:
    return methods.options_for(method.name, {})


def test_the_file_has_one_method_of_its_own_name(name: str, method: "TuningMethod[Any]"):
    module = importlib.import_module(f"scrimp.methods.{name}")
    assert module.METHOD is method
    assert isinstance(method, TuningMethod)
    assert method.name == name
    assert type(method).__doc__
    assert type(method).__mro__[1] is TuningMethod, "one abstract class, no third level"


def test_it_says_what_it_is_in_a_few_words(name: str, method: "TuningMethod[Any]"):
    assert 5 <= len(method.summary) <= 60
    assert "\n" not in method.summary


def test_its_learning_rate_is_plausible_and_has_a_source(name: str, method: "TuningMethod[Any]"):
    assert 1e-6 <= method.learning_rate <= 1e-1
    lines = Path(importlib.import_module(f"scrimp.methods.{name}").__file__ or "").read_text().splitlines()
    at = next(
        index for index, line in enumerate(lines) if line.strip().startswith(("learning_rate =", "learning_rate="))
    )
    assert lines[at - 1].strip().startswith("#"), "the source of the rate stands in the line above"


def test_its_weights_can_be_stored(name: str, method: "TuningMethod[Any]"):
    assert method.weight_dtypes
    assert set(method.weight_dtypes) <= set(get_args(WeightDtype))
    assert all(len(pair) == 2 for pair in method.needs)


def test_its_options_are_frozen_with_defaults_and_help(name: str, method: "TuningMethod[Any]"):
    kind = method.options_type
    assert issubclass(kind, MethodOptions)
    options = kind()
    method.check(options)
    for item in dataclasses.fields(kind):
        assert item.metadata.get("help"), f"{item.name} has no help"
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(options, item.name, None)


def test_an_unknown_option_is_answered_with_the_known(name: str, method: "TuningMethod[Any]"):
    with pytest.raises(SpecError, match='no option "rnak"') as caught:
        methods.options_for(name, {"rnak": 3})
    assert name in caught.value.next_step
    if "rank" in {item.name for item in dataclasses.fields(method.options_type)}:
        assert "did you mean rank" in caught.value.expected


def test_every_option_refuses_a_value_of_another_type(name: str, method: "TuningMethod[Any]"):
    for item in dataclasses.fields(method.options_type):
        for wrong in (None, ("a", 1), True, "text"):
            if isinstance(item.default, bool) and isinstance(wrong, bool):
                continue
            if isinstance(item.default, str) and isinstance(wrong, str):
                continue
            with pytest.raises(SpecError, match=item.name):
                methods.options_for(name, {item.name: wrong})


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.family)
def test_its_counts_are_sane_for_real_models(name: str, method: "TuningMethod[Any]", shape: ModelShape):
    options = _defaults(method)
    trainable = method.trainable_params(shape, options)
    assert 0 < trainable <= shape.params
    adapted = method.adapted_linears(shape, options)
    assert set(adapted) <= set(linears(shape))
    assert bool(adapted) == method.frozen_base
    if method.frozen_base:
        assert trainable < 0.1 * shape.params


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.family)
def test_its_cheaper_variants_are_possible_and_cheaper(name: str, method: "TuningMethod[Any]", shape: ModelShape):
    options = _defaults(method)
    last = method.trainable_params(shape, options)
    for words, variant in method.variants(options):
        assert words
        method.check(variant)
        assert method.trainable_params(shape, variant) < last
        last = method.trainable_params(shape, variant)


@pytest.mark.train
@pytest.mark.parametrize("family", DIALECTS)
def test_it_trains_as_many_parameters_as_it_counts(
    name: str, method: "TuningMethod[Any]", family: str, build: Callable[..., tuple[Any, ModelShape]]
):
    import torch

    model, shape = build(family)
    whole = sum(parameter.numel() for parameter in model.parameters())
    options = _defaults(method)
    tuned = method.apply(model, options)
    trainable = [parameter for parameter in tuned.parameters() if parameter.requires_grad]
    assert all(parameter.dtype == torch.float32 for parameter in trainable)
    counted = sum(parameter.numel() for parameter in trainable)
    if method.frozen_base:
        assert counted == method.trainable_params(shape, options)
    else:
        # Tiny models are mostly what ModelShape leaves out (biases, further norms): the law is that nothing is frozen.
        assert counted == whole
        assert method.trainable_params(shape, options) == shape.params


@pytest.mark.train
def test_adapters_on_a_bf16_base_are_fp32_and_leave_it_alone(
    name: str, method: "TuningMethod[Any]", build: Callable[..., tuple[Any, ModelShape]]
):
    import torch

    if not method.frozen_base:
        pytest.skip("the base itself is trained")
    model, _ = build("llama")
    model.to(torch.bfloat16)
    ids = torch.arange(10)[None]
    before = model(ids).logits.detach().clone()
    frozen = {path: parameter.detach().clone() for path, parameter in model.named_parameters()}
    tuned = method.apply(model, _defaults(method))
    # Adapters start at nothing: what is learned is learned from the base model's own loss.
    torch.testing.assert_close(tuned(ids).logits.float(), before.float(), atol=0, rtol=0)
    trainable = [parameter for parameter in tuned.parameters() if parameter.requires_grad]
    assert {parameter.dtype for parameter in trainable} == {torch.float32}
    tuned(input_ids=ids, labels=ids).loss.backward()
    torch.optim.SGD(trainable, lr=1.0).step()
    assert not torch.equal(tuned(ids).logits, before)
    for path, parameter in tuned.named_parameters():
        if not parameter.requires_grad:
            plain = path.removeprefix("base_model.model.").replace(".base_layer", "")
            assert torch.equal(parameter, frozen[plain]), path


# PEFT 0.21 asks transformers 5.24 by the old name of a property when it loads an adapter.
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
@pytest.mark.train
@pytest.mark.parametrize("tied", [True, False])
def test_what_it_saves_gives_the_same_model_again(
    name: str, method: "TuningMethod[Any]", tied: bool, build: Callable[..., tuple[Any, ModelShape]], tmp_path: Path
):
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model, _ = build("llama", tie_word_embeddings=tied)
    tuned = method.apply(model, _defaults(method)).eval()
    with torch.no_grad():
        for parameter in tuned.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.05)
    ids = torch.arange(10)[None]
    expected = tuned(ids).logits.detach()
    method.save(tuned, str(tmp_path), base_model="owner/base")
    if method.frozen_base:
        assert sorted(p.name for p in tmp_path.iterdir()) == [
            "README.md",
            "adapter_config.json",
            "adapter_model.safetensors",
        ]
        base, _ = build("llama", tie_word_embeddings=tied)
        again = PeftModel.from_pretrained(base, tmp_path)
    else:
        again = AutoModelForCausalLM.from_pretrained(tmp_path)
        shared = again.lm_head.weight.data_ptr() == again.model.embed_tokens.weight.data_ptr()
        assert shared == tied
    torch.testing.assert_close(again.eval()(ids).logits, expected)


def test_another_name_is_answered_with_the_nearest(name: str):
    with pytest.raises(UnknownNameError) as caught:
        methods.get(f"{name}x".upper())
    assert name in caught.value.expected
