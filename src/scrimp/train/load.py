"""From a model folder and a recipe to a model that can be trained."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from scrimp import methods
from scrimp._lazy import need
from scrimp.core.errors import SpecError
from scrimp.core.recipe import Recipe
from scrimp.train.attention import register_attention
from scrimp.train.hardware import TORCH_DTYPES
from scrimp.train.recompute import checkpoint_activations


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """`module` is what the tuning method returned, `base` the transformers model inside (the same for `full`).

    `trainable` holds every tensor that gets a gradient, by its name in `module`; tied tensors appear once.
    """

    module: Any
    base: Any
    trainable: Mapping[str, torch.nn.Parameter]
    device: torch.device
    compute_dtype: torch.dtype

    @property
    def params(self) -> int:
        """All parameters; packed 4-bit ones count as what they stand for."""
        return sum(_numel(each) for each in self.module.parameters())

    @property
    def trainable_params(self) -> int:
        """Those that get a gradient."""
        return sum(each.numel() for each in self.trainable.values())

    @property
    def trainable_bytes(self) -> int:
        """Their size as they are stored."""
        return sum(each.numel() * each.element_size() for each in self.trainable.values())


def load_model(folder: Path, recipe: Recipe, device: torch.device) -> LoadedModel:
    """The model of `folder` in the recipe's dtype, made trainable by the recipe's method.

    Only safetensors on this disk are read; nothing of the folder is executed. Adapters start from the recipe's seed.

    Raises:
        SpecError: the folder's architecture needs code of its own, or the weight dtype is not offered.
        MissingPackageError: bitsandbytes is needed and not installed.
    """
    register_attention()
    base = _load_base(folder, recipe, device)
    method = methods.get(recipe.method.name)
    torch.manual_seed(recipe.seed)
    module = method.apply(base, methods.options_for(method.name, recipe.method.options))
    checkpoint_activations(base, recipe.checkpointing)
    return LoadedModel(
        module=module,
        base=base,
        trainable={name: each for name, each in module.named_parameters() if each.requires_grad},
        device=device,
        compute_dtype=TORCH_DTYPES[recipe.compute_dtype],
    )


def _load_base(folder: Path, recipe: Recipe, device: torch.device) -> Any:
    transformers = need("transformers", extra="train", why="to load the model")
    # Its bars and notes would stand between ours.
    transformers.utils.logging.disable_progress_bar()
    settings: dict[str, Any] = {"local_files_only": True, "use_safetensors": True, "trust_remote_code": False}
    if recipe.weight_dtype == "nf4":
        settings |= _packed_settings(recipe, device)
    elif recipe.weight_dtype in TORCH_DTYPES:
        settings["dtype"] = TORCH_DTYPES[recipe.weight_dtype]
    else:
        raise SpecError(
            what=f"weights stored as {recipe.weight_dtype} cannot be trained on by this version",
            expected="bf16, fp32, fp16 or nf4",
            next_step="method: {name: qlora}    # nf4",
        )
    try:
        base = transformers.AutoModelForCausalLM.from_pretrained(str(folder), **settings)
    except (ValueError, OSError) as error:
        raise SpecError(
            what=f"the model in {folder} cannot be loaded: {error}",
            expected="a causal language model that transformers knows, with *.safetensors",
            next_step="check the folder; models that bring code of their own are not run",
        ) from error
    if recipe.weight_dtype != "nf4":
        return base.to(device)
    _keep_packing(base)
    return base


def _packed_settings(recipe: Recipe, device: torch.device) -> dict[str, Any]:
    """NF4 with double quantisation (Dettmers et al. 2023, arXiv 2305.14314); what is not packed stays 16 bit."""
    transformers = need("transformers", extra="train", why="to load the model")
    need("bitsandbytes", extra="quant", why="to pack weights to 4 bit")
    need("accelerate", extra="quant", why="to pack weights to 4 bit while they load")
    compute = TORCH_DTYPES[recipe.compute_dtype]
    packing = transformers.BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=compute,
    )
    return {"quantization_config": packing, "dtype": compute, "device_map": {"": device}}


def _keep_packing(base: Any) -> None:
    """On CPUs with AVX-512 bitsandbytes repacks 4-bit weights at the first evaluation, for inference alone; from then
    on their gradients would be wrong without an error.
    """
    for module in base.modules():
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False


def _numel(parameter: torch.nn.Parameter) -> int:
    # bitsandbytes packs two weights into a byte.
    return parameter.numel() * (2 if type(parameter).__name__ == "Params4bit" else 1)
