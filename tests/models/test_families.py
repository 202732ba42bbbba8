"""Our parameter counts against models that transformers itself builds (on the meta device: shapes without memory)."""

from typing import Any

import pytest

from scrimp.models.dialects import DIALECTS
from scrimp.models.shapes import shape_from_config
from scrimp.models.table import KnownModel, known_models

pytestmark = pytest.mark.train

# Families whose class has no whole set of defaults.
SIZES: dict[str, dict[str, Any]] = {
    "ministral": {"head_dim": 128},
    "nemotron": {"num_key_value_heads": 48},
}
ROWS = known_models()


def _built(config: Any) -> int:
    """Parameters of the model that transformers builds from `config`, shared ones once."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    model.tie_weights()
    return sum(parameter.numel() for parameter in model.parameters())


def _config(family: str, **sizes: Any) -> Any:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    return CONFIG_MAPPING[family](**sizes)


@pytest.mark.parametrize("family", DIALECTS)
def test_every_family_at_its_default_sizes(family: str):
    config = _config(family, **SIZES.get(family, {}))
    shape = shape_from_config(config.to_dict(), name=family, source="transformers")
    assert shape.params == pytest.approx(_built(config), rel=0.002)


@pytest.mark.parametrize("row", ROWS, ids=[row.hub_ids[0] for row in ROWS])
def test_every_row_of_the_table_builds_the_published_model(row: KnownModel):
    shape = row.shape
    sizes = {
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "intermediate_size": shape.intermediate,
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.max_positions_tokens,
        "tie_word_embeddings": shape.tied_embeddings,
        "pad_token_id": None,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    if shape.experts:
        sizes |= {"num_experts_per_tok": shape.experts_active, "moe_intermediate_size": shape.intermediate}
        sizes |= {"num_experts" if shape.family == "qwen3_moe" else "num_local_experts": shape.experts}
    assert _built(_config(shape.family, **sizes)) == pytest.approx(row.published_params, rel=0.0005)
