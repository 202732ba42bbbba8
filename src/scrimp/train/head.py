"""The output head of a model: a linear layer over the vocabulary, and what some families do to its logits."""

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputHead:
    """logits = linear(hidden) x scale, then softcap x tanh(logits / softcap) where there is a softcap."""

    linear: torch.nn.Linear
    scale: float = 1.0
    softcap: float | None = None

    def logits(self, hidden_NH: torch.Tensor) -> torch.Tensor:
        """fp32 logits of any number of positions."""
        logits_NV = self.linear(hidden_NH).float() * self.scale
        return logits_NV if self.softcap is None else self.softcap * torch.tanh(logits_NV / self.softcap)


def find_head(model: Any) -> OutputHead | None:
    """The head of a transformers model; None when it is no plain linear layer (adapters sit on it, or it is split).

    Families that change their logits say so in their config: Gemma caps them (final_logit_softcapping), Cohere
    multiplies (logit_scale), Granite divides (logits_scaling). Whether that is all is checked by numbers, see
    `selfcheck.py`.
    """
    linear = model.get_output_embeddings()
    # Subclasses (4-bit layers, adapters) do not multiply with their `weight` alone.
    if type(linear) is not torch.nn.Linear:
        return None
    config = model.config.get_text_config()
    scale = float(getattr(config, "logit_scale", None) or 1.0) / float(getattr(config, "logits_scaling", None) or 1.0)
    return OutputHead(linear=linear, scale=scale, softcap=getattr(config, "final_logit_softcapping", None))
