"""Activations: bytes per token and layer that backward needs, counted tensor by tensor.

Every term is a tensor that a trace of the model's own code shows alive between forward and backward (tests/trace holds
the count against such traces, family by family, within 5%; docs/explanation/memory.md shows how far off it is). For
Llama with adapters under bf16 autocast, h hidden, i intermediate, a and k the widths of queries and of keys:

    two norms' inputs in fp32                    8 h
    query, key, value, attention's output        4 a + 4 k, and 4 bytes a head
    gate, its activation, up                     6 i
    each adapter's 16-bit copy of its input      2 (in) + 2 rank

Not counted: parallel attention blocks beyond their norms, soft caps of scores where they are written out.
"""

from dataclasses import dataclass

from scrimp.core.model import ModelShape
from scrimp.core.recipe import Checkpointing
from scrimp.estimate.memory.case import MemoryCase
from scrimp.estimate.memory.families import LayerParts, layer_parts
from scrimp.methods.linear import LinearNames, linear_names

_DROPOUT_MASK_BYTES = 1  # CUDA's fused dropout keeps one byte an element
_FP32 = 4
# A router keeps its probabilities in fp32; for each expert that a token takes, four indices of 8 bytes and a weight.
_ROUTED_BYTES = 4 * 8 + 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerBytes:
    """Bytes per token of one layer.

    kept_bytes        kept from forward to backward without checkpointing
    backward_bytes    more, while this layer's backward runs
    selective_bytes   kept under selective checkpointing: the layer's input and what is dear to compute again
    again_bytes       what selective checkpointing computes again and holds beside that
    input_bytes       the layer's input, which is all that full checkpointing keeps
    """

    kept_bytes: float
    backward_bytes: float
    selective_bytes: float
    again_bytes: float
    input_bytes: float

    def kept_under(self, checkpointing: Checkpointing) -> float:
        """What stays from forward to backward."""
        kept = {"none": self.kept_bytes, "selective": self.selective_bytes, "full": self.input_bytes}
        return kept[checkpointing]

    def recomputed_under(self, checkpointing: Checkpointing) -> float:
        """What is there again, beside that, while this layer's backward runs."""
        again = {"none": 0.0, "selective": self.again_bytes, "full": self.kept_bytes}
        return again[checkpointing]


def layer_bytes(case: MemoryCase) -> LayerBytes:
    """Count one layer of the model (a mixture: the mean over its layers)."""
    layer = _Layer.of(case)
    kept = layer.norm_bytes() + layer.attention_bytes() + layer.mlp_bytes() + layer.linear_input_bytes()
    dear, again = layer.selective_bytes()
    return LayerBytes(
        kept_bytes=kept,
        backward_bytes=layer.backward_bytes(),
        selective_bytes=layer.stream * case.shape.hidden + dear,
        again_bytes=kept - again,
        input_bytes=layer.stream * case.shape.hidden,
    )


def mlp_width(shape: ModelShape) -> float:
    """Feed-forward width that one token passes, as a mean over the layers of a mixture."""
    if not shape.experts:
        return shape.intermediate
    sparse = shape.experts_active * shape.intermediate + shape.shared_intermediate
    dense = shape.dense_intermediate or shape.intermediate
    return (sparse * (shape.layers - shape.dense_layers) + dense * shape.dense_layers) / shape.layers


@dataclass(frozen=True, slots=True, kw_only=True)
class _Input:
    """A tensor that linear layers read; `values` per token as a mean over all layers of the model."""

    source: str
    values: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """One layer of a case, with what its counts share.

    compute     bytes of a value in matrix products
    product     bytes of a value that a linear layer puts out
    stream      bytes of a value of the residual stream
    """

    case: MemoryCase
    parts: LayerParts
    names: LinearNames
    width: float
    compute: int
    product: int
    stream: int

    @classmethod
    def of(cls, case: MemoryCase) -> "_Layer":
        """A 4-bit layer of bitsandbytes gives back the dtype that it is given: fp32 after a norm that puts out fp32,
        which upcast weights and autocast's LayerNorm do, and the stream follows.
        """
        parts, compute = layer_parts(case.shape), case.compute_bytes
        wide = case.recipe.weight_dtype == "nf4" and _autocasts(case) and (case.upcasts or parts.layer_norm)
        return cls(
            case=case,
            parts=parts,
            names=linear_names(case.shape),
            width=mlp_width(case.shape),
            compute=compute,
            product=_FP32 if wide else compute,
            stream=_FP32 if wide else case.residual_bytes,
        )

    @property
    def fused_kernels(self) -> bool:
        return self.case.stack.kernels == "fused"

    @property
    def is_wide(self) -> bool:
        """Whether linear layers put out fp32 although they multiply in 16 bit."""
        return self.product > self.compute

    def norm_bytes(self) -> float:
        """Norms of the stream and, where there are any, of queries and keys; with a statistic each.

        RMSNorm keeps its input in fp32 and, when its weight is trained, the normed value; LayerNorm its input.
        """
        shape, parts = self.case.shape, self.parts
        if self.fused_kernels:
            return parts.norms * shape.hidden * self.stream
        if parts.layer_norm:
            return parts.norms * (shape.hidden * (_FP32 if _autocasts(self.case) else self.stream) + 2 * _FP32)
        of_stream = parts.norms * (shape.hidden * (_FP32 + self._normed_bytes(self.stream)) + _FP32)
        if not shape.qk_norm:
            return of_stream
        heads = shape.heads + shape.kv_heads
        return of_stream + heads * (shape.head_dim * (_FP32 + self._normed_bytes(self.product)) + _FP32)

    def _normed_bytes(self, dtype_bytes: int) -> int:
        if self.case.tuning.frozen_base:
            return 0
        return _FP32 if self.parts.fp32_norm_weights else dtype_bytes

    def attention_bytes(self) -> float:
        """Query, key, value, output, and an fp32 statistic a head; scores where the software keeps them."""
        case, shape = self.case, self.case.shape
        kv_width = shape.attention_width if case.stack.repeats_kv else shape.kv_width
        each = case.stack.attention_bytes or self.compute
        scores = case.stack.score_bytes * shape.heads * case.longest_row_tokens
        return each * 2 * (shape.attention_width + kv_width) + _FP32 * shape.heads + self._whole_matrix_bytes() + scores

    def _whole_matrix_bytes(self) -> float:
        """A value that is a view into one matrix for q, k and v keeps the whole of it; a copied-out one does not."""
        shape, stack = self.case.shape, self.case.stack
        views = shape.kv_heads == shape.heads if stack.fused_qkv else len(self.names.query_key_value) == 1
        copied = stack.attention_bytes is not None or self.is_wide
        return self.compute * (shape.attention_width + shape.kv_width) if views and not copied else 0.0

    def mlp_bytes(self) -> float:
        """The feed-forward block between its linear layers; in a mixture also what routing keeps."""
        tensors = min(2.0, self.parts.inner_tensors) if self.fused_kernels else self.parts.inner_tensors
        return self.product * tensors * self.width + self._routing_bytes()

    def _routing_bytes(self) -> float:
        """Outputs of the experts before they are weighted, and the router's choice."""
        shape = self.case.shape
        if not shape.experts:
            return 0.0
        share = (shape.layers - shape.dense_layers) / shape.layers
        outputs = shape.experts_active + (1 if shape.shared_intermediate else 0)
        choice = shape.experts_active * _ROUTED_BYTES + _FP32 * shape.experts
        return share * (outputs * self.compute * shape.hidden + choice)

    def linear_input_bytes(self) -> float:
        """Inputs of linear layers that a weight gradient needs.

        Layers that read the same tensor share it, unless each casts its own 16-bit copy or drops its own values.
        """
        case = self.case
        packed = case.recipe.weight_dtype == "nf4" and case.stack.keeps_packed_inputs
        copies, shared = 0.0, set[_Input]()
        if not case.tuning.frozen_base:
            copies, shared = self._trained_inputs()
        elif packed:
            # Old bitsandbytes keeps a copy for each matrix: what attention put out, the stream again for gate or up.
            stream = case.shape.hidden if case.shape.gated_mlp else 0
            copies, shared = self.compute * (case.shape.attention_width + stream), self._all_inputs()
        own = self._adapter_copy_bytes()
        inputs = self._adapter_inputs()
        inner = self.compute * self._rank() * len(inputs)
        # Attention's output is kept by attention itself, in 16 bit, so that adapters need no copy of it.
        if own and self._shares_16_bit_inputs and not case.tuning.dropout:
            inputs = [item for item in inputs if item.source != "attention_out"]
        if not own:
            shared |= {item for item in inputs if item.source != "attention_out"}
            inputs = []
        return copies + inner + own * sum(x.values for x in inputs) + self.compute * sum(x.values for x in shared)

    def _trained_inputs(self) -> tuple[float, set[_Input]]:
        """Under autocast every layer casts the fp32 stream for itself; what down reads is 16 bit already."""
        hidden = self.case.shape.hidden
        if not (self.case.autocasts_weights or (self.parts.layer_norm and _autocasts(self.case))):
            return 0.0, self._all_inputs()
        readers = len(self.names.query_key_value) + len(self.names.up)
        return self.compute * hidden * readers, {_Input(source="mlp_out", values=self.width)}

    def _all_inputs(self) -> set[_Input]:
        """What q, k, v and gate, up read; experts read a row for each that a token takes."""
        shape = self.case.shape
        share = (shape.layers - shape.dense_layers) / shape.layers if shape.experts else 0.0
        rows = 1 + share * shape.experts_active
        return {
            _Input(source="attention_in", values=shape.hidden),
            _Input(source="mlp_in", values=shape.hidden * rows),
            _Input(source="mlp_out", values=self.width),
        }

    def _adapter_inputs(self) -> list[_Input]:
        """What each adapter of a layer reads; one adapter reads for q, k and v together where they are fused."""
        names = self.names
        sources = {names.output: "attention_out", names.down: "mlp_out"} | dict.fromkeys(names.up, "mlp_in")
        inputs: list[_Input] = []
        for linear in self.case.tuning.adapted:
            source = sources.get(linear.name, "attention_in")
            item = _Input(source=source, values=linear.in_width * linear.copies / self.case.shape.layers)
            if not (self.case.stack.fused_qkv and source == "attention_in" and item in inputs):
                inputs.append(item)
        return inputs

    def _rank(self) -> float:
        """The adapters' inner width: what the first matrix puts out is kept for the second."""
        width = sum((each.in_width + each.out_width) * each.copies for each in self.case.tuning.adapted)
        return self.case.tuning.trainable_params / width if width else 0.0

    @property
    def _shares_16_bit_inputs(self) -> bool:
        """PEFT's 4-bit adapters leave casting to autocast; its other ones cast their input to fp32 first."""
        return self.case.recipe.weight_dtype == "nf4" and _autocasts(self.case)

    def _adapter_copy_bytes(self) -> int:
        """Bytes per input value that each adapter keeps for itself; 0 when it shares its neighbours' input."""
        math, dropout = self.case.stack.adapter_math, bool(self.case.tuning.dropout)
        shares = self.compute == _FP32 or math == "base" or (self._shares_16_bit_inputs and not self.is_wide)
        if shares:
            return self.compute + _DROPOUT_MASK_BYTES if dropout else 0
        copy = _FP32 if math == "fp32" else self.compute
        return copy + _DROPOUT_MASK_BYTES if dropout else copy

    def backward_bytes(self) -> float:
        """What the feed-forward block's backward holds beside what was kept, at its worst.

        Three gradients of the inner width where nothing that was kept is freed on the way; two where the product that
        down reads was kept, as it goes first. An adapter on down that casts its input to fp32 does so once more: while
        the layer is computed again (the product, its fp32 copies, five values of the stream), and in backward with the
        gradients of both branches. Held against traces of one layer by tests/trace.
        """
        case, hidden = self.case, self.case.shape.hidden
        adapted = any(linear.name == self.names.down for linear in case.tuning.adapted)
        if not adapted:
            tensors = 3 if case.tuning.frozen_base else 2
            # Each expert's rows have gradients of their own going in and out.
            rows = 2 * case.shape.experts_active + (0 if case.autocasts_weights else 1)
            return self.product * tensors * self.width + self.compute * hidden * rows
        if not self._adapter_copy_bytes() or self._shares_16_bit_inputs:
            tensors = 3 if case.tuning.dropout or self.is_wide else 2
            return self.product * tensors * self.width + self.compute * hidden
        copies = 2 if case.tuning.dropout else 1
        again = (self.product + copies * _FP32) * self.width + 5 * self.compute * hidden
        return max(again, (2 * self.product + _FP32) * self.width + 2 * self.compute * hidden)

    def selective_bytes(self) -> tuple[float, float]:
        """What train/recompute.py keeps beside the layer's input, and how much of that is among what is kept without.

        It keeps what the model's own matrices and attention put out, and what adapters put out in their rank. A 4-bit
        layer is an operator of its own that it does not know. Where an adapter adds to a product the sum is a tensor of
        its own. On SmolLM2-135M with LoRA of rank 8 this is, with the input, 13,972 bytes a token and layer in bf16,
        and 15,012 when fp32 weights are trained under autocast: what this trainer holds there to the byte.
        """
        case, shape = self.case, self.case.shape
        each = case.stack.attention_bytes or self.compute
        attention = each * shape.attention_width + _FP32 * shape.heads
        ranks = self.compute * self._rank() * len(self._adapter_inputs())
        if case.recipe.weight_dtype == "nf4":
            return attention + ranks, attention + ranks
        adapted = {linear.name for linear in case.tuning.adapted}
        inner = self.width * (2 if shape.gated_mlp else 1)
        kept_anyway = {name: inner / len(self.names.up) for name in self.names.up}
        kept_anyway |= dict.fromkeys(self.names.query_key_value[-1:], shape.kv_width)
        overlap = self.compute * sum(width for name, width in kept_anyway.items() if name not in adapted)
        outputs = shape.attention_width + 2 * shape.kv_width + inner
        outputs += shape.hidden * (1 + (shape.experts_active or 1))
        return attention + self.compute * outputs + ranks, attention + overlap + ranks


def _autocasts(case: MemoryCase) -> bool:
    """Whether forward runs under autocast to 16 bit."""
    return case.stack.adapter_math == "autocast" and case.compute_bytes == 2
