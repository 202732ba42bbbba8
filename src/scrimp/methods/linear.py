"""The linear layers of a model, under the names that transformers gives them: what adapters sit on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from scrimp.core.model import ModelShape

Part = Literal["attention", "mlp"]

# Modules of a loaded model, by their path. Routed experts and their router carry no adapter (see `linears`); what sees
# or hears is not tuned at all: its parameters are not in ModelShape either.
ROUTED = r"(.*\.)?(experts|router)(\..*)?"
OUTSIDE_TEXT = r"(.*\.)?(vision_tower|vision_model|visual|multi_modal_projector|audio_tower)(\..*)?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """One kind of linear layer in a model: `copies` of in_width x out_width. `part` says which block it is in."""

    name: str
    part: Part
    in_width: int
    out_width: int
    copies: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearNames:
    """What one family calls its matrices. One name for several (`qkv_proj`) means that they are one matrix."""

    query_key_value: tuple[str, ...] = ("q_proj", "k_proj", "v_proj")
    output: str = "o_proj"
    up: tuple[str, ...] = ("gate_proj", "up_proj")
    down: str = "down_proj"

    @property
    def all(self) -> tuple[str, ...]:
        """Every name, in the order of the forward pass."""
        return (*self.query_key_value, self.output, *self.up, self.down)


_LLAMA = LinearNames()
_NO_GATE = LinearNames(up=("up_proj",))
_GPT_NEOX = LinearNames(
    query_key_value=("query_key_value",), output="dense", up=("dense_h_to_4h",), down="dense_4h_to_h"
)
# Families whose names differ from Llama's, as of transformers 5.24 (models/<family>/modeling_<family>.py).
_FAMILIES: Mapping[str, LinearNames] = {
    "falcon": _GPT_NEOX,
    "glm": LinearNames(up=("gate_up_proj",)),
    "glm4": LinearNames(up=("gate_up_proj",)),
    "gpt_neox": _GPT_NEOX,
    "mpt": LinearNames(query_key_value=("Wqkv",), output="out_proj", up=("up_proj",)),
    "phi": LinearNames(output="dense", up=("fc1",), down="fc2"),
    "phi3": LinearNames(query_key_value=("qkv_proj",), up=("gate_up_proj",)),
    "starcoder2": LinearNames(up=("c_fc",), down="c_proj"),
}


def linear_names(shape: ModelShape) -> LinearNames:
    """What the family of `shape` calls its matrices."""
    return _FAMILIES.get(shape.family, _LLAMA if shape.gated_mlp else _NO_GATE)


def all_linear_names() -> tuple[str, ...]:
    """Every name that some family uses, Llama's first."""
    names = [name for family in (_LLAMA, *_FAMILIES.values()) for name in family.all]
    return tuple(dict.fromkeys(names))


def attention_names() -> tuple[str, ...]:
    """The names among them that belong to attention."""
    names = [name for family in (_LLAMA, *_FAMILIES.values()) for name in (*family.query_key_value, family.output)]
    return tuple(dict.fromkeys(names))


def linears(shape: ModelShape) -> tuple[Linear, ...]:
    """The linear layers inside the decoder layers that an adapter can sit on.

    Routed experts and their router are left out: transformers 5 keeps the experts of a layer in one three-dimensional
    parameter, and PEFT's adapter for such a one builds the whole weight of all experts anew in every forward pass. What
    a mixture has besides attention is adapted where it has a shared expert.
    """
    names, h, q, kv = linear_names(shape), shape.hidden, shape.attention_width, shape.kv_width
    widths = (q, kv, kv) if len(names.query_key_value) == 3 else (q + 2 * kv,)
    found = [
        Linear(name=name, part="attention", in_width=h, out_width=width, copies=shape.layers)
        for name, width in zip(names.query_key_value, widths, strict=True)
    ]
    found.append(Linear(name=names.output, part="attention", in_width=q, out_width=h, copies=shape.layers))
    for width, copies in _mlp_blocks(shape):
        up_width = (2 if shape.gated_mlp else 1) * width // len(names.up)
        found += [Linear(name=name, part="mlp", in_width=h, out_width=up_width, copies=copies) for name in names.up]
        found.append(Linear(name=names.down, part="mlp", in_width=width, out_width=h, copies=copies))
    return tuple(found)


def packable_params(shape: ModelShape) -> int:
    """Weights that 4- and 8-bit loading packs: those of the linear layers, experts again left out.

    Under transformers 5 bitsandbytes packs no routed experts, as they are no linear layers: 4-bit Mixtral keeps 45 of
    its 47 billion parameters in 16 bits.
    """
    return sum(item.in_width * item.out_width * item.copies for item in linears(shape)) + _dense_in_mixture(shape)


def _dense_in_mixture(shape: ModelShape) -> int:
    """Weights of the dense layers of a mixture without shared expert, which `linears` leaves out."""
    if not shape.experts or shape.shared_intermediate:
        return 0
    return shape.dense_layers * shape.mlp_params(shape.dense_intermediate)


def _mlp_blocks(shape: ModelShape) -> list[tuple[int, int]]:
    """(width, layers that have it) of the feed-forward blocks with adapters."""
    if not shape.experts:
        return [(shape.intermediate, shape.layers)]
    if not shape.shared_intermediate:
        return []
    blocks = [
        (shape.shared_intermediate, shape.layers - shape.dense_layers),
        (shape.dense_intermediate, shape.dense_layers),
    ]
    return [(width, copies) for width, copies in blocks if copies]
