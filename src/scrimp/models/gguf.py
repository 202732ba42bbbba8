"""A llama-architecture GGUF file to a normal Hugging Face folder, once, without torch.

transformers can read GGUF too, but needs four times as long at every load, will not save what it read, and builds a
tokenizer that drops the splitting of digits (transformers 5.24, measured on SmolLM2-135M-Instruct).
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrimp._lazy import need
from scrimp.core.errors import SpecError
from scrimp.models.gguf_tokenizer import write_tokenizer
from scrimp.models.weights import TensorPlace, write_bf16

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Part of the provenance of every converted folder: raise it when the output changes, and folders are made again.
CONVERTER_VERSION = 1

_TYPES = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0")
_WHOLE_MODEL = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_IN_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_LAYER_TENSOR = re.compile(r"blk\.(\d+)\.(\w+)\.weight")

Metadata = Mapping[str, Any]


def convert_gguf(path: Path, folder: Path, *, report: Callable[[str], None]) -> None:
    """Write config, bf16 weights, tokenizer and chat template of the GGUF file `path` into `folder`.

    Raises:
        MissingPackageError: the models extra is not installed.
        SpecError: not a GGUF file, another architecture, a tensor or a tokenizer that is not understood.
    """
    gguf = need("gguf", extra="models", why="to read the bundled model")
    report(f"reading {path.name}")
    try:
        reader = gguf.GGUFReader(path)
    except ValueError as error:
        raise _refusal(path, f"is not a GGUF file ({error})", "a GGUF file of version 2 or 3") from error
    metadata = _metadata(reader)
    _check(path, metadata, reader.tensors)
    config = _config(metadata, reader.tensors)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    places = [TensorPlace(name=_new_name(x.name), shape=_shape(x)) for x in reader.tensors]
    values = _values(gguf.dequantize, reader.tensors, heads=heads, report=report)
    write_bf16(folder / "model.safetensors", places, values)
    _write_json(folder / "config.json", config)
    _write_json(folder / "generation_config.json", _generation_config(config))
    report("writing the tokenizer")
    write_tokenizer(metadata, folder, origin=path.name)


def _metadata(reader: Any) -> Metadata:
    """Every key of the file with its value as plain Python."""
    return {key: field.contents() for key, field in reader.fields.items()}


def _check(path: Path, metadata: Metadata, tensors: Sequence[Any]) -> None:
    """Refuse what this converter would get wrong."""
    architecture = metadata.get("general.architecture")
    if architecture != "llama":
        raise _refusal(path, f"holds architecture {architecture}", "architecture llama")
    if metadata.get("llama.rope.scaling.type", "none") != "none" or any(x.name == "rope_freqs.weight" for x in tensors):
        raise _refusal(path, "scales its rotary positions", "a model without rope scaling")
    for tensor in tensors:
        if _new_name(tensor.name) == "":
            raise _refusal(path, f"holds the tensor {tensor.name}", "the tensors of a dense Llama without biases")
        if tensor.tensor_type.name not in _TYPES:
            what = f"holds {tensor.name} as {tensor.tensor_type.name}"
            raise _refusal(path, what, f"tensors of type {', '.join(_TYPES)}")


def _refusal(path: Path, what: str, expected: str) -> SpecError:
    return SpecError(
        what=f"{path.name} {what}",
        expected=expected,
        next_step="use the model's safetensors from the hub instead",
    )


def _config(metadata: Metadata, tensors: Sequence[Any]) -> dict[str, Any]:
    """config.json: every value that transformers would otherwise fill with the default of another model."""
    heads = metadata["llama.attention.head_count"]
    hidden = metadata["llama.embedding_length"]
    names = {tensor.name for tensor in tensors}
    vocab = next(_shape(tensor)[0] for tensor in tensors if tensor.name == "token_embd.weight")
    head_dim = metadata.get("llama.attention.key_length") or hidden // heads
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": metadata["llama.feed_forward_length"],
        "num_hidden_layers": metadata["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": metadata.get("llama.attention.head_count_kv") or heads,
        "head_dim": head_dim,
        "vocab_size": vocab,
        "max_position_embeddings": metadata["llama.context_length"],
        "rope_theta": metadata.get("llama.rope.freq_base", 10000.0),
        "rms_norm_eps": _float32(metadata["llama.attention.layer_norm_rms_epsilon"]),
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "attention_dropout": 0.0,
        "initializer_range": 0.02,
        "tie_word_embeddings": "output.weight" not in names,
        "use_cache": True,
        "torch_dtype": "bfloat16",
        "bos_token_id": metadata.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": metadata.get("tokenizer.ggml.eos_token_id"),
        "pad_token_id": metadata.get("tokenizer.ggml.padding_token_id"),
    }


def _generation_config(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id") if config[key] is not None}


def _values(
    dequantize: Callable[..., "NDArray[Any]"],
    tensors: Sequence[Any],
    *,
    heads: Mapping[str, int],
    report: Callable[[str], None],
) -> "Iterator[NDArray[Any]]":
    """The tensors in fp32, one by one, in the order of the file."""
    for index, tensor in enumerate(tensors):
        tenth = 10 * index // len(tensors)
        if index and tenth > 10 * (index - 1) // len(tensors):
            report(f"unpacking weights: {10 * tenth}%")
        values = dequantize(tensor.data, tensor.tensor_type).reshape(_shape(tensor))
        match = _LAYER_TENSOR.fullmatch(tensor.name)
        rotated = heads.get(match.group(2)) if match else None
        yield _undo_rope_order(values, heads=rotated) if rotated else values


def _undo_rope_order(values: "NDArray[Any]", *, heads: int) -> "NDArray[Any]":
    """Rows of q or k back into the order of transformers.

    llama.cpp rotates neighbouring rows of a head, transformers row i with row i + half a head (llama.cpp,
    convert_hf_to_gguf.py, LlamaModel.permute).
    """
    rows, width = values.shape
    return values.reshape(heads, rows // heads // 2, 2, width).swapaxes(1, 2).reshape(rows, width)


def _new_name(name: str) -> str:
    """The Hugging Face name of a GGUF tensor; empty when a dense Llama has no such tensor."""
    match = _LAYER_TENSOR.fullmatch(name)
    if match is None:
        return _WHOLE_MODEL.get(name, "")
    inner = _IN_LAYER.get(match.group(2))
    return f"model.layers.{match.group(1)}.{inner}.weight" if inner else ""


def _shape(tensor: Any) -> tuple[int, ...]:
    """GGUF counts dimensions from the innermost."""
    return tuple(int(width) for width in reversed(tensor.shape))


def _float32(value: float) -> float:
    """The shortest decimal that fp32 rounds to `value`: 1e-05 and not 9.999999747378752e-06."""
    return float(f"{value:.7g}")


def _write_json(path: Path, values: Mapping[str, Any]) -> None:
    stated = {key: value for key, value in values.items() if value is not None}
    path.write_text(json.dumps(stated, indent=2) + "\n", encoding="utf-8")
