"""A tiny llama-architecture GGUF file, and caches that are empty."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

HIDDEN, LAYERS, HEADS, KV_HEADS, WIDTH = 64, 2, 4, 2, 96


def byte_level_tokens() -> list[str]:
    """Three control tokens, one user-defined one, the 256 byte tokens and a few merges' results."""
    from tokenizers.pre_tokenizers import ByteLevel

    alphabet = sorted(ByteLevel.alphabet())
    return ["<|end|>", "<|im_start|>", "<|im_end|>", "<tool>", *alphabet, "he", "hel", "Ġh"]


MERGES = ["h e", "he l", "Ġ h"]


@pytest.fixture
def env(tmp_path: Path) -> Mapping[str, str]:
    """No token, empty caches, no network."""
    return {"HOME": str(tmp_path), "SCRIMP_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}


def llama_cpp_order(rows: Any, heads: int) -> Any:
    """What llama.cpp's converter does to q and k (convert_hf_to_gguf.py, LlamaModel.permute)."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def reference_weights() -> dict[str, Any]:
    """Random fp32 weights under their Hugging Face names."""
    import numpy as np

    random = np.random.default_rng(7)
    head_dim = HIDDEN // HEADS

    def matrix(rows: int, columns: int) -> Any:
        return (random.standard_normal((rows, columns)) * 0.1).astype(np.float32)

    weights = {
        "model.embed_tokens.weight": matrix(len(byte_level_tokens()), HIDDEN),
        "model.norm.weight": np.ones(HIDDEN, np.float32) + matrix(1, HIDDEN)[0],
    }
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        weights |= {
            f"{at}.input_layernorm.weight": np.ones(HIDDEN, np.float32) + matrix(1, HIDDEN)[0],
            f"{at}.post_attention_layernorm.weight": np.ones(HIDDEN, np.float32) + matrix(1, HIDDEN)[0],
            f"{at}.self_attn.q_proj.weight": matrix(HIDDEN, HIDDEN),
            f"{at}.self_attn.k_proj.weight": matrix(KV_HEADS * head_dim, HIDDEN),
            f"{at}.self_attn.v_proj.weight": matrix(KV_HEADS * head_dim, HIDDEN),
            f"{at}.self_attn.o_proj.weight": matrix(HIDDEN, HIDDEN),
            f"{at}.mlp.gate_proj.weight": matrix(WIDTH, HIDDEN),
            f"{at}.mlp.up_proj.weight": matrix(WIDTH, HIDDEN),
            f"{at}.mlp.down_proj.weight": matrix(HIDDEN, WIDTH),
        }
    return weights


# Every type that the converter takes, one of them on the two matrices whose rows are reordered.
TYPES = {
    "attn_q": "Q4_1",
    "attn_k": "Q8_0",
    "attn_v": "Q4_0",
    "attn_output": "F16",
    "ffn_gate": "BF16",
    "ffn_up": "Q4_1",
    "ffn_down": "F32",
}
GGUF_NAMES = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def stored(weights: Mapping[str, Any]) -> dict[str, tuple[str, str, Any]]:
    """Hugging Face name to (GGUF name, type, values as they are stored, in llama.cpp's order)."""
    found: dict[str, tuple[str, str, Any]] = {
        "model.embed_tokens.weight": ("token_embd.weight", "Q8_0", weights["model.embed_tokens.weight"]),
        "model.norm.weight": ("output_norm.weight", "F32", weights["model.norm.weight"]),
    }
    for name, values in weights.items():
        if not name.startswith("model.layers."):
            continue
        _, _, layer, inner = name.removesuffix(".weight").split(".", 3)
        kind = GGUF_NAMES[inner]
        heads = {"attn_q": HEADS, "attn_k": KV_HEADS}.get(kind)
        ordered = llama_cpp_order(values, heads) if heads else values
        found[name] = (f"blk.{layer}.{kind}.weight", TYPES.get(kind, "F32"), ordered)
    return found


class TinyGguf:
    """The tiny file: how it is written, and what a right conversion finds in it."""

    heads = HEADS
    kv_heads = KV_HEADS

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.reference = reference_weights()
        self.stored = stored(self.reference)

    def in_llama_cpp_order(self, name: str, values: Any) -> Any:
        """The values of a Hugging Face tensor as llama.cpp stores them."""
        heads = {"q_proj": HEADS, "k_proj": KV_HEADS}.get(name.split(".")[-2])
        return llama_cpp_order(values, heads) if heads else values

    def write(self, *, extra: str | None = None, types: Mapping[str, str] | None = None, **keys: str) -> Path:
        """Write it; `keys` replace metadata, `extra` adds a tensor, `types` changes tensor types."""
        import gguf
        import numpy as np

        path = self._folder / "tiny.gguf"
        writer = gguf.GGUFWriter(path, keys.get("architecture", "llama"))
        self._add_keys(writer, keys)
        for gguf_name, kind, values in self.stored.values():
            chosen = gguf.GGMLQuantizationType[(types or {}).get(gguf_name, kind)]
            packed = values if chosen.name == "F32" else gguf.quantize(values, chosen)
            writer.add_tensor(gguf_name, packed, raw_dtype=chosen)
        if extra:
            writer.add_tensor(extra, np.ones((len(byte_level_tokens()), HIDDEN), np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    def _add_keys(self, writer: Any, keys: Mapping[str, str]) -> None:
        tokens = byte_level_tokens()
        writer.add_block_count(LAYERS)
        writer.add_context_length(128)
        writer.add_embedding_length(HIDDEN)
        writer.add_feed_forward_length(WIDTH)
        writer.add_head_count(HEADS)
        writer.add_head_count_kv(KV_HEADS)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_rope_freq_base(20000.0)
        if "rope_scaling" in keys:
            writer.add_string("llama.rope.scaling.type", keys["rope_scaling"])
        writer.add_tokenizer_model(keys.get("tokenizer", "gpt2"))
        writer.add_tokenizer_pre(keys.get("pre", "smollm"))
        writer.add_token_list(tokens)
        writer.add_token_types([3, 3, 3, 4, *[1] * (len(tokens) - 4)])
        writer.add_token_merges(MERGES)
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_unk_token_id(0)
        writer.add_pad_token_id(2)
        writer.add_chat_template("{% for m in messages %}{{ m['content'] }}{% endfor %}")


@pytest.fixture
def tiny_gguf(tmp_path: Path) -> TinyGguf:
    """The tiny GGUF file."""
    return TinyGguf(tmp_path)
