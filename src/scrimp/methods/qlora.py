"""QLoRA: LoRA on a base packed to 4-bit NF4 with double quantisation (Dettmers et al. 2023, arXiv 2305.14314)."""

from typing import Any

from scrimp.core.model import ModelShape
from scrimp.methods.linear import Linear
from scrimp.methods.lora import (
    LoraOptions,
    attach_lora,
    check_lora,
    lora_linears,
    lora_params,
    save_adapter,
    smaller_ranks,
)
from scrimp.methods.method import TuningMethod


class QLora(TuningMethod[LoraOptions]):
    """The same adapters; the base takes 0.516 bytes a linear weight instead of 2."""

    name = "qlora"
    summary = "low-rank adapters on 4-bit weights"
    options_type = LoraOptions
    weight_dtypes = ("nf4",)
    frozen_base = True
    # The QLoRA paper's 2e-4 for models up to 13B (its Table 9).
    learning_rate = 2e-4
    needs = (("bitsandbytes", "quant"),)

    def check(self, options: LoraOptions) -> None:
        """See `check_lora`."""
        check_lora(self.name, options)

    def trainable_params(self, shape: ModelShape, options: LoraOptions) -> int:
        """See `lora_params`."""
        return lora_params(shape, options)

    def adapted_linears(self, shape: ModelShape, options: LoraOptions) -> tuple[Linear, ...]:
        """See `lora_linears`."""
        return lora_linears(shape, options)

    def variants(self, options: LoraOptions) -> tuple[tuple[str, LoraOptions], ...]:
        """Smaller ranks."""
        return smaller_ranks(options)

    def apply(self, model: Any, options: LoraOptions) -> Any:
        """See `attach_lora`; the base was packed when it was loaded."""
        return attach_lora(model, options)

    def save(self, model: Any, folder: str) -> None:
        """See `save_adapter`."""
        save_adapter(model, folder)


METHOD = QLora()
