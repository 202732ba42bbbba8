"""Which layers LoRA sits on, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrimp import methods
from scrimp.core.errors import SpecError
from scrimp.core.model import ModelShape
from scrimp.methods.linear import linears, packable_params
from scrimp.methods.lora import LoraOptions, attach_lora, lora_linears, lora_params, save_adapter
from scrimp.models.table import known_shapes

LLAMA = known_shapes()["meta-llama/Llama-3.1-8B"]
MIXTRAL = known_shapes()["mistralai/Mixtral-8x7B-v0.1"]


def test_rank_16_on_llama_3_8b_is_41_9_million():
    # The figure that PEFT prints for r=16 on all seven linear layers of Llama-3-8B: 41,943,040.
    assert lora_params(LLAMA, LoraOptions()) == 41_943_040


def test_linear_layers_hold_the_linear_weights_of_a_dense_model():
    for shape in known_shapes().values():
        if not shape.experts:
            weights = sum(item.in_width * item.out_width * item.copies for item in linears(shape))
            biases = (shape.attention_width + 2 * shape.kv_width) * shape.layers if shape.attention_bias else 0
            assert weights + biases == shape.linear_params, shape.name
            assert packable_params(shape) == weights


def test_experts_carry_no_adapter_and_are_not_packed():
    names = {item.name for item in lora_linears(MIXTRAL, LoraOptions())}
    assert names == {"q_proj", "k_proj", "v_proj", "o_proj"}
    assert packable_params(MIXTRAL) == MIXTRAL.layers * MIXTRAL.attention_params


def test_fused_layers_have_one_adapter():
    shape = known_shapes()["microsoft/phi-4"]
    by_name = {item.name: item for item in linears(shape)}
    assert set(by_name) == {"qkv_proj", "o_proj", "gate_up_proj", "down_proj"}
    assert by_name["qkv_proj"].out_width == shape.attention_width + 2 * shape.kv_width
    assert by_name["gate_up_proj"].out_width == 2 * shape.intermediate


def test_chosen_targets_alone_are_counted():
    options = LoraOptions(targets=("q_proj", "v_proj"))
    assert lora_params(LLAMA, options) == 32 * 16 * ((4096 + 4096) + (4096 + 1024))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"rank": 0}, "1 to 1024"),
        ({"rank": 4096}, "1 to 1024"),
        ({"alpha": 0}, "1 or more"),
        ({"dropout": 1.0}, "from 0 to below 1"),
        ({"dropout": float("nan")}, "from 0 to below 1"),
        ({"targets": ()}, "at least one name"),
        ({"targets": ("q_prj",)}, "did you mean q_proj"),
        ({"targets": "q_proj"}, "a list of str"),
        ({"targets": ("q_proj", 3)}, "a list of str"),
        ({"rank": True}, "a value of type int"),
        ({"dropout": "0.1"}, "a value of type float"),
    ],
)
def test_impossible_options_are_named_with_what_is_possible(values: dict[str, Any], words: str):
    with pytest.raises(SpecError) as caught:
        methods.options_for("lora", values)
    assert words in caught.value.expected
    assert caught.value.next_step


def test_a_whole_number_is_a_number():
    assert methods.options_for("lora", {"dropout": 0}) == LoraOptions()


def test_a_target_that_another_family_has_is_refused_for_this_one():
    options = LoraOptions(targets=("qkv_proj",))
    methods.get("lora").check(options)
    with pytest.raises(SpecError, match=r"meta-llama/Llama-3\.1-8B"):
        lora_params(LLAMA, options)


@pytest.mark.train
@pytest.mark.parametrize("targets", [("q_proj",), ("down_proj", "o_proj")])
def test_chosen_targets_alone_are_adapted(targets: tuple[str, ...], build: Callable[..., tuple[Any, ModelShape]]):
    model, shape = build("qwen3")
    options = LoraOptions(rank=4, targets=targets)
    tuned = attach_lora(model, options)
    assert sum(p.numel() for p in tuned.parameters() if p.requires_grad) == lora_params(shape, options)


@pytest.mark.train
def test_a_target_that_the_model_lacks_is_refused_when_it_is_applied(build: Callable[..., tuple[Any, ModelShape]]):
    model, _ = build("phi3")
    with pytest.raises(SpecError, match="q_proj") as caught:
        attach_lora(model, LoraOptions(targets=("q_proj",)))
    assert "qkv_proj" in caught.value.expected


@pytest.mark.train
def test_layers_of_what_sees_are_left_out(build: Callable[..., tuple[Any, ModelShape]]):
    import torch

    model, shape = build("llama")
    model.vision_tower = torch.nn.ModuleDict({"q_proj": torch.nn.Linear(8, 8)})
    tuned = attach_lora(model, LoraOptions(rank=4))
    trainable = {path for path, parameter in tuned.named_parameters() if parameter.requires_grad}
    assert not any("vision_tower" in path for path in trainable)
    assert sum(p.numel() for p in tuned.parameters() if p.requires_grad) == lora_params(shape, LoraOptions(rank=4))
    full, _ = build("llama")
    whole = sum(parameter.numel() for parameter in full.parameters())
    full.vision_tower = torch.nn.ModuleDict({"q_proj": torch.nn.Linear(8, 8)})
    tuned = methods.get("full").apply(full, methods.options_for("full", {}))
    assert sum(p.numel() for p in tuned.parameters() if p.requires_grad) == whole


@pytest.mark.train
def test_the_same_adapter_has_the_same_bytes(build: Callable[..., tuple[Any, ModelShape]], tmp_path: Path):
    model, _ = build("llama")
    tuned = attach_lora(model, LoraOptions(rank=4))
    save_adapter(tuned, str(tmp_path / "a"), base_model="owner/base")
    config = json.loads((tmp_path / "a" / "adapter_config.json").read_text())
    assert config["target_modules"] == sorted(config["target_modules"])
    assert config["r"] == 4
    assert config["base_model_name_or_path"] == "owner/base"
    save_adapter(tuned, str(tmp_path / "b"), base_model="owner/base")
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.train
@pytest.mark.parametrize("family", ["llama", "mixtral"])
def test_qlora_sits_on_a_base_that_was_really_packed(
    family: str, build: Callable[..., tuple[Any, ModelShape]], tmp_path: Path
):
    pytest.importorskip("bitsandbytes")
    import torch
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    model, shape = build(family)
    model.to(torch.bfloat16).save_pretrained(tmp_path)
    packing = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )
    packed = AutoModelForCausalLM.from_pretrained(tmp_path, quantization_config=packing, dtype=torch.bfloat16)
    # Two weights to a byte: this is how many bitsandbytes packed, and what the memory forecast may count as packed.
    halves = sum(2 * p.numel() for p in packed.parameters() if p.dtype == torch.uint8)
    assert halves == packable_params(shape)
    method = methods.get("qlora")
    options = methods.options_for("qlora", {"rank": 4})
    tuned = method.apply(packed, options)
    trainable = [parameter for parameter in tuned.parameters() if parameter.requires_grad]
    assert sum(parameter.numel() for parameter in trainable) == method.trainable_params(shape, options)
    assert {parameter.dtype for parameter in trainable} == {torch.float32}
    ids = torch.arange(10)[None]
    tuned(input_ids=ids, labels=ids).loss.backward()
    assert any(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in trainable)
