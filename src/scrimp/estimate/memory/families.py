"""What a layer of one family keeps for backward that a layer of another does not, as transformers 5.24 has them.

Read from the models' own code (models/<family>/modeling_<family>.py) and held against traces of it (tests/trace).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from scrimp.core.model import ModelShape


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerParts:
    """One family's layer.

    norms                norms over the residual stream: two, four where the outputs of both blocks are normed as well,
                         one where attention and feed-forward read the same
    layer_norm           torch's LayerNorm, which autocast runs in fp32 and whose output is fp32 then; it keeps its
                         input alone. Else RMSNorm written out, which keeps its input in fp32
    fp32_norm_weights    the norm multiplies with its weight in fp32, so a trained weight keeps an fp32 value
    inner_tensors        tensors of the feed-forward's inner width that stay between its linear layers: gate,
                         activation and up; without a gate the activation's input, unless it is made of parts
    """

    norms: int = 2
    layer_norm: bool = False
    fp32_norm_weights: bool = False
    inner_tensors: float = 3.0


_GATED = LayerParts()
_PLAIN = LayerParts(layer_norm=True, inner_tensors=1.0)
_FAMILIES: Mapping[str, LayerParts] = {
    # The square of a ReLU, over RMSNorm.
    "arcee": LayerParts(inner_tensors=1.0),
    "gemma": LayerParts(fp32_norm_weights=True),
    "gemma2": LayerParts(norms=4, fp32_norm_weights=True),
    "gemma3_text": LayerParts(norms=4, fp32_norm_weights=True),
    "glm4": LayerParts(norms=4),
    # Gate and up are clamped, and the activation is made of parts.
    "gpt_oss": LayerParts(inner_tensors=6.0),
    "helium": LayerParts(fp32_norm_weights=True),
    "olmo2": LayerParts(fp32_norm_weights=True),
    "olmo3": LayerParts(fp32_norm_weights=True),
    "olmo": LayerParts(layer_norm=True),
    # GELU in its tanh form, written out: input, half of it, tanh and one plus that.
    "phi": LayerParts(norms=1, layer_norm=True, inner_tensors=4.0),
    "stablelm": LayerParts(layer_norm=True),
}


def layer_parts(shape: ModelShape) -> LayerParts:
    """The parts of the shape's family; an unknown one is taken for Llama or, without a gate, for GPT-NeoX."""
    return _FAMILIES.get(shape.family, _GATED if shape.gated_mlp else _PLAIN)
