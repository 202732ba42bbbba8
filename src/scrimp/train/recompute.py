"""Checkpointing of activations: which results of the forward pass are kept, and which are computed again in backward.

`full` keeps the input of each layer. `selective` keeps what is dear beside that: attention, and products whose inner
width is large. A product of inner width k takes 2 k FLOPs for a value of 2 bytes, so one byte kept saves k FLOPs:
those of the model's own matrices save hundreds, while LoRA's second matrix (inner width: the rank) writes as many
bytes for 8 or 16. Norms, activation functions, dropout, casts and such narrow products are bound by memory traffic and
computed again. Dropout draws the same numbers the second time, so loss and gradients keep their bits.

Both passes of a layer go through a Python mode below autograd, operator by operator. torch's own such mode
(create_selective_checkpoint_contexts) also serves compilers and keeps a table by operator and shape; the two modes here
keep one list, because the second pass asks for what the first one gave in the same order.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

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
        settings["context_fn"] = partial(_contexts, min(_DEAR_INNER_WIDTH, _hidden_width(base)))
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


@dataclass(slots=True)
class _Kept:
    """Results of one layer's dear operators, in the order of the forward pass."""

    least_inner_width: int
    results: list[tuple[Any, Any, int]] = field(default_factory=list[tuple[Any, Any, int]])

    def is_dear(self, operator: Any, arguments: tuple[Any, ...]) -> bool:
        # Most operators are told by their name alone, which is looked up once.
        return _may_be_dear(operator) and is_dear(_name(operator), arguments, least_inner_width=self.least_inner_width)


class _Keep(TorchDispatchMode):
    """The forward pass: dear results go on the list."""

    def __init__(self, kept: _Kept) -> None:
        super().__init__()
        self._kept = kept

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if self._kept.is_dear(func, args):
            self._kept.results.append((func, _detached(result), _version(result)))
        return result


class _GiveBack(TorchDispatchMode):
    """The second pass: dear results come from the list, each once; everything else is computed."""

    def __init__(self, kept: _Kept) -> None:
        super().__init__()
        self._kept = kept
        self._next = 0

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if not self._kept.is_dear(func, args):
            return func(*args, **(kwargs or {}))
        if self._next >= len(self._kept.results):
            raise RuntimeError(f"{_name(func)} was not part of the layer's forward pass, and is of its second one")
        operator, result, version = self._kept.results[self._next]
        if operator is not func or _version(result) != version:
            raise RuntimeError(f"{_name(func)}: another operator came here in the forward pass, or changed its result")
        # Given away, so that memory falls as backward goes on.
        self._kept.results[self._next] = (None, None, 0)
        self._next += 1
        return result


def _contexts(least_inner_width: int) -> tuple[_Keep, _GiveBack]:
    kept = _Kept(least_inner_width)
    return _Keep(kept), _GiveBack(kept)


@cache
def _name(operator: Any) -> str:
    """`aten::mm` of `aten::mm.default`."""
    return str(operator.name()).partition(".")[0]


@cache
def _may_be_dear(operator: Any) -> bool:
    return _name(operator) in _ATTENTION or _name(operator) in _PRODUCTS


def _detached(result: Any) -> Any:
    """The same memory outside the graph that autograd is about to hang on the result itself."""
    if isinstance(result, torch.Tensor):
        return result.detach()
    return type(result)(_detached(item) for item in result) if isinstance(result, tuple | list) else result


def _version(result: Any) -> int:
    """How often its memory was written to."""
    if isinstance(result, torch.Tensor):
        return result._version  # torch's own counter; it has no other name
    return sum(map(_version, result)) if isinstance(result, tuple | list) else 0


def _hidden_width(base: Any) -> int:
    """Models narrower than a dear product (those of tests) count their own width as dear."""
    weight = base.get_input_embeddings().weight
    assert isinstance(weight, torch.Tensor)
    return int(weight.shape[-1])
