"""LoRA: low-rank adapters on frozen 16- or 32-bit weights (Hu et al. 2021, arXiv 2106.09685)."""

from dataclasses import dataclass, replace
from typing import Any

from scrimp._lazy import need
from scrimp.core.errors import SpecError, nearest
from scrimp.core.model import ModelShape
from scrimp.methods.method import Linear, MethodOptions, TuningMethod, linears, must_be

ALL_LINEAR = "all-linear"
_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraOptions(MethodOptions):
    """Rank 16 and alpha 32 on all linear layers: "LoRA Without Regret" (Schulman, 2025) finds all layers needed and
    ranks beyond this of no help for the data sizes that are usual here. No dropout: it costs memory for every
    adapted layer and rarely helps below several epochs.
    """

    rank: int = 16
    alpha: int = 32
    dropout: float = 0.0
    targets: tuple[str, ...] = (ALL_LINEAR,)


def check_lora(method: str, options: LoraOptions) -> None:
    """Refuse impossible LoRA options under the name of `method`.

    Raises:
        SpecError: which option, and what would be possible.
    """
    must_be(
        1 <= options.rank <= 1024, method=method, option="rank", value=options.rank, expected="1 to 1024", example=16
    )
    must_be(options.alpha >= 1, method=method, option="alpha", value=options.alpha, expected="1 or more", example=32)
    must_be(
        0 <= options.dropout < 1,
        method=method,
        option="dropout",
        value=options.dropout,
        expected="a share from 0 to below 1",
        example=0.05,
    )
    known = (ALL_LINEAR, *_TARGETS)
    for target in options.targets or ("",):
        if target not in known:
            close = nearest(target, known)
            raise SpecError(
                what=f'target "{target}" of method "{method}" is no linear layer that scrimp knows',
                expected=(f"did you mean {close[0]}? " if close else "") + f"names out of {', '.join(known)}",
                next_step=f"method: {{name: {method}, options: {{targets: [{close[0] if close else ALL_LINEAR}]}}}}",
            )


def lora_linears(shape: ModelShape, options: LoraOptions) -> tuple[Linear, ...]:
    """The layers that `options.targets` name."""
    found = linears(shape)
    return found if ALL_LINEAR in options.targets else tuple(item for item in found if item.name in options.targets)


def lora_params(shape: ModelShape, options: LoraOptions) -> int:
    """rank x (in + out) for every adapted matrix."""
    return sum(options.rank * (x.in_width + x.out_width) * x.copies for x in lora_linears(shape, options))


def smaller_ranks(options: LoraOptions) -> tuple[tuple[str, LoraOptions], ...]:
    """The ranks below, alpha kept in proportion."""
    ranks = [rank for rank in (8, 4) if rank < options.rank]
    scale = options.alpha / options.rank
    return tuple(
        (f"rank {rank} instead of {options.rank}", replace(options, rank=rank, alpha=max(1, round(rank * scale))))
        for rank in ranks
    )


def attach_lora(model: Any, options: LoraOptions) -> Any:
    """A PEFT model with fp32 adapters, B at zero: the first forward equals the base model."""
    peft = need("peft", extra="train", why="to put LoRA adapters on the model")
    config = peft.LoraConfig(
        r=options.rank,
        lora_alpha=options.alpha,
        lora_dropout=options.dropout,
        target_modules=ALL_LINEAR if ALL_LINEAR in options.targets else list(options.targets),
        task_type="CAUSAL_LM",
    )
    return peft.get_peft_model(model, config, autocast_adapter_dtype=True)


class Lora(TuningMethod[LoraOptions]):
    """Adapters in fp32 beside frozen bf16 weights."""

    name = "lora"
    summary = "low-rank adapters on frozen weights"
    options_type = LoraOptions
    weight_dtypes = ("bf16", "fp32", "fp16")
    frozen_base = True
    # About ten times the full fine-tuning rate ("LoRA Without Regret", 2025).
    learning_rate = 2e-4

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
        """See `attach_lora`."""
        return attach_lora(model, options)

    def save(self, model: Any, folder: str) -> None:
        """A plain PEFT adapter folder."""
        model.save_pretrained(folder, safe_serialization=True)


METHOD = Lora()
