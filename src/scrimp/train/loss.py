"""Cross entropy where there are labels and nowhere else, in pieces that bound the memory of the logits.

Shapes: N label positions, H hidden width, V vocabulary, C positions of one piece.

The gradient of cross entropy is known as soon as the logits are: softmax minus one at the target. It is therefore
formed in the forward pass, piece by piece, and the logits are never kept. (Wijmans et al. 2024, "Cut Your Losses",
arXiv 2411.09009, go further and never write them; that needs a GPU kernel.)
"""

from typing import Any

import torch
from torch.nn.functional import cross_entropy

from scrimp.train.head import OutputHead

# fp32 logits alive at once: 256 MiB. 1,365 positions of a vocabulary of 49 k, 441 of 152 k: enough for full speed.
_PIECE_LOGITS = 2**26


def selected_loss(
    hidden_NH: torch.Tensor,
    targets_N: torch.Tensor,
    head: OutputHead,
    *,
    factor: float = 1.0,
    piece_logits: int = _PIECE_LOGITS,
) -> torch.Tensor:
    """Sum of the cross entropies of N positions, times `factor` (fp32, scalar).

    `factor` belongs inside, because the gradient is rounded to the dtype of `hidden_NH` here: with a loss scale in it,
    fp16 does not lose it.
    """
    weight_VH, bias_V = head.linear.weight, head.linear.bias
    rows = max(1, piece_logits // weight_VH.shape[0])
    return _SelectedLoss.apply(hidden_NH, weight_VH, bias_V, targets_N, head, factor, rows)


def full_loss(logits_NV: torch.Tensor, targets_N: torch.Tensor, *, factor: float = 1.0) -> torch.Tensor:
    """The same from logits that a model has made."""
    return cross_entropy(logits_NV.float(), targets_N, reduction="sum") * factor


class _SelectedLoss(torch.autograd.Function):
    """See `selected_loss`. A trained head gets its gradient too; for a frozen one none is formed."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden_NH: torch.Tensor,
        weight_VH: torch.Tensor,
        bias_V: torch.Tensor | None,
        targets_N: torch.Tensor,
        head: OutputHead,
        factor: float,
        rows: int,
    ) -> torch.Tensor:
        wanted_hidden, wanted_weight, wanted_bias = ctx.needs_input_grad[:3]
        dtype = _product_dtype(hidden_NH)
        weight = weight_VH.to(dtype)
        loss = torch.zeros((), dtype=torch.float32, device=hidden_NH.device)
        grad_hidden_NH = torch.empty_like(hidden_NH) if wanted_hidden else None
        grad_weight_VH = torch.zeros_like(weight_VH, dtype=torch.float32) if wanted_weight else None
        grad_bias_V = torch.zeros_like(bias_V, dtype=torch.float32) if wanted_bias and bias_V is not None else None
        for start in range(0, len(targets_N), rows):
            hidden_CH = hidden_NH[start : start + rows].to(dtype)
            logits_CV = (hidden_CH @ weight.t()).float()
            if bias_V is not None:
                logits_CV += bias_V
            piece_loss, grad_CV = _piece(
                logits_CV, targets_N[start : start + rows], head, factor, any(ctx.needs_input_grad)
            )
            loss += piece_loss
            if grad_hidden_NH is not None:
                grad_hidden_NH[start : start + rows] = grad_CV.to(dtype) @ weight
            if grad_weight_VH is not None:
                grad_weight_VH += (grad_CV.to(dtype).t() @ hidden_CH).float()
            if grad_bias_V is not None:
                grad_bias_V += grad_CV.sum(0)
            # Gone before the next piece is made, or two pieces are alive at once.
            del logits_CV, grad_CV
        ctx.gradients = (
            grad_hidden_NH,
            None if grad_weight_VH is None else grad_weight_VH.to(weight_VH.dtype),
            None if grad_bias_V is None or bias_V is None else grad_bias_V.to(bias_V.dtype),
        )
        return loss

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        (grad_loss,) = grad_outputs
        gradients = [None if each is None else each.mul_(grad_loss.to(each.dtype)) for each in ctx.gradients]
        del ctx.gradients
        return (*gradients, None, None, None, None)


def _piece(
    logits_CV: torch.Tensor, targets_C: torch.Tensor, head: OutputHead, factor: float, wanted: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss of one piece and its gradient with respect to the plain logits. Works in place on `logits_CV`."""
    slope_CV: torch.Tensor | None = None
    logits_CV *= head.scale
    if head.softcap is not None:
        logits_CV.div_(head.softcap).tanh_()
        slope_CV = 1 - logits_CV.square() if wanted else None
        logits_CV.mul_(head.softcap)
    logits_CV -= logits_CV.amax(-1, keepdim=True)
    target_C1 = targets_C[:, None]
    target_logit_C = logits_CV.gather(1, target_C1)[:, 0]
    logits_CV.exp_()
    total_C1 = logits_CV.sum(-1, keepdim=True)
    loss = (total_C1.log()[:, 0] - target_logit_C).sum() * factor
    if wanted:
        logits_CV.div_(total_C1).scatter_add_(1, target_C1, torch.full_like(total_C1, -1.0)).mul_(factor * head.scale)
        if slope_CV is not None:
            logits_CV.mul_(slope_CV)
    return loss, logits_CV


def _product_dtype(hidden_NH: torch.Tensor) -> torch.dtype:
    """What autocast would multiply in; the dtype of the hidden states without it."""
    kind = hidden_NH.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else hidden_NH.dtype
