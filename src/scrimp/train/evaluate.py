"""The held-out loss: a mean over label tokens, not over batches, so that it does not depend on how rows are batched."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from scrimp.data.batches import micro_batches
from scrimp.data.row import EncodedRow
from scrimp.train.forward import Forward


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Mean loss over `trained_tokens` label tokens, in nats."""

    loss: float
    trained_tokens: int

    @property
    def perplexity(self) -> float:
        """e to the loss."""
        return math.exp(min(self.loss, 700.0))


def evaluate(
    forward: Forward, rows: Sequence[EncodedRow], *, micro_batch_tokens: int, stopped: Callable[[], bool]
) -> HeldOut | None:
    """The loss on all `rows`; None when `stopped` became true in between.

    Micro-batches are as large as in training and keep no activations, so what fits there fits here.
    """
    module = forward.loaded.module
    lengths = [row.total_tokens for row in rows]
    groups = micro_batches(range(len(rows)), lengths, micro_batch_tokens=micro_batch_tokens, layout=forward.layout)
    module.eval()
    total = torch.zeros((), dtype=torch.float64)
    try:
        with torch.no_grad():
            for group in groups:
                if stopped():
                    return None
                total += forward.loss(forward.lay_out([rows[index] for index in group])).double().cpu()
    finally:
        module.train()
    trained_tokens = sum(row.trained_tokens for row in rows)
    return HeldOut(loss=float(total) / trained_tokens, trained_tokens=trained_tokens)
