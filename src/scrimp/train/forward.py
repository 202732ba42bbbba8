"""One micro-batch through the model: from tokens to the sum of its label losses.

Shapes: B, L, T as in `layout.py`; N label positions, H hidden width, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from scrimp.core.recipe import Layout
from scrimp.data.row import EncodedRow
from scrimp.train.hardware import compute_context
from scrimp.train.head import OutputHead
from scrimp.train.layout import MicroBatch, lay_out
from scrimp.train.load import LoadedModel
from scrimp.train.loss import full_loss, selected_loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """How this model is run, as the self-check has found it to be right.

    `head` is None where the model has to make its logits itself, at every position.
    """

    loaded: LoadedModel
    layout: Layout
    attention: str
    head: OutputHead | None
    pad_id: int

    def lay_out(self, rows: Sequence[EncodedRow]) -> MicroBatch:
        """Rows of one micro-batch as tensors on the model's device."""
        return lay_out(rows, layout=self.layout, pad_id=self.pad_id, device=self.loaded.device)

    def loss(self, batch: MicroBatch, *, factor: float = 1.0) -> torch.Tensor:
        """Sum of the losses at the batch's label positions, times `factor`."""
        with compute_context(self.loaded.device, self.loaded.compute_dtype):
            if self.head is None:
                logits_NV = model_logits(self.loaded.base, batch)[batch.label_index]
                return full_loss(logits_NV, batch.targets, factor=factor)
            hidden_NH = hidden_states(self.loaded.base, batch)[batch.label_index]
            return selected_loss(hidden_NH, batch.targets, self.head, factor=factor)


def hidden_states(base: Any, batch: MicroBatch) -> torch.Tensor:
    """What the head reads, at every position: (B x L, H) or (T, H)."""
    hidden_BLH = base.get_decoder()(**batch.inputs).last_hidden_state
    return hidden_BLH.reshape(-1, hidden_BLH.shape[-1])


def model_logits(base: Any, batch: MicroBatch) -> torch.Tensor:
    """The model's own logits at every position: (B x L, V) or (T, V)."""
    logits_BLV = base(**batch.inputs).logits
    return logits_BLV.reshape(-1, logits_BLV.shape[-1])
