"""How each `model_type` of a config.json spells its sizes: one row per family, as transformers 5 defines it.

A config.json leaves out what its class has as a default, so a row also carries the defaults that published files rely
on (Gemma 3 states little more than its depth and width). Families whose attention cannot be told in
heads x head_dim (latent attention, state spaces) have no row: no numbers are better than wrong ones.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertKeys:
    """Where a mixture of experts keeps its counts and widths; `None` where the family has no such thing.

    `width` is one expert's inner width, `shared_width` that of the always-on expert. Layers that `every_key` and
    `dense_layers_key` leave without experts are dense, as wide as `intermediate_size` says.
    """

    count: tuple[str, ...]
    active: str
    width: str = "intermediate_size"
    shared_width: str | None = None
    every_key: str | None = None
    dense_layers_key: str | None = None


def _same(config: Config) -> Config:
    return config


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One family. `translate` turns its own key names into the usual ones before anything is read.

    `qkv_bias` and `qk_norm` are a fact of the family, or the name of the key that decides.
    """

    defaults: Config = field(default_factory=dict[str, Any])
    gated_mlp: bool = True
    qkv_bias: bool | str = "attention_bias"
    qk_norm: bool | str = False
    experts: ExpertKeys | None = None
    translate: Callable[[Config], Config] = _same


def _falcon(config: Config) -> Config:
    """Falcon shares one key and value head among all query heads unless it is of the 40B generation."""
    heads = config.get("num_attention_heads")
    shared = 1 if config.get("multi_query", True) else heads
    grouped = config.get("new_decoder_architecture", False)
    hidden = config.get("hidden_size", 4544)
    return {
        **config,
        "num_key_value_heads": config.get("num_kv_heads") or heads if grouped else shared,
        "intermediate_size": config.get("ffn_hidden_size") or 4 * hidden,
    }


def _mpt(config: Config) -> Config:
    """MPT has names of its own for everything; transformers makes its inner width four times the outer one."""
    names = {
        "hidden_size": "d_model",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "max_position_embeddings": "max_seq_len",
    }
    usual = {ours: config[theirs] for ours, theirs in names.items() if theirs in config}
    if "d_model" in config:
        usual["intermediate_size"] = 4 * config["d_model"]
    return {**config, **usual}


_TIED: Config = {"tie_word_embeddings": True}
_GEMMA: Config = {"tie_word_embeddings": True, "head_dim": 256}
_GEMMA3: Config = {
    **_GEMMA,
    "vocab_size": 262208,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "max_position_embeddings": 131072,
}
_QWEN2_EXPERTS = ExpertKeys(
    count=("num_experts", "num_local_experts"),
    active="num_experts_per_tok",
    width="moe_intermediate_size",
    shared_width="shared_expert_intermediate_size",
    every_key="decoder_sparse_step",
    dense_layers_key="mlp_only_layers",
)
_QWEN3_EXPERTS = ExpertKeys(
    count=("num_experts", "num_local_experts"),
    active="num_experts_per_tok",
    width="moe_intermediate_size",
    every_key="decoder_sparse_step",
    dense_layers_key="mlp_only_layers",
)
_OLMO_EXPERTS = ExpertKeys(count=("num_experts", "num_local_experts"), active="num_experts_per_tok")
_LOCAL_EXPERTS = ExpertKeys(count=("num_local_experts", "num_experts"), active="num_experts_per_tok")

DIALECTS: Mapping[str, Dialect] = {
    "arcee": Dialect(gated_mlp=False),
    "cohere": Dialect(defaults=_TIED, qk_norm="use_qk_norm"),
    "cohere2": Dialect(defaults=_TIED),
    "exaone4": Dialect(qk_norm=True, qkv_bias=False),
    "falcon": Dialect(
        defaults={**_TIED, "max_position_embeddings": 2048},
        gated_mlp=False,
        qkv_bias="bias",
        translate=_falcon,
    ),
    "gemma": Dialect(defaults=_GEMMA),
    "gemma2": Dialect(defaults=_GEMMA),
    "gemma3_text": Dialect(defaults=_GEMMA3, qk_norm=True),
    "glm": Dialect(defaults={"head_dim": 128}),
    "glm4": Dialect(defaults={"head_dim": 128}),
    "gpt_neox": Dialect(defaults={"attention_bias": True}, gated_mlp=False),
    "gpt_oss": Dialect(defaults={"attention_bias": True, "head_dim": 64}, experts=_LOCAL_EXPERTS),
    "granite": Dialect(),
    "granitemoe": Dialect(experts=_LOCAL_EXPERTS),
    "helium": Dialect(defaults={"head_dim": 128}),
    "llama": Dialect(),
    "ministral": Dialect(qkv_bias=False),
    "mistral": Dialect(qkv_bias=False),
    "mixtral": Dialect(qkv_bias=False, experts=_LOCAL_EXPERTS),
    "mpt": Dialect(
        defaults={**_TIED, "max_position_embeddings": 2048},
        gated_mlp=False,
        qkv_bias=False,
        translate=_mpt,
    ),
    "nemotron": Dialect(gated_mlp=False),
    "olmo": Dialect(),
    "olmo2": Dialect(qk_norm=True),
    "olmo3": Dialect(qk_norm=True),
    "olmoe": Dialect(
        qk_norm=True, experts=ExpertKeys(count=("num_experts", "num_local_experts"), active="num_experts_per_tok")
    ),
    "phi": Dialect(gated_mlp=False, qkv_bias=True, qk_norm="qk_layernorm"),
    "phi3": Dialect(qkv_bias=False),
    "qwen2": Dialect(qkv_bias=True),
    "qwen2_moe": Dialect(defaults={"qkv_bias": True}, qkv_bias="qkv_bias", experts=_QWEN2_EXPERTS),
    "qwen3": Dialect(defaults={"head_dim": 128}, qk_norm=True),
    "qwen3_moe": Dialect(qk_norm=True, experts=_QWEN3_EXPERTS),
    "seed_oss": Dialect(defaults={"attention_bias": True, "head_dim": 128}),
    "smollm3": Dialect(defaults=_TIED),
    "stablelm": Dialect(qkv_bias="use_qkv_bias", qk_norm="qk_layernorm"),
    "starcoder2": Dialect(
        defaults={"tie_word_embeddings": True, "use_bias": True}, gated_mlp=False, qkv_bias="use_bias"
    ),
}
