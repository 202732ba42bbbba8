"""Sizes out of config.json files in the dialects that people bring."""

from typing import Any

import pytest

from scrimp.core.errors import SpecError
from scrimp.models.shapes import shape_from_config

LLAMA_3_8B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 8192,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "rope_theta": 500000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 128256,
}
# google/gemma-3-4b-it as published: sizes that are the class's defaults are left out.
GEMMA_3_4B: dict[str, Any] = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "model_type": "gemma3",
    "text_config": {
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "model_type": "gemma3_text",
        "num_hidden_layers": 34,
        "sliding_window": 1024,
    },
    "torch_dtype": "bfloat16",
    "vision_config": {"hidden_size": 1152, "model_type": "siglip_vision_model", "num_hidden_layers": 27},
}
QWEN_2_MOE: dict[str, Any] = {
    "model_type": "qwen2_moe",
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "moe_intermediate_size": 1408,
    "shared_expert_intermediate_size": 5632,
    "num_experts": 60,
    "num_experts_per_tok": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "num_hidden_layers": 24,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "max_position_embeddings": 8192,
    "vocab_size": 151936,
    "tie_word_embeddings": False,
}


def _shape(config: dict[str, Any]):
    return shape_from_config(config, name="test/model", source="test")


def test_llama_3_8b_has_its_published_parameters():
    shape = _shape(LLAMA_3_8B)
    assert shape.params == 8_030_261_248
    assert (shape.family, shape.head_dim, shape.native_dtype) == ("llama", 128, "bf16")
    assert not shape.tied_embeddings


def test_absent_key_value_heads_and_head_dim_follow_from_the_rest():
    config = {key: value for key, value in LLAMA_3_8B.items() if key != "num_key_value_heads"}
    shape = _shape(config)
    assert (shape.kv_heads, shape.head_dim) == (32, 128)


def test_null_means_the_default():
    assert _shape({**LLAMA_3_8B, "head_dim": None, "attention_bias": None}) == _shape(LLAMA_3_8B)


def test_gemma_3_is_read_from_its_text_part_and_the_class_defaults():
    shape = _shape(GEMMA_3_4B)
    assert (shape.heads, shape.kv_heads, shape.head_dim, shape.vocab) == (8, 4, 256, 262208)
    assert shape.tied_embeddings
    assert shape.native_dtype == "bf16"
    assert shape.params == pytest.approx(3_880_099_328, rel=0.005)


def test_qwen_2_moe_counts_experts_and_the_shared_one():
    shape = _shape(QWEN_2_MOE)
    assert (shape.experts, shape.experts_active, shape.shared_intermediate) == (60, 4, 5632)
    # The model card of Qwen1.5-MoE-A2.7B: 14.3B in total, 2.7B activated (with the embeddings that a token touches).
    assert shape.params == pytest.approx(14.3e9, rel=0.005)
    assert shape.matmul_params == pytest.approx(2.7e9, rel=0.15)


def test_a_step_between_expert_layers_makes_the_others_dense():
    shape = _shape({**QWEN_2_MOE, "decoder_sparse_step": 2})
    assert (shape.dense_layers, shape.dense_intermediate) == (12, 5632)
    shape = _shape({**QWEN_2_MOE, "mlp_only_layers": [0, 1, 2]})
    assert shape.dense_layers == 3


def test_expert_counts_are_found_under_either_name():
    renamed = {**QWEN_2_MOE, "num_local_experts": 60}
    del renamed["num_experts"]
    assert _shape(renamed) == _shape(QWEN_2_MOE)


def test_falcon_7b_shares_one_key_and_value_head():
    config = {
        "model_type": "falcon",
        "hidden_size": 4544,
        "num_attention_heads": 71,
        "num_hidden_layers": 32,
        "vocab_size": 65024,
        "multi_query": True,
        "new_decoder_architecture": False,
        "bias": False,
    }
    shape = _shape(config)
    assert (shape.kv_heads, shape.intermediate, shape.gated_mlp) == (1, 18176, False)
    grouped = {**config, "new_decoder_architecture": True, "num_kv_heads": 71}
    assert _shape(grouped).kv_heads == 71


def test_mpt_has_names_of_its_own():
    config = {
        "model_type": "mpt",
        "d_model": 4096,
        "n_heads": 32,
        "n_layers": 32,
        "expansion_ratio": 4,
        "max_seq_len": 2048,
        "vocab_size": 50432,
    }
    shape = _shape(config)
    assert (shape.intermediate, shape.max_positions_tokens, shape.tied_embeddings) == (16384, 2048, True)
    assert shape.params == pytest.approx(6.65e9, rel=0.005)


def test_latent_attention_is_refused_instead_of_counted_wrong():
    config = {**LLAMA_3_8B, "model_type": "deepseek_v3", "kv_lora_rank": 512, "q_lora_rank": 1536}
    with pytest.raises(SpecError, match="latent attention") as caught:
        _shape(config)
    assert "kv_lora_rank" in caught.value.what


def test_unknown_family_names_the_nearest_known():
    with pytest.raises(SpecError, match="llama9") as caught:
        _shape({**LLAMA_3_8B, "model_type": "llama9"})
    assert "did you mean llama" in caught.value.expected


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"hidden_size": "4096"}, "hidden_size is '4096'"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"vocab_size": True}, "vocab_size is True"),
        ({"num_key_value_heads": 5}, "num_key_value_heads 5"),
        ({"model_type": None}, "has no model_type"),
    ],
)
def test_impossible_sizes_are_named(change: dict[str, Any], words: str):
    with pytest.raises(SpecError, match="test/model") as caught:
        _shape({**LLAMA_3_8B, **change})
    assert words in caught.value.what
