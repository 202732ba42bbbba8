"""A config.json to the shape of its model: the sizes that memory and time follow from, without any weights."""

from collections.abc import Mapping
from typing import Any

from scrimp.core.errors import SpecError, nearest
from scrimp.core.model import ModelShape
from scrimp.models.dialects import DIALECTS, Config, Dialect, ExpertKeys

# DeepSeek's latent attention keeps keys and values in a compressed form: not heads x head_dim.
_LATENT_KEYS = ("kv_lora_rank", "q_lora_rank")
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


def shape_from_config(config: Mapping[str, Any], *, name: str, source: str) -> ModelShape:
    """The shape that a config.json describes; of a model that also sees or hears, the text part.

    ModelShape counts two norms a layer and the biases of q, k and v. Gemma's four norms, OLMo's norms over all heads
    and the biases of Phi, GPT-NeoX and GPT-OSS are left out: 0.1% of the parameters or less at published sizes.

    Args:
        config: the parsed config.json.
        name: what the shape is called from here on.
        source: where the config was read, for the shape's own `source`.

    Raises:
        SpecError: a family or a kind of attention that cannot be counted, or a size that is missing or impossible.
    """
    inner = config.get("text_config")
    text: Config = {**_shared(config), **inner} if isinstance(inner, Mapping) else config
    family = _family(text, name=name)
    dialect = DIALECTS[family]
    reader = _Reader({**dialect.defaults, **_stated(dialect.translate(text))}, name=name)
    heads = reader.size("num_attention_heads")
    hidden = reader.size("hidden_size")
    kv_heads = reader.size("num_key_value_heads", default=heads)
    if heads % kv_heads:
        raise reader.error(
            f"num_attention_heads is {heads}, num_key_value_heads {kv_heads}", "a whole ratio of the two"
        )
    head_dim = reader.size("head_dim", default=hidden // heads)
    return ModelShape(
        name=name,
        family=family,
        hidden=hidden,
        layers=reader.size("num_hidden_layers"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocab=reader.size("vocab_size"),
        max_positions_tokens=reader.size("max_position_embeddings"),
        tied_embeddings=reader.flag("tie_word_embeddings"),
        gated_mlp=dialect.gated_mlp,
        attention_bias=reader.fact(dialect.qkv_bias),
        qk_norm=reader.fact(dialect.qk_norm),
        native_dtype=_DTYPES.get(str(reader.values.get("dtype") or reader.values.get("torch_dtype")), "bf16"),
        source=source,
        **_mlp_sizes(reader, dialect),
    )


def _mlp_sizes(reader: "_Reader", dialect: Dialect) -> dict[str, int]:
    """The fields of ModelShape that describe the feed-forward blocks."""
    keys = dialect.experts
    if keys is None:
        return {"intermediate": reader.size("intermediate_size")}
    dense = _dense_layers(reader, keys)
    return {
        "intermediate": reader.size(keys.width),
        "experts": reader.first_size(keys.count),
        "experts_active": reader.size(keys.active),
        "shared_intermediate": reader.size(keys.shared_width) if keys.shared_width else 0,
        "dense_layers": dense,
        "dense_intermediate": reader.size("intermediate_size") if dense else 0,
    }


def _dense_layers(reader: "_Reader", keys: ExpertKeys) -> int:
    """How many layers have no experts: those named, and those that the step between expert layers skips."""
    named = set(reader.values.get(keys.dense_layers_key) or ()) if keys.dense_layers_key else set[int]()
    every = reader.size(keys.every_key, default=1) if keys.every_key else 1
    layers = range(reader.size("num_hidden_layers"))
    return sum(1 for layer in layers if layer in named or (layer + 1) % every)


def _family(config: Config, *, name: str) -> str:
    """The `model_type`, if its sizes can be counted."""
    family = config.get("model_type")
    latent = [key for key in _LATENT_KEYS if config.get(key)]
    if family in DIALECTS and not latent:
        return str(family)
    if latent:
        what = f'the config of "{name}" describes latent attention ({", ".join(latent)}), which scrimp cannot count'
    elif not isinstance(family, str) or not family:
        what = f'the config of "{name}" has no model_type'
    elif config.get("auto_map"):
        what = f'the config of "{name}" brings code of its own (model_type {family}); scrimp runs no code of models'
    else:
        what = f'the config of "{name}" is of model_type {family}, whose sizes scrimp cannot count'
    close = nearest(str(family), DIALECTS)
    hint = f"did you mean {' or '.join(close)}? " if close and not latent else ""
    raise SpecError(
        what=what,
        expected=f"{hint}a model_type out of {', '.join(DIALECTS)}",
        next_step="choose a model of one of these families, for instance Qwen/Qwen3-8B",
    )


def _shared(config: Config) -> Config:
    """What a model of several parts says at the top and its text part inherits."""
    keys = ("tie_word_embeddings", "dtype", "torch_dtype")
    return {key: config[key] for key in keys if config.get(key) is not None}


def _stated(config: Config) -> dict[str, Any]:
    """The keys with a value: null in a config.json means the default."""
    return {key: value for key, value in config.items() if value is not None}


class _Reader:
    """Sizes out of one config, each checked."""

    def __init__(self, values: Config, *, name: str) -> None:
        self.values = values
        self._name = name

    def size(self, key: str, *, default: int | None = None) -> int:
        """A whole number of at least one."""
        value = self.values.get(key, default)
        if value is None:
            raise self.error(f"{key} is missing", "a whole number")
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.error(f"{key} is {value!r}", "a whole number of at least 1")
        return value

    def first_size(self, keys: tuple[str, ...]) -> int:
        """The size under the first of several names that a family has used."""
        return self.size(next((key for key in keys if key in self.values), keys[0]))

    def flag(self, key: str) -> bool:
        """True or false; absent means false."""
        return self.fact(key)

    def fact(self, fact: bool | str) -> bool:
        """A fact of the family, or what the key of that name says; absent means false."""
        return fact if isinstance(fact, bool) else bool(self.values.get(fact, False))

    def error(self, what: str, expected: str) -> SpecError:
        """The error for one key."""
        return SpecError(
            what=f'the config of "{self._name}": {what}',
            expected=expected,
            next_step="take the config.json that was published with the weights",
        )
