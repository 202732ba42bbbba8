"""The loss of published training code, by what it keeps for each token and vocabulary entry.

    12   transformers up to 4.45: logits to fp32, a shifted copy, log-softmax; in backward log-softmax and two gradients
    14   transformers 4.46 to 4.57: the same, with the 16-bit logits beside them in forward
     8   a fused cross entropy over full fp32 logits: its gradient is one more tensor of that size
     4   logits of all chunks in 16 bit, and their log-softmax (litgpt)
     0   linear layer and cross entropy in one, a chunk of tokens at a time (Liger, Hsu et al. 2024, arXiv 2410.10989)

Shapes: B rows, L tokens of a row, N = B x L, H hidden width, V vocabulary, C tokens of a chunk.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from scrimp.core.errors import SpecError
from scrimp.estimate.memory.case import MemoryCase
from scrimp.trace.model import FakeModel

# Tokens that litgpt's chunked cross entropy scores at a time.
_CHUNK_TOKENS = 128

# From the model, hidden states and labels to the loss. The Trainer drops the model's output before backward begins.
LossCode = Callable[[FakeModel, torch.Tensor, torch.Tensor], torch.Tensor]


def loss_code(case: MemoryCase) -> LossCode:
    """The code that the case's software runs.

    Raises:
        SpecError: a number of bytes that no known code keeps.
    """
    if case.recipe.loss == "fused":
        return _fused_linear
    codes: dict[float, LossCode] = {4: _chunks, 8: _fused_entropy, 12: _upcast_logits, 14: _upcast_beside_logits}
    if case.stack.full_loss_bytes not in codes:
        raise SpecError(
            what=f"no loss code is known that keeps {case.stack.full_loss_bytes:g} bytes a token and vocabulary entry",
            expected=f"one of {', '.join(f'{each:g}' for each in codes)}, or a fused loss",
            next_step="recipe.loss=fused",
        )
    return codes[case.stack.full_loss_bytes]


def _logits(model: FakeModel, hidden: torch.Tensor) -> torch.Tensor:
    logits = model.base.get_output_embeddings()(hidden)
    cap = getattr(model.base.config.get_text_config(), "final_logit_softcapping", None)
    return logits if cap is None else torch.tanh(logits / cap) * cap


def _upcast_logits(model: FakeModel, hidden_BLH: torch.Tensor, labels_BL: torch.Tensor) -> torch.Tensor:
    logits_BLV = _logits(model, hidden_BLH).float()
    return _shifted(logits_BLV, labels_BL)


def _upcast_beside_logits(model: FakeModel, hidden_BLH: torch.Tensor, labels_BL: torch.Tensor) -> torch.Tensor:
    logits_BLV = _logits(model, hidden_BLH)
    upcast_BLV = logits_BLV.float()
    return _shifted(upcast_BLV, labels_BL)


def _shifted(logits_BLV: torch.Tensor, labels_BL: torch.Tensor) -> torch.Tensor:
    shifted_BLV = logits_BLV[..., :-1, :].contiguous()
    return cross_entropy(shifted_BLV.view(-1, shifted_BLV.shape[-1]), labels_BL[..., 1:].reshape(-1))


def _fused_entropy(model: FakeModel, hidden_BLH: torch.Tensor, labels_BL: torch.Tensor) -> torch.Tensor:
    logits_BLV = _logits(model, hidden_BLH).float()
    return _Entropy.apply(logits_BLV)


class _Entropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor) -> torch.Tensor:
        ctx.gradient = torch.empty_like(logits)
        return logits.new_empty((), dtype=torch.float32)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> torch.Tensor:
        gradient = ctx.gradient
        del ctx.gradient
        return gradient


def _chunks(model: FakeModel, hidden_BLH: torch.Tensor, labels_BL: torch.Tensor) -> torch.Tensor:
    hidden_NH, labels_N = hidden_BLH.flatten(0, -2), labels_BL.flatten()
    logits = [_logits(model, chunk_CH) for chunk_CH in hidden_NH.split(_CHUNK_TOKENS)]
    losses = [
        cross_entropy(each_CV, labels_C)
        for each_CV, labels_C in zip(logits, labels_N.split(_CHUNK_TOKENS), strict=True)
    ]
    return torch.stack(losses).mean()


def _fused_linear(model: FakeModel, hidden_BLH: torch.Tensor, labels_BL: torch.Tensor) -> torch.Tensor:
    head = model.base.get_output_embeddings()
    return _LinearEntropy.apply(hidden_BLH.flatten(0, -2), head.weight)


class _LinearEntropy(torch.autograd.Function):
    """Gradients are formed in forward; a chunk has as many logits as the hidden states have values, or less."""

    @staticmethod
    def forward(ctx: Any, hidden_NH: torch.Tensor, weight_VH: torch.Tensor) -> torch.Tensor:
        tokens, width = hidden_NH.shape
        chunks = -(-weight_VH.shape[0] // width)
        rows = 1 << (-(-tokens // chunks) - 1).bit_length()
        grad_hidden_NH = torch.empty_like(hidden_NH)
        grad_weight_VH = torch.zeros_like(weight_VH) if ctx.needs_input_grad[1] else None
        for hidden_CH in hidden_NH.split(rows):
            logits_CV = hidden_CH @ weight_VH.to(hidden_CH.dtype).t()
            hidden_CH.new_empty(hidden_CH.shape).copy_(logits_CV @ weight_VH.to(hidden_CH.dtype))
            if grad_weight_VH is not None:
                grad_weight_VH += logits_CV.t() @ hidden_CH
        ctx.gradients = grad_hidden_NH, grad_weight_VH
        return hidden_NH.new_empty((), dtype=torch.float32)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        gradients = ctx.gradients
        del ctx.gradients
        return gradients
