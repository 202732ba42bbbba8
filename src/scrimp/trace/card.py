"""Where a CPU keeps other tensors than a card does, the card's way.

dropout       one fused kernel with a mask of one byte a value; on a CPU it is made of parts with a wider mask
layer_norm    autocast on CUDA runs it in fp32; on a CPU in the dtype that comes in
"""

from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode


class CardSemantics(TorchFunctionMode):
    """Within it the functions above leave what they leave on a card."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Replace the two functions, pass on all others."""
        given = kwargs or {}
        if func is functional.dropout:
            return _dropout(*args, **given)
        if func is functional.layer_norm and torch.is_autocast_enabled("cpu"):
            return func(args[0].float(), *(_fp32(each) for each in args[1:]), **{k: _fp32(v) for k, v in given.items()})
        return func(*args, **given)


def _dropout(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
    if not training or not p:
        return input
    return torch.native_dropout(input, p, True)[0]


def _fp32(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) else value
