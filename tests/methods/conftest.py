"""Tiny random models of every family, as transformers builds them, and their shapes."""

from collections.abc import Callable
from typing import Any

import pytest

from scrimp.core.model import ModelShape

_TINY: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 128,
    "max_position_embeddings": 64,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
}
_EXPERTS: dict[str, Any] = {"num_experts_per_tok": 2, "moe_intermediate_size": 32, "num_experts": 4}
_LOCAL_EXPERTS: dict[str, Any] = {"num_experts_per_tok": 2, "num_local_experts": 4}
_MORE: dict[str, dict[str, Any]] = {
    "gpt_oss": _LOCAL_EXPERTS,
    "granitemoe": _LOCAL_EXPERTS,
    "mixtral": _LOCAL_EXPERTS,
    "olmoe": _EXPERTS,
    "qwen2_moe": {**_EXPERTS, "shared_expert_intermediate_size": 48},
    "qwen3_moe": _EXPERTS,
}
_OWN: dict[str, dict[str, Any]] = {
    "falcon": {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 128,
        "new_decoder_architecture": False,
    },
    "gpt_neox": {key: value for key, value in _TINY.items() if key != "num_key_value_heads"},
    "mpt": {"d_model": 64, "n_heads": 4, "n_layers": 2, "vocab_size": 128, "max_seq_len": 64},
}


@pytest.fixture
def build() -> Callable[..., tuple[Any, ModelShape]]:
    """A function from a family to a tiny random model of it and the shape read from its config."""

    def make(family: str, **changes: Any) -> tuple[Any, ModelShape]:
        import torch
        from transformers import AutoModelForCausalLM
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING

        from scrimp.models.shapes import shape_from_config

        torch.manual_seed(3)
        config = CONFIG_MAPPING[family](**{**_OWN.get(family, _TINY), **_MORE.get(family, {}), **changes})
        model = AutoModelForCausalLM.from_config(config)
        return model, shape_from_config(config.to_dict(), name=f"tiny {family}", source="test")

    return make
