"""Checkpointing of activations: which results of the forward pass are kept, and which are computed again in backward.

`full` keeps the input of each layer. `selective` keeps what is dear beside that: attention, and products whose inner
width is large. A product of inner width k takes 2 k FLOPs for a value of 2 bytes, so one byte kept saves k FLOPs:
those of the model's own matrices save hundreds, while LoRA's second matrix (inner width: the rank) writes as many
bytes for 8 or 16. Norms, activation functions, dropout, casts and such narrow products are bound by memory traffic and
computed again. Dropout draws the same numbers the second time, so loss and gradients keep their bits.
"""

from functools import partial
from typing import Any

import torch
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

from scrimp.core.recipe import Checkpointing

# Current cards do 150 to 300 FLOPs for a byte that they read: below, a product takes as long as its traffic does.
_DEAR_INNER_WIDTH = 256
# Attention in one operator. Written out (bmm) it keeps scores of length x length, which are never worth their memory.
_ATTENTION = frozenset(
    {
        "aten::_scaled_dot_product_flash_attention",
        "aten::_scaled_dot_product_flash_attention_for_cpu",
        "aten::_scaled_dot_product_efficient_attention",
        "aten::_scaled_dot_product_cudnn_attention",
        "aten::_scaled_dot_product_fused_attention_overrideable",
        "torch_attn::_varlen_attn",
    }
)
# Products by the place of their left matrix among the arguments; its last dimension is the inner width.
_PRODUCTS = {"aten::mm": 0, "aten::addmm": 1, "aten::_grouped_mm": 0, "aten::linear": 0}


def checkpoint_activations(base: Any, checkpointing: Checkpointing) -> None:
    """Make the layers of a transformers model compute again in backward what the mode does not keep."""
    if checkpointing == "none":
        return
    # The reentrant kind drops gradients where the input of a block needs none, as on a frozen embedding.
    settings: dict[str, Any] = {"use_reentrant": False}
    if checkpointing == "selective":
        policy = partial(_policy, min(_DEAR_INNER_WIDTH, _hidden_width(base)))
        settings["context_fn"] = partial(create_selective_checkpoint_contexts, policy)
    if hasattr(base, "activation_checkpointing_enable"):
        base.activation_checkpointing_enable(activation_checkpointing_kwargs=settings)
    else:
        # Its name in older transformers.
        base.gradient_checkpointing_enable(gradient_checkpointing_kwargs=settings)


def is_dear(operator: str, arguments: tuple[Any, ...], *, least_inner_width: int) -> bool:
    """Whether the result of an operator (`aten::mm`) is worth its memory."""
    if operator in _ATTENTION:
        return True
    place = _PRODUCTS.get(operator)
    return place is not None and int(arguments[place].shape[-1]) >= least_inner_width


def _policy(
    least_inner_width: int, _context: object, operator: Any, *arguments: Any, **_named: Any
) -> CheckpointPolicy:
    # `aten::mm.default`, or the bare name.
    name = operator.name().partition(".")[0]
    dear = is_dear(name, arguments, least_inner_width=least_inner_width)
    return CheckpointPolicy.MUST_SAVE if dear else CheckpointPolicy.PREFER_RECOMPUTE


def _hidden_width(base: Any) -> int:
    """Models narrower than a dear product (those of tests) count their own width as dear."""
    weight = base.get_input_embeddings().weight
    assert isinstance(weight, torch.Tensor)
    return int(weight.shape[-1])
