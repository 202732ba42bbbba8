"""Where a CPU keeps other tensors than a card does, the card's way.

    dropout       one fused kernel with a mask of one byte a value; on a CPU it is made of parts with a wider mask
    layer norm    autocast on CUDA runs it in fp32; on a CPU in the dtype that comes in

The modules are changed, and not torch's functions under a mode: modes are off inside backward, where layers that are
checkpointed run again.
"""

from functools import partial
from typing import Any

import torch
from torch.nn import functional


def as_on_card(model: torch.nn.Module) -> None:
    """Make the modules of a fake model leave what they leave on a card."""
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.forward = partial(_dropout, part)
        elif isinstance(part, torch.nn.LayerNorm):
            part.forward = partial(_layer_norm, part)


def _dropout(module: torch.nn.Dropout, input: torch.Tensor) -> torch.Tensor:
    if not module.training or not module.p:
        return input
    return torch.native_dropout(input, module.p, True)[0]


def _layer_norm(module: torch.nn.LayerNorm, input: torch.Tensor) -> torch.Tensor:
    wide = _fp32 if torch.is_autocast_enabled("cpu") else _same
    return functional.layer_norm(
        wide(input), module.normalized_shape, wide(module.weight), wide(module.bias), module.eps
    )


def _fp32(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) else value


def _same(value: Any) -> Any:
    return value
