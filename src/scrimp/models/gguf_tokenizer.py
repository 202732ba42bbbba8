"""The tokenizer inside a GGUF file as a Hugging Face tokenizer.json, with its pre-tokenizer kept."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scrimp._lazy import need
from scrimp.core.errors import SpecError

# What llama.cpp calls the splitting of text before byte pairs are merged (llama-vocab.cpp, LLAMA_VOCAB_PRE_TYPE_*).
# smollm splits every digit first, then like GPT-2. Families with other rules are refused: a tokenizer that is wrong on
# some texts shows only as a model that learns a little worse.
_SPLITS_DIGITS = {"smollm": True, "gpt-2": False}
# gguf.TokenType: control tokens are special, user-defined ones are added but ordinary.
_CONTROL, _USER_DEFINED = 3, 4


def write_tokenizer(metadata: Mapping[str, Any], folder: Path, *, origin: str) -> None:
    """Write tokenizer.json, tokenizer_config.json and chat_template.jinja.

    Args:
        metadata: all keys of the GGUF file.
        folder: where to.
        origin: name of the GGUF file, for messages.

    Raises:
        SpecError: not a byte-pair tokenizer, or one whose splitting rule is not known here.
    """
    kind, rule = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre", "gpt-2")
    if kind != "gpt2" or rule not in _SPLITS_DIGITS:
        raise SpecError(
            what=f"{origin} holds a tokenizer of kind {kind} with the splitting rule {rule}",
            expected=f"kind gpt2 with one of the rules {', '.join(_SPLITS_DIGITS)}",
            next_step="use the model's own tokenizer files from the hub instead",
        )
    _tokenizer(metadata, split_digits=_SPLITS_DIGITS[rule]).save(str(folder / "tokenizer.json"), pretty=False)
    config = json.dumps(_tokenizer_config(metadata), indent=2, ensure_ascii=False)
    (folder / "tokenizer_config.json").write_text(config + "\n", encoding="utf-8")
    template = metadata.get("tokenizer.chat_template")
    if template:
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")


def _tokenizer(metadata: Mapping[str, Any], *, split_digits: bool) -> Any:
    why = "to write the bundled model's tokenizer"
    tokenizers = need("tokenizers", extra="models", why=why)
    pre = need("tokenizers.pre_tokenizers", extra="models", why=why)
    tokens: list[str] = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ", 1)) for merge in metadata["tokenizer.ggml.merges"]]
    made = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab={token: index for index, token in enumerate(tokens)}, merges=merges)
    )
    prefix = bool(metadata.get("tokenizer.ggml.add_space_prefix", False))
    bytes_split = pre.ByteLevel(add_prefix_space=prefix)
    made.pre_tokenizer = (
        pre.Sequence([pre.Digits(individual_digits=True), bytes_split]) if split_digits else bytes_split
    )
    made.decoder = tokenizers.decoders.ByteLevel()
    for token, kind in zip(tokens, metadata["tokenizer.ggml.token_type"], strict=True):
        added = tokenizers.AddedToken(token, normalized=False, special=kind == _CONTROL)
        if kind == _CONTROL:
            made.add_special_tokens([added])
        elif kind == _USER_DEFINED:
            made.add_tokens([added])
    return made


def _tokenizer_config(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What transformers and others read beside tokenizer.json."""
    tokens: list[str] = metadata["tokenizer.ggml.tokens"]
    roles = {"bos_token": "bos", "eos_token": "eos", "pad_token": "padding", "unk_token": "unknown"}
    ids = {role: metadata.get(f"tokenizer.ggml.{key}_token_id") for role, key in roles.items()}
    return {
        # Not GPT2Tokenizer: transformers 5 would build that class's own splitting rule over the one in tokenizer.json.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": metadata["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        "add_bos_token": bool(metadata.get("tokenizer.ggml.add_bos_token", False)),
        "add_prefix_space": bool(metadata.get("tokenizer.ggml.add_space_prefix", False)),
        **{role: tokens[index] for role, index in ids.items() if index is not None},
    }
