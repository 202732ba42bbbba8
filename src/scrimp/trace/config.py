"""From a model's shape to the configuration that transformers builds the model from."""

from pathlib import Path
from typing import Any

from scrimp.core.errors import SpecError
from scrimp.core.model import ModelShape
from scrimp.models.dialects import DIALECTS, Dialect

# transformers spells out falcon's and mpt's sizes in names of their own.
_OWN_NAMES = ("falcon", "mpt")
_NEXT = "trace the model from its own folder or hub id, which has its config.json"


def config_of_shape(shape: ModelShape) -> Any:
    """A transformers configuration with the shape's sizes; what a shape does not say is as the family's class has it.

    A shape without a family (published measurements state sizes alone) is taken for Llama, with biases for Qwen 2.

    Raises:
        SpecError: the family's sizes cannot be told from a shape.
    """
    from transformers import AutoConfig

    family = shape.family or ("qwen2" if shape.attention_bias else "llama")
    if family not in DIALECTS or family in _OWN_NAMES or (not shape.family and not shape.gated_mlp):
        raise SpecError(
            what=f"a model of family {shape.family or 'unknown'} cannot be built from the sizes of {shape.name} alone",
            expected=f"a family out of {', '.join(name for name in DIALECTS if name not in _OWN_NAMES)}",
            next_step=_NEXT,
        )
    dialect = DIALECTS[family]
    return AutoConfig.for_model(
        family,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        vocab_size=shape.vocab,
        max_position_embeddings=shape.max_positions_tokens,
        tie_word_embeddings=shape.tied_embeddings,
        # The class's own may lie outside a smaller vocabulary.
        pad_token_id=None,
        **_switches(shape, dialect),
        **_mlp_sizes(shape, dialect),
    )


def config_of_folder(folder: Path) -> Any:
    """The configuration in a model folder; of a model that also sees or hears, that of its text part.

    Positions are made in the plain way: the scaled ones look at the data to choose, and take the same memory.

    Raises:
        SpecError: transformers does not know the model, or it needs code of its own.
    """
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    except (ValueError, OSError, KeyError) as error:
        raise SpecError(
            what=f"the config.json in {folder} cannot be read: {error}",
            expected="a causal language model that transformers knows, without code of its own",
            next_step="check the folder, or plan without --exact",
        ) from error
    config = config.get_text_config()
    scaling = getattr(config, "rope_parameters", None)
    if isinstance(scaling, dict) and scaling.get("rope_type") in {"longrope", "dynamic"}:
        config.rope_parameters = {
            key: scaling[key] for key in ("rope_theta", "partial_rotary_factor") if key in scaling
        }
        config.rope_parameters["rope_type"] = "default"
    return config


def _switches(shape: ModelShape, dialect: Dialect) -> dict[str, Any]:
    """The keys by which a family turns biases and norms of queries and keys on."""
    found: dict[str, Any] = {}
    if isinstance(dialect.qkv_bias, str):
        found[dialect.qkv_bias] = shape.attention_bias
    if isinstance(dialect.qk_norm, str):
        found[dialect.qk_norm] = shape.qk_norm
    return found


def _mlp_sizes(shape: ModelShape, dialect: Dialect) -> dict[str, Any]:
    keys = dialect.experts
    if keys is None:
        return {"intermediate_size": shape.intermediate}
    sizes: dict[str, Any] = {keys.count[0]: shape.experts, keys.active: shape.experts_active}
    if shape.dense_intermediate:
        sizes["intermediate_size"] = shape.dense_intermediate
    sizes[keys.width] = shape.intermediate
    if keys.shared_width:
        sizes[keys.shared_width] = shape.shared_intermediate
    if keys.dense_layers_key:
        sizes[keys.dense_layers_key] = list(range(shape.dense_layers))
    if keys.every_key:
        sizes[keys.every_key] = 1
    return sizes
