"""A 4-bit linear layer as memory sees it: packed weights, and a 16-bit copy of them while they multiply.

bitsandbytes' own layer holds tensors that cannot be fake; what it keeps and takes is known (MatMul4Bit): the packed
weight and its scales; for a product the whole matrix unpacked; of its input nothing (before 0.43.2: the input).
"""

from typing import Any

import torch

# Weights per 8-bit scale, and 8-bit scales per fp32 scale (Dettmers et al. 2023, arXiv 2305.14314, section 3).
_WEIGHTS_PER_SCALE = 64
_SCALES_PER_SCALE = 256


class PackedLinear(torch.nn.Linear):
    """Stands where a linear layer was; PEFT takes it for one."""

    def __init__(
        self, linear: torch.nn.Linear, *, dtype: torch.dtype, keeps_input: bool, double_quantised: bool
    ) -> None:
        """Of `linear`, which is on the meta device, only sizes are taken. `dtype` is that of the products."""
        torch.nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.bias = linear.bias
        self._dtype, self._keeps_input = dtype, keeps_input
        weights = linear.in_features * linear.out_features
        device = linear.weight.device
        packed = torch.empty(-(-weights // 2), 1, dtype=torch.uint8, device=device)
        self.weight = torch.nn.Parameter(packed, requires_grad=False)
        scales = -(-weights // _WEIGHTS_PER_SCALE)
        dtype_of_scales = torch.uint8 if double_quantised else torch.float32
        self.register_buffer("scales", torch.empty(scales, dtype=dtype_of_scales, device=device))
        if double_quantised:
            outer = torch.empty(-(-scales // _SCALES_PER_SCALE), dtype=torch.float32, device=device)
            self.register_buffer("scales_of_scales", outer)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The product, copied once as PEFT's 4-bit adapters do before they add to it."""
        made = _PackedProduct.apply(input.to(self._dtype), self.weight, self.out_features, self._keeps_input)
        if self.bias is not None:
            made = made + self.bias
        return made.to(input.dtype).clone()


class _PackedProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input: torch.Tensor, packed: torch.Tensor, out_width: int, keeps_input: bool) -> torch.Tensor:
        ctx.save_for_backward(packed, *((input,) if keeps_input else ()))
        ctx.sizes = (out_width, input.shape[-1])
        return input @ _unpack(packed, ctx.sizes, input.dtype).t()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (grad,) = grad_outputs
        packed = ctx.saved_tensors[0]
        return grad @ _unpack(packed, ctx.sizes, grad.dtype), None, None, None


def _unpack(packed: torch.Tensor, sizes: tuple[int, int], dtype: torch.dtype) -> torch.Tensor:
    _scales = packed.new_empty(-(-sizes[0] * sizes[1] // _WEIGHTS_PER_SCALE), dtype=torch.float32)
    return packed.new_empty(sizes, dtype=dtype)
