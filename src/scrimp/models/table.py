"""Well-known models by name, so that planning works without weights and without network.

`table.csv` has one row per set of sizes; models that share them (base, instruct) share the row, so that each hub id
keeps its own weights. Parameters were published by others (column `params_source`); sizes come from each
config.json (column `source`).
"""

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from scrimp.core.model import ModelShape

_COUNTS = (
    "hidden",
    "layers",
    "heads",
    "kv_heads",
    "head_dim",
    "intermediate",
    "vocab",
    "max_positions_tokens",
    "experts",
    "experts_active",
)
_FLAGS = ("tied_embeddings", "gated_mlp", "attention_bias", "qk_norm")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """One row. `names` leads from every spelling that is understood to the hub id that it means."""

    hub_ids: tuple[str, ...]
    names: Mapping[str, str]
    shape: ModelShape
    published_params: int
    params_source: str
    licence: str


@lru_cache(maxsize=1)
def known_models() -> tuple[KnownModel, ...]:
    """All rows, in the order of the file."""
    with Path(__file__).with_name("table.csv").open(encoding="utf-8", newline="") as file:
        return tuple(_known_model(row) for row in csv.DictReader(file))


@lru_cache(maxsize=1)
def known_shapes() -> Mapping[str, ModelShape]:
    """Every hub id of the table and its shape, named by that id."""
    return {hub_id: replace(row.shape, name=hub_id) for row in known_models() for hub_id in row.hub_ids}


def find_known(name: str) -> tuple[str, ModelShape] | None:
    """The hub id that `name` means, and its shape; None when the table has no such name.

    A name is a hub id, a hub id without its owner, or an alias; case does not count, nor whether a digit is
    joined to the word before it (llama-3-8b, llama3-8b).
    """
    hub_id = _names().get(_plain(name))
    return (hub_id, known_shapes()[hub_id]) if hub_id else None


@lru_cache(maxsize=1)
def _names() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for row in known_models():
        for name, hub_id in row.names.items():
            found.setdefault(name, hub_id)
    return found


def _plain(name: str) -> str:
    """Lower case, one kind of separator, none between a word and a digit: what two spellings have in common."""
    lower = re.sub(r"[_:\s]+", "-", name.strip().lower())
    return re.sub(r"(?<=[a-z])-(?=\d)", "", lower)


def _known_model(row: Mapping[str, str]) -> KnownModel:
    hub_ids = tuple(row["hub_ids"].split())
    names: dict[str, str] = {}
    for hub_id in hub_ids:
        names[_plain(hub_id)] = hub_id
        names[_plain(hub_id.partition("/")[2])] = hub_id
    for alias in row["aliases"].split():
        name, _, hub_id = alias.partition("=")
        names[_plain(name)] = hub_id or hub_ids[0]
    shape = ModelShape(
        name=hub_ids[0],
        family=row["family"],
        native_dtype=row["native_dtype"],
        source=f"{row['source']}",
        **{key: int(row[key]) for key in _COUNTS},
        **{key: row[key] == "1" for key in _FLAGS},
    )
    return KnownModel(
        hub_ids=hub_ids,
        names=names,
        shape=shape,
        published_params=int(row["published_params"]),
        params_source=row["params_source"],
        licence=row["licence"],
    )
