"""What lies in a model folder: its config, its weights, its tokenizer."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from scrimp.core.errors import SpecError

# What makes a folder fit to tokenise: one file holds the whole tokenizer.
TOKENIZER_FILE = "tokenizer.json"
# The variable that says: load pickled weights (.bin) although unpickling can run code.
ALLOW_PICKLE = "SCRIMP_ALLOW_PICKLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weight files of a folder: `missing` are shards that the index names and the folder lacks."""

    safetensors: tuple[str, ...]
    pickled: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether all safetensors are there."""
        return bool(self.safetensors) and not self.missing


def read_config(path: Path) -> dict[str, Any]:
    """A config.json.

    Raises:
        SpecError: it cannot be read, or is no JSON object.
    """
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SpecError(
            what=f"{path} cannot be read as JSON: {error}",
            expected="the config.json that was published with the model",
            next_step="fetch the file again",
        ) from error
    if not isinstance(config, dict):
        raise SpecError(
            what=f"{path} holds {type(config).__name__} and no object",
            expected="the config.json that was published with the model",
            next_step="fetch the file again",
        )
    return cast(dict[str, Any], config)


def find_weights(folder: Path) -> Weights:
    """The weight files of `folder`; adapters do not count."""
    index = folder / "model.safetensors.index.json"
    named: set[str] = set()
    if index.is_file():
        named = {str(file) for file in read_config(index).get("weight_map", {}).values()}
    safetensors = {p.name for p in folder.glob("*.safetensors") if not p.name.startswith("adapter_")}
    pickled = {p.name for p in folder.glob("*.bin") if p.name.startswith(("pytorch_model", "model"))}
    return Weights(
        safetensors=tuple(sorted(safetensors)),
        pickled=tuple(sorted(pickled)),
        missing=tuple(sorted(named - safetensors)),
    )


def has_weights(folder: Path, *, env: Mapping[str, str]) -> bool:
    """Whether `folder` holds weights that may be loaded, all of them."""
    weights = find_weights(folder)
    return weights.whole or bool(weights.pickled and not weights.safetensors and env.get(ALLOW_PICKLE) == "1")


def check_trainable(folder: Path, *, env: Mapping[str, str]) -> None:
    """Refuse a folder that cannot be trained from, before anything is loaded.

    Raises:
        SpecError: no weights, some of them missing, only pickled ones, or packed ones (GPTQ, AWQ, 4-bit).
    """
    weights = find_weights(folder)
    if weights.missing:
        raise SpecError(
            what=f"{folder} lacks {len(weights.missing)} of the files that its index names: {weights.missing[0]} ...",
            expected="all shards of the weights",
            next_step="fetch the missing files, or remove the folder and fetch the model again",
        )
    if not weights.safetensors:
        if not weights.pickled:
            raise SpecError(
                what=f"{folder} holds no weights",
                expected="*.safetensors beside the config.json",
                next_step="give a folder with weights, or a hub id",
            )
        check_pickle_allowed(f"{folder} holds its weights only as {weights.pickled[0]}", env=env)
    packed = read_config(folder / "config.json").get("quantization_config")
    if packed:
        raise SpecError(
            what=f"the weights in {folder} are packed already ({packed.get('quant_method', 'of unknown kind')})",
            expected="16- or 32-bit weights; the method qlora packs them itself",
            next_step="use the model that the packed one was made from",
        )


def check_pickle_allowed(what: str, *, env: Mapping[str, str]) -> None:
    """Refuse pickled weights unless the user has allowed them.

    Raises:
        SpecError: not allowed; `what` says where they are.
    """
    if env.get(ALLOW_PICKLE) != "1":
        raise SpecError(
            what=f"{what}, and reading a pickle can run code",
            expected="*.safetensors",
            next_step=f"convert it, or set {ALLOW_PICKLE}=1 if you trust where it comes from",
        )
