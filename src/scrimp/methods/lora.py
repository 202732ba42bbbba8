"""LoRA: low-rank adapters on frozen 16- or 32-bit weights (Hu et al. 2021, arXiv 2106.09685)."""

import json
import re
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scrimp._lazy import need
from scrimp.core.errors import SpecError, nearest
from scrimp.core.model import ModelShape
from scrimp.core.recipe import WeightDtype
from scrimp.methods.linear import OUTSIDE_TEXT, ROUTED, Linear, all_linear_names, attention_names, linears
from scrimp.methods.method import MethodOptions, TuningMethod, must_be

ALL_LINEAR = "all-linear"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraOptions(MethodOptions):
    """Rank 16 and alpha 32 on all linear layers: "LoRA Without Regret" (Schulman, 2025) finds all layers needed and
    ranks beyond this of no help for the data sizes that are usual here. No dropout: it costs memory for every
    adapted layer and rarely helps below several epochs.
    """

    rank: int = field(default=16, metadata={"help": "inner width of an adapter, 1 to 1024"})
    alpha: int = field(default=32, metadata={"help": "adapters are scaled by alpha / rank"})
    dropout: float = field(default=0.0, metadata={"help": "share of an adapter's inputs dropped in training"})
    targets: tuple[str, ...] = field(
        default=(ALL_LINEAR,), metadata={"help": "linear layers with an adapter, by their names, or all-linear"}
    )


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
    must_be(
        len(options.targets) > 0,
        method=method,
        option="targets",
        value=options.targets,
        expected="at least one name",
        example=f"[{ALL_LINEAR}]",
    )
    _check_names(options, known=(ALL_LINEAR, *all_linear_names()), of="of any model that scrimp knows")


def lora_linears(shape: ModelShape, options: LoraOptions) -> tuple[Linear, ...]:
    """The layers that `options.targets` name.

    Raises:
        SpecError: a model of this family has no layer of such a name.
    """
    found = linears(shape)
    if ALL_LINEAR in options.targets:
        return found
    _check_names(options, known=tuple(item.name for item in found), of=f"with an adapter in {shape.name}")
    return tuple(item for item in found if item.name in options.targets)


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
    names, left_out = _places(model, options)
    config = peft.LoraConfig(
        r=options.rank,
        lora_alpha=options.alpha,
        lora_dropout=options.dropout,
        # The names themselves and not PEFT's "all-linear", which means experts in some mixtures and not in others.
        target_modules=list(names),
        exclude_modules=f"{ROUTED}|{OUTSIDE_TEXT}" if left_out else None,
        task_type="CAUSAL_LM",
    )
    with warnings.catch_warnings():
        # PEFT 0.21 asks transformers 5.24 by the old name of a property; it is theirs to settle.
        warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing.*")
        return peft.get_peft_model(model, config, autocast_adapter_dtype=True)


def save_adapter(model: Any, folder: str, *, base_model: str) -> None:
    """A plain PEFT adapter folder that names `base_model`, not the folder that the base was loaded from here.

    No embeddings are stored with it, and the hub is not asked whether they changed.
    """
    model.save_pretrained(folder, save_embedding_layers=False)
    # PEFT writes a set in the order of its hashes: sorted, the same adapter has the same bytes.
    path = Path(folder) / "adapter_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["target_modules"] = sorted(config["target_modules"])
    config["base_model_name_or_path"] = base_model
    path.write_text(json.dumps(config, indent=2, sort_keys=True), encoding="utf-8")


def _places(model: Any, options: LoraOptions) -> tuple[tuple[str, ...], bool]:
    """Names of the layers that get an adapter, and whether layers of the same names must be left out."""
    torch = need("torch", extra="train", why="to put LoRA adapters on the model")
    paths = [path for path, module in model.named_modules() if isinstance(module, torch.nn.Linear)]
    inside = [path for path in paths if not re.fullmatch(f"{ROUTED}|{OUTSIDE_TEXT}", path)]
    present = {path.rpartition(".")[2] for path in inside}
    every = any(path.endswith(".experts") for path, _ in model.named_modules())
    shared = any(".shared_expert." in path for path in inside)
    known = attention_names() if every and not shared else all_linear_names()
    usable = tuple(name for name in known if name in present)
    if ALL_LINEAR not in options.targets:
        _check_names(options, known=usable, of="with an adapter in this model")
        usable = tuple(name for name in usable if name in options.targets)
    outside = {path.rpartition(".")[2] for path in set(paths) - set(inside)}
    return usable, bool(outside & set(usable))


def _check_names(options: LoraOptions, *, known: tuple[str, ...], of: str) -> None:
    for target in options.targets:
        if target not in known:
            close = nearest(target, known)
            raise SpecError(
                what=f'target "{target}" is no linear layer {of}',
                expected=(f"did you mean {close[0]}? " if close else "") + f"names out of {', '.join(known)}",
                next_step=f"targets: [{close[0] if close else ALL_LINEAR}]",
            )


class LowRank(TuningMethod[LoraOptions]):
    """Low-rank adapters in fp32 beside a frozen base; methods of the kind differ in how the base is stored."""

    options_type = LoraOptions
    frozen_base = True

    def __init__(
        self,
        *,
        name: str,
        summary: str,
        weight_dtypes: tuple[WeightDtype, ...],
        learning_rate: float,
        needs: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """See `TuningMethod` for what each says."""
        self.name = name
        self.summary = summary
        self.weight_dtypes = weight_dtypes
        self.learning_rate = learning_rate
        self.needs = needs

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

    def save(self, model: Any, folder: str, *, base_model: str) -> None:
        """See `save_adapter`."""
        save_adapter(model, folder, base_model=base_model)


METHOD = LowRank(
    name="lora",
    summary="low-rank adapters on frozen weights",
    weight_dtypes=("bf16", "fp32", "fp16"),
    # About ten times the full fine-tuning rate ("LoRA Without Regret", 2025).
    learning_rate=2e-4,
)
