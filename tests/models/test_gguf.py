"""A tiny GGUF file of every accepted tensor type becomes a folder with the same weights and a right tokenizer."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scrimp.core.errors import SpecError
from scrimp.models.gguf import convert_gguf
from scrimp.models.shapes import shape_from_config
from scrimp.models.weights import to_bf16


def _read_bf16(path: Path) -> dict[str, Any]:
    """A safetensors file of bf16 tensors, read by the format's description alone."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    assert (8 + length) % 8 == 0
    header.pop("__metadata__")
    found = {}
    for name, entry in header.items():
        start, end = (8 + length + offset for offset in entry["data_offsets"])
        halves = np.frombuffer(data[start:end], np.uint16).reshape(entry["shape"])
        found[name] = (halves.astype(np.uint32) << 16).view(np.float32)
    assert end == len(data)
    return found


@pytest.fixture
def converted(tiny_gguf: Any, tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    convert_gguf(tiny_gguf.write(), folder, report=lambda line: None)
    return folder


def test_weights_are_those_of_the_file_with_the_rope_order_undone(converted: Path, tiny_gguf: Any):
    import gguf

    found = _read_bf16(converted / "model.safetensors")
    assert found.keys() == tiny_gguf.reference.keys()
    for name, (_, kind, ordered) in tiny_gguf.stored.items():
        quantised = gguf.GGMLQuantizationType[kind]
        exact = ordered if kind == "F32" else gguf.dequantize(gguf.quantize(ordered, quantised), quantised)
        again = tiny_gguf.in_llama_cpp_order(name, found[name])
        np.testing.assert_array_equal(again, (to_bf16(exact).astype(np.uint32) << 16).view(np.float32), err_msg=name)
        tolerance = {"Q4_0": 0.05, "Q4_1": 0.05, "Q8_0": 0.005}.get(kind, 0.01)
        np.testing.assert_allclose(found[name], tiny_gguf.reference[name], atol=tolerance, err_msg=name)


@pytest.mark.train
def test_transformers_reads_the_same_weights_out_of_the_gguf_file(converted: Path, tiny_gguf: Any):
    import torch
    from transformers import AutoModelForCausalLM

    path = tiny_gguf.write()
    theirs = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name)
    ours = AutoModelForCausalLM.from_pretrained(converted, dtype=torch.float32)
    for (name, mine), (_, reference) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        reference.data = reference.data.to(torch.bfloat16).float()
        assert torch.equal(mine, reference), name
    ids = torch.arange(12)[None]
    with torch.no_grad():
        torch.testing.assert_close(ours(ids).logits, theirs(ids).logits)


def test_config_states_every_size_and_constant(converted: Path):
    config = json.loads((converted / "config.json").read_text())
    shape = shape_from_config(config, name="tiny", source="test")
    assert (shape.hidden, shape.layers, shape.heads, shape.kv_heads, shape.intermediate) == (64, 2, 4, 2, 96)
    assert shape.tied_embeddings
    assert config["rope_theta"] == 20000.0
    assert config["rms_norm_eps"] == 1e-5
    assert (config["bos_token_id"], config["eos_token_id"], config["pad_token_id"]) == (1, 2, 2)
    assert json.loads((converted / "generation_config.json").read_text())["eos_token_id"] == 2


def test_an_own_output_head_is_not_tied(tiny_gguf: Any, tmp_path: Path):
    folder = tmp_path / "model"
    folder.mkdir()
    convert_gguf(tiny_gguf.write(extra="output.weight"), folder, report=lambda line: None)
    assert json.loads((folder / "config.json").read_text())["tie_word_embeddings"] is False
    assert "lm_head.weight" in _read_bf16(folder / "model.safetensors")


def test_tokenizer_splits_every_digit_and_gives_every_text_back(converted: Path):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(converted / "tokenizer.json"))
    assert tokenizer.encode("1234").tokens == ["1", "2", "3", "4"]
    assert tokenizer.encode("he  42").tokens == ["he", "Ġ", "Ġ", "4", "2"]
    assert tokenizer.encode("hello").tokens[0] == "hel"
    special = tokenizer.encode("<|im_start|>hel<|im_end|>")
    assert (special.ids[0], special.ids[-1]) == (1, 2)
    assert tokenizer.encode("<tool>").ids == [3]
    for text in ("def f(x):\n    return x ** 2  # 1,234.5\n", "¿Qué?  日本語 🙂\t\r\n", " he  hel\n\n\n 007 "):
        assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text
    assert tokenizer.decode(tokenizer.encode("<|im_start|>he<tool>").ids) == "he<tool>"


def test_tokenizer_config_and_chat_template_are_beside_it(converted: Path):
    config = json.loads((converted / "tokenizer_config.json").read_text())
    assert (config["bos_token"], config["eos_token"], config["pad_token"]) == (
        "<|im_start|>",
        "<|im_end|>",
        "<|im_end|>",
    )
    assert config["model_max_length"] == 128
    assert "messages" in (converted / "chat_template.jinja").read_text()


def test_the_gpt_2_rule_keeps_digits_together(tiny_gguf: Any, tmp_path: Path):
    folder = tmp_path / "model"
    folder.mkdir()
    convert_gguf(tiny_gguf.write(pre="gpt-2"), folder, report=lambda line: None)
    rule = json.loads((folder / "tokenizer.json").read_text())["pre_tokenizer"]
    assert rule["type"] == "ByteLevel"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"architecture": "qwen2"}, "architecture qwen2"),
        ({"rope_scaling": "yarn"}, "scales its rotary positions"),
        ({"extra": "rope_freqs.weight"}, "scales its rotary positions"),
        ({"extra": "blk.0.attn_q.bias"}, "blk.0.attn_q.bias"),
        ({"types": {"blk.0.ffn_up.weight": "Q5_0"}}, "blk.0.ffn_up.weight as Q5_0"),
        ({"pre": "llama-bpe"}, "splitting rule llama-bpe"),
        ({"tokenizer": "llama"}, "tokenizer of kind llama"),
    ],
)
def test_what_would_come_out_wrong_is_refused(tiny_gguf: Any, tmp_path: Path, change: dict[str, Any], words: str):
    folder = tmp_path / "model"
    folder.mkdir()
    with pytest.raises(SpecError, match=r"tiny\.gguf") as caught:
        convert_gguf(tiny_gguf.write(**change), folder, report=lambda line: None)
    assert words in caught.value.what


def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path):
    path = tmp_path / "not.gguf"
    path.write_bytes(b"no such thing" * 100)
    with pytest.raises(SpecError, match="is not a GGUF file"):
        convert_gguf(path, tmp_path, report=lambda line: None)


def test_bf16_rounds_to_nearest_with_ties_to_even():
    values = np.array([1.0, -2.5, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 3.3e38, 0.0, 1e-30], np.float32)
    halves = to_bf16(values)
    back = (halves.astype(np.uint32) << 16).view(np.float32)
    # 8 bits of precision: 1 + 2^-8 is halfway between 1 and 1 + 2^-7, and 1 is the even one of the two.
    np.testing.assert_array_equal(back[:5], [1.0, -2.5, 1.0, 1 + 2**-6, 1 + 2**-7])
    np.testing.assert_allclose(back[5:], values[5:], rtol=2**-8)
