"""Memory of one card in tensors, phase by phase: what is alive at the peak of each.

    load               weights + adapters + the largest tensor on its way in
    forward_backward   static + max( kept + loss + gradients + 16-bit weights,   at the end of the forward pass
                                     kept + one layer's backward + gradients )   inside the backward pass
    optimizer_step     static + gradients + the update's own copies
    evaluation         static + one layer + logits of one micro-batch
    save               static

static = weights + adapters + optimizer states. `kept` is every layer's activations, or the layers' inputs alone under
checkpointing. Without accumulation gradients fill up while what was kept is freed, so the larger of the two counts.
"""

from collections.abc import Callable

from scrimp.core.forecast import MemoryPhase, MemoryTerm
from scrimp.estimate.memory.activations import LayerBytes, layer_bytes
from scrimp.estimate.memory.case import MemoryCase

# Sharded runs with checkpointing hold two layers' recompute (fms-acceleration, 2 and 4 GPUs, fused loss: Llama-3-8B and
# Mistral-7B rows lie 0.9-1.1 layers above the single-GPU formula) where the base is frozen; full fine-tuning and
# mixtures hold one. All gather two layers at a time (prefetch).
SHARDED_LAYERS_IN_FLIGHT = 2
# A 4-bit head is there in 16 bit for its product and, measured on litgpt's rows, once more for its backward.
UNPACKED_HEAD_BYTES = 4
# An evaluation makes logits, their fp32 copy and the log-softmax, and no gradient: 10 of 12 bytes.
_EVALUATION_SHARE = 10 / 12


Terms = tuple[MemoryTerm, ...]


def _total_bytes(terms: Terms) -> float:
    return sum(term.size_bytes for term in terms)


def memory_phases(case: MemoryCase, *, weigh: Callable[[Terms], float] = _total_bytes) -> tuple[MemoryPhase, ...]:
    """All five phases, in the order of a run.

    A phase is its worse moment: `weigh` says how many bytes the terms of one come to, where that is not their sum.
    """
    layer = layer_bytes(case)
    weights = _weights(case)
    static = (*weights, *_states(case))
    return (
        MemoryPhase(name="load", terms=(*weights, *_in_transit(case))),
        MemoryPhase(name="forward_backward", terms=(*static, *_forward_backward(case, layer, weigh))),
        MemoryPhase(name="optimizer_step", terms=(*static, *_optimizer_step(case))),
        MemoryPhase(name="evaluation", terms=(*static, *_evaluation(case, layer, weigh))),
        MemoryPhase(name="save", terms=static),
    )


def peak_bytes(case: MemoryCase) -> float:
    """The largest phase: what the allocator hands out at most."""
    return max(phase.total_bytes for phase in memory_phases(case))


def _terms(*sizes: tuple[str, float]) -> tuple[MemoryTerm, ...]:
    return tuple(MemoryTerm(name=name, size_bytes=size) for name, size in sizes if size > 0)


def _weights(case: MemoryCase) -> tuple[MemoryTerm, ...]:
    if case.stack.offloads:
        return ()
    return _terms(("weights", case.weight_bytes / case.shards), ("adapters", case.adapter_bytes / case.shards))


def _states(case: MemoryCase) -> tuple[MemoryTerm, ...]:
    return () if case.stack.offloads else _terms(("optimizer states", case.state_bytes / case.state_shards))


def _in_transit(case: MemoryCase) -> tuple[MemoryTerm, ...]:
    """Files hold 16-bit tensors: what is stored otherwise is converted one tensor at a time."""
    largest = max(case.largest_linear_params, case.shape.embedding_params)
    transit = 0 if case.recipe.weight_dtype in {"bf16", "fp16"} else 2 * largest
    return _terms(("tensor being converted", transit))


def _forward_backward(case: MemoryCase, layer: LayerBytes, weigh: Callable[[Terms], float]) -> Terms:
    """The worse of two moments: the end of the forward pass with its loss, or a layer's backward."""
    return max((_at_the_loss(case, layer), _in_a_layers_backward(case, layer)), key=weigh)


def _kept(case: MemoryCase, layer: LayerBytes) -> tuple[str, float]:
    depth = 0 if case.stack.offloads_activations else case.tokens * case.shape.layers
    name = "checkpointed layer inputs" if case.recipe.checkpointing == "full" else "activations"
    return name, depth * layer.kept_under(case.recipe.checkpointing)


def _at_the_loss(case: MemoryCase, layer: LayerBytes) -> tuple[MemoryTerm, ...]:
    copies = 2 * (case.shape.linear_params + case.shape.embedding_params) if case.autocasts_weights else 0
    return _terms(
        _kept(case, layer),
        ("logits and loss", case.logits_bytes + _head_input_bytes(case)),
        ("gradients", case.live_gradient_bytes / case.state_shards if case.stack.accumulates else 0),
        ("16-bit weight copies", copies),
        ("unpacked head", UNPACKED_HEAD_BYTES * case.shape.embedding_params if case.packs_head else 0),
        ("gathered shards", _gathered_bytes(case)),
    )


def _head_input_bytes(case: MemoryCase) -> float:
    """The last norm in fp32 and what it puts out; a loss in pieces takes out what carries a label, and its gradient."""
    last_norm = case.tokens * (4 + case.residual_bytes)
    taken_out = 2 * case.scored_tokens * case.residual_bytes if case.makes_pieces else 0.0
    return case.shape.hidden * (last_norm + taken_out)


def _in_a_layers_backward(case: MemoryCase, layer: LayerBytes) -> tuple[MemoryTerm, ...]:
    checkpointing = case.recipe.checkpointing != "none"
    one_layer = case.tokens * (layer.backward_bytes + layer.recomputed_under(case.recipe.checkpointing))
    overlaps = case.shards > 1 and checkpointing and case.tuning.frozen_base and not case.shape.experts
    in_flight = SHARDED_LAYERS_IN_FLIGHT if overlaps else 1
    copied_layers = 1 if checkpointing else case.shape.layers
    copies = 2 * case.shape.linear_params * copied_layers / case.shape.layers if case.autocasts_weights else 0
    unpacked = 2 * case.largest_linear_params if case.recipe.weight_dtype == "nf4" else 0
    name, kept = _kept(case, layer)
    gradients = case.live_gradient_bytes / case.state_shards
    return _terms(
        (name, kept),
        ("one layer's backward", in_flight * one_layer),
        ("gradients", gradients if case.stack.accumulates else max(0.0, gradients - kept)),
        ("16-bit weight copies", copies),
        ("unpacked 4-bit matrix", unpacked),
        ("gathered shards", _gathered_bytes(case)),
        ("gradient buckets", case.gradient_bytes if case.recipe.sharding == "ddp" and case.gpus > 1 else 0),
    )


def _optimizer_step(case: MemoryCase) -> tuple[MemoryTerm, ...]:
    gradients = case.live_gradient_bytes / case.state_shards
    # A master copy is updated with fp32 gradients; foreach holds one more copy of what it updates.
    masters = 4 * case.tuning.trainable_params / case.state_shards if case.stack.master_weights else 0
    copies = (masters or gradients) if case.stack.optimizer_step == "foreach" else 0
    return _terms(("gradients", gradients), ("fp32 gradients", masters), ("copies of the update", copies))


def _evaluation(case: MemoryCase, layer: LayerBytes, weigh: Callable[[Terms], float]) -> Terms:
    """The worse of two moments: inside a layer, or at the loss. Autocast's copies of fp32 weights stay to the end."""
    copies = 2 * (case.shape.linear_params + case.shape.embedding_params) if case.autocasts_weights else 0
    at_the_loss = case.logits_bytes * (1.0 if case.makes_pieces else _EVALUATION_SHARE)
    in_a_layer = case.tokens * (layer.backward_bytes + 2 * layer.input_bytes)
    moments = (("one layer", in_a_layer), ("logits and loss", at_the_loss))
    around = (("16-bit weight copies", copies), ("gathered shards", _gathered_bytes(case)))
    return max((_terms(moment, *around) for moment in moments), key=weigh)


def _gathered_bytes(case: MemoryCase) -> float:
    """Full copies of layers, and of embedding and head, beside this card's own shard."""
    if case.shards == 1:
        return 0.0
    layers = SHARDED_LAYERS_IN_FLIGHT * case.shape.linear_params / case.shape.layers
    return (layers + case.other_params) * case.compute_bytes * (1 - 1 / case.shards)
