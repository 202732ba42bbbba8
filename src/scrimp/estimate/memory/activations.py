"""Activations: bytes per token and layer that backward needs, counted tensor by tensor.

The count reproduces a traced table (Hugging Face Llama, flash attention, grouped heads written out, adapters of rank
8; bytes per token and layer, h hidden, i intermediate), which itself fits traces of four shapes within 0.6%:

    adapters                        q,v            all linears     q,v + dropout   all + dropout
    16 bit                          19.6h + 5.9i   21.6h + 7.9i    23.6h + 5.9i    35.6h + 8.9i
    fp32 under bf16 autocast        21.6h + 5.9i   29.7h + 7.9i    23.6h + 5.9i    35.7h + 8.9i
    fp32, no autocast               25.6h + 5.9i   41.7h + 9.8i    27.6h + 5.9i    47.7h + 10.8i

Not counted: eager attention (scores of batch x heads x length^2), parallel attention blocks, routers of a mixture.
"""

from dataclasses import dataclass

from scrimp.core.model import ModelShape
from scrimp.core.recipe import Checkpointing
from scrimp.estimate.memory.case import MemoryCase
from scrimp.methods.linear import linear_names

_DROPOUT_MASK_BYTES = 1  # CUDA's fused dropout keeps one byte an element


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationConstants:
    """Tensors kept, in values of the compute dtype.

    leftover_h              what the traced table keeps beyond the tensors counted here (rotary embedding, attention
                            statistics), per hidden value: 1.6 bytes
    gated_tensors           gate, silu(gate) and up, per intermediate value: 5.9 bytes in the traced table
    fused_gated_tensors     gate and up alone: Liger's SwiGLU recomputes the rest
    *_backward_tensors      gradients alive at once inside one feed-forward block; checked on the measured slope of
                            Mistral-7B with a fused loss (266 kB a token for one layer recomputed)
    """

    leftover_h: float = 0.8
    gated_tensors: float = 2.95
    fused_gated_tensors: float = 2.0
    gated_backward_tensors: float = 3.0
    plain_backward_tensors: float = 2.0


CONSTANTS = ActivationConstants()


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerBytes:
    """Bytes per token of one layer.

    kept_bytes        kept from forward to backward without checkpointing
    backward_bytes    more, while this layer's backward runs
    selective_bytes   kept under selective checkpointing: the layer's input and what is dear to compute again
    of_kept_bytes     how much of that is among `kept_bytes`, and not there a second time in backward
    input_bytes       the layer's input, which is all that full checkpointing keeps
    """

    kept_bytes: float
    backward_bytes: float
    selective_bytes: float
    of_kept_bytes: float
    input_bytes: float

    def kept_under(self, checkpointing: Checkpointing) -> float:
        """What stays from forward to backward."""
        kept = {"none": self.kept_bytes, "selective": self.selective_bytes, "full": self.input_bytes}
        return kept[checkpointing]

    def recomputed_under(self, checkpointing: Checkpointing) -> float:
        """What is there again, beside that, while this layer's backward runs."""
        again = {"none": 0.0, "selective": self.kept_bytes - self.of_kept_bytes, "full": self.kept_bytes}
        return again[checkpointing]


def layer_bytes(case: MemoryCase, *, constants: ActivationConstants = CONSTANTS) -> LayerBytes:
    """Count one layer of the model (a mixture: the mean over its layers)."""
    shape, c = case.shape, case.compute_bytes
    width = mlp_width(shape)
    kv_width = shape.attention_width if case.stack.repeats_kv else shape.kv_width
    tensors = constants.gated_backward_tensors if shape.gated_mlp else constants.plain_backward_tensors
    kept = (
        _norm_bytes(case)
        + (case.stack.attention_bytes or c) * 2 * (shape.attention_width + kv_width)
        + _fused_qkv_bytes(case)
        + _score_bytes(case)
        + c * constants.leftover_h * shape.hidden
        + _mlp_bytes(case, width, constants)
        + _linear_input_bytes(case, width)
    )
    return LayerBytes(
        kept_bytes=kept,
        backward_bytes=c * (tensors * width + shape.hidden),
        selective_bytes=case.residual_bytes * shape.hidden + _dear_bytes(case, width),
        of_kept_bytes=(case.stack.attention_bytes or c) * shape.attention_width + c * _up_matrices(shape) * width,
        input_bytes=case.residual_bytes * shape.hidden,
    )


def _dear_bytes(case: MemoryCase, width: float) -> float:
    """What selective checkpointing keeps beside the input (train/recompute.py): what the model's own matrices give,
    attention with the fp32 sum of each head's scores, and what adapters give in their rank.

    On SmolLM2-135M with LoRA of rank 8 this is, with the input, 13,972 bytes a token and layer in bf16, and 15,012 when
    fp32 weights are trained under autocast: what this trainer holds there to the byte.
    """
    shape, c = case.shape, case.compute_bytes
    products = shape.attention_width + 2 * shape.kv_width + 2 * shape.hidden + _up_matrices(shape) * width
    attention = (case.stack.attention_bytes or c) * shape.attention_width + 4 * shape.heads
    return c * (products + _adapter_rank_values(case)) + attention


def _up_matrices(shape: ModelShape) -> int:
    """Matrices that write the wide values of the feed-forward block: gate and up, or up alone."""
    return 2 if shape.gated_mlp else 1


def _adapter_rank_values(case: MemoryCase) -> float:
    """Values that the first matrices of all adapters of a layer give: the rank, once each."""
    if not case.tuning.adapted:
        return 0.0
    copies = sum(linear.copies for linear in case.tuning.adapted)
    widths = sum((linear.in_width + linear.out_width) * linear.copies for linear in case.tuning.adapted)
    return case.tuning.trainable_params / widths * copies / case.shape.layers


def mlp_width(shape: ModelShape) -> float:
    """Feed-forward width that one token passes, as a mean over the layers of a mixture."""
    if not shape.experts:
        return shape.intermediate
    sparse = shape.experts_active * shape.intermediate + shape.shared_intermediate
    dense = shape.dense_intermediate or shape.intermediate
    return (sparse * (shape.layers - shape.dense_layers) + dense * shape.dense_layers) / shape.layers


def _norm_bytes(case: MemoryCase) -> float:
    """Two norms: eager RMSNorm keeps its input in fp32, LayerNorm (ungated models) and fused ones in its own dtype.

    A trained norm weight keeps the normed value as well.
    """
    fused = case.stack.kernels == "fused"
    kept = case.residual_bytes if fused or not case.shape.gated_mlp else 4
    trained = 0 if case.tuning.frozen_base or fused else case.residual_bytes
    return 2 * case.shape.hidden * (kept + trained)


def _fused_qkv_bytes(case: MemoryCase) -> float:
    """A value that is a view into one matrix for q, k and v keeps the whole of it; a copied-out one does not."""
    views = case.stack.fused_qkv and case.shape.kv_heads == case.shape.heads
    return case.compute_bytes * (case.shape.attention_width + case.shape.kv_width) if views else 0.0


def _score_bytes(case: MemoryCase) -> float:
    """Scores of one token with all tokens of its row, in every head."""
    return case.stack.score_bytes * case.shape.heads * case.longest_row_tokens


def _mlp_bytes(case: MemoryCase, width: float, constants: ActivationConstants) -> float:
    """The feed-forward block between its linear layers; ungated it keeps the activation's input alone."""
    if not case.shape.gated_mlp:
        return case.compute_bytes * width
    fused = case.stack.kernels == "fused"
    return case.compute_bytes * width * (constants.fused_gated_tensors if fused else constants.gated_tensors)


def _linear_input_bytes(case: MemoryCase, width: float) -> float:
    """Inputs of linear layers that a weight gradient needs.

    Layers that read the same tensor share it, unless each casts its own 16-bit copy (autocast) or drops its own values.
    """
    hidden, c = case.shape.hidden, case.compute_bytes
    copies = 0.0
    shared: set[_Input] = set()
    packed = case.recipe.weight_dtype == "nf4" and case.stack.keeps_packed_inputs
    if not case.tuning.frozen_base and case.autocasts_weights:
        # q, k, v, gate and up each cast the fp32 stream; what down reads is 16 bit already.
        copies = c * hidden * (5 if case.shape.gated_mlp else 4)
        shared = {_Input(source="mlp_out", values=width)}
    elif packed:
        # Old bitsandbytes keeps a copy for each matrix: what attention put out, the stream once more for gate or up.
        copies = c * (case.shape.attention_width + (hidden if case.shape.gated_mlp else 0))
    if packed or (not case.tuning.frozen_base and not case.autocasts_weights):
        shared = {_Input(source=source, values=hidden) for source in ("attention_in", "mlp_in")}
        shared.add(_Input(source="mlp_out", values=width))
    own = _adapter_copy_bytes(case)
    inputs = _adapter_inputs(case)
    if own:
        return copies + own * sum(item.values for item in inputs) + c * sum(item.values for item in shared)
    # Attention's output is kept by attention itself.
    shared |= {item for item in inputs if item.source != "attention_out"}
    return copies + c * sum(item.values for item in shared)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Input:
    """A tensor that linear layers read; `values` per token as a mean over all layers of the model."""

    source: str
    values: float


def _adapter_inputs(case: MemoryCase) -> list[_Input]:
    """What each adapter of a layer reads; one adapter reads for q, k and v together where they are fused."""
    names = linear_names(case.shape)
    sources = {names.output: "attention_out", names.down: "mlp_out"} | dict.fromkeys(names.up, "mlp_in")
    inputs: list[_Input] = []
    for linear in case.tuning.adapted:
        source = sources.get(linear.name, "attention_in")
        item = _Input(source=source, values=linear.in_width * linear.copies / case.shape.layers)
        if not (case.stack.fused_qkv and source == "attention_in" and item in inputs):
            inputs.append(item)
    return inputs


def _adapter_copy_bytes(case: MemoryCase) -> int:
    """Bytes per input value that each adapter keeps for itself; 0 when it shares its neighbours' input."""
    c, dropout = case.compute_bytes, bool(case.tuning.dropout)
    if c == 4 or case.stack.adapter_math == "base":
        return c + _DROPOUT_MASK_BYTES if dropout else 0
    copy = 4 if case.stack.adapter_math == "fp32" else c
    return copy + _DROPOUT_MASK_BYTES if dropout else copy
