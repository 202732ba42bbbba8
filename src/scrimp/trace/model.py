"""A model without weights: built on the meta device, tuned by the real method, then given fake parameters.

The order matters. A model that is built under fake tensors cannot be changed by PEFT (its swap of tensors fails), and
bitsandbytes' layers cannot hold fake ones, so packed layers are replaced while everything is still on meta.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from scrimp import methods
from scrimp.core.errors import SpecError
from scrimp.core.recipe import ComputeDtype, WeightDtype
from scrimp.estimate.memory.case import MemoryCase
from scrimp.estimate.tuning import Tuning, tuning_of
from scrimp.methods.lora import LoraOptions, attach_lora
from scrimp.trace.packed import PackedLinear

DTYPES: dict[WeightDtype | ComputeDtype, torch.dtype] = {
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp32": torch.float32,
}
# A built model may differ from the count of its shape by what ModelShape leaves out (see models/shapes.py).
_PARAMS_TOLERANCE_RATIO = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeModel:
    """`module` is what the tuning method returned, `base` the transformers model inside; all tensors are fake."""

    module: Any
    base: Any
    trainable: Mapping[str, torch.nn.Parameter]
    params: int
    case: MemoryCase

    @property
    def trainable_params(self) -> int:
        """How many parameters get a gradient."""
        return sum(each.numel() for each in self.trainable.values())

    def compute(self) -> Any:
        """The context of forward and loss: autocast where the case's software uses it."""
        dtype = DTYPES[self.case.recipe.compute_dtype]
        if self.case.stack.adapter_math != "autocast" or dtype == torch.float32:
            return torch.autocast("cpu", enabled=False)
        return torch.autocast("cpu", dtype=dtype)


def build(case: MemoryCase, config: Any, mode: FakeTensorMode, *, attention: str) -> FakeModel:
    """The model of `config`, stored and tuned as the case says.

    Raises:
        SpecError: a way to store weights that is not traced, or a tuning that the model has no place for.
    """
    from transformers import AutoModelForCausalLM

    _check_storage(case)
    with torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dtype = DTYPES.get(case.recipe.weight_dtype, DTYPES[case.recipe.compute_dtype])
        base = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=attention)
        params = sum(each.numel() for each in base.parameters())
        if case.stack.upcasts_16bit:
            _upcast(base)
        if case.recipe.weight_dtype == "nf4":
            _pack(base, case)
        module = _tune(base, case)
    if case.tuning.frozen_base:
        params += sum(each.numel() for each in module.parameters() if each.requires_grad)
    _set_adapter_dtypes(module, case)
    with mode:
        _give_fake_tensors(module)
    trainable = {name: each for name, each in module.named_parameters() if each.requires_grad}
    return FakeModel(module=module, base=base, trainable=trainable, params=params, case=case)


def check_params(model: FakeModel, case: MemoryCase) -> None:
    """Refuse a model built from a shape whose parameters the shape does not count.

    Raises:
        SpecError: the family has parts that the shape says nothing of.
    """
    adapters = case.tuning.trainable_params if case.tuning.frozen_base else 0
    built, counted = model.params - adapters, case.shape.params
    if abs(built - counted) > _PARAMS_TOLERANCE_RATIO * counted:
        raise SpecError(
            what=f"a {case.shape.family or 'Llama'} model of {case.shape.name}'s sizes has {built:,} parameters, "
            f"{counted:,} are counted",
            expected="a model whose shape says all that its family needs",
            next_step="trace it from its own folder or hub id, which has its config.json",
        )


def _check_storage(case: MemoryCase) -> None:
    if case.recipe.weight_dtype != "nf4" and case.recipe.weight_dtype not in DTYPES:
        raise SpecError(
            what=f"a step with weights stored as {case.recipe.weight_dtype} is not traced",
            expected=f"{', '.join(DTYPES)} or nf4",
            next_step="training.precision=bf16, or plan without --exact",
        )
    if case.shape.experts and case.recipe.weight_dtype == "nf4" and case.stack.packs_experts:
        raise SpecError(
            what="a mixture with packed experts is not traced: transformers 5 packs none",
            expected="a software stack that leaves experts in 16 bit",
            next_step="method.name=lora",
        )


def _upcast(base: torch.nn.Module) -> None:
    """Norms, embeddings and head in fp32, as PEFT's prepare_model_for_kbit_training makes them."""
    inside = {id(module.weight) for path, module in base.named_modules() if _is_packable(path, module)}
    for each in base.parameters():
        if id(each) not in inside and each.dtype in (torch.bfloat16, torch.float16):
            each.data = each.data.float()


def _pack(base: torch.nn.Module, case: MemoryCase) -> None:
    dtype = DTYPES[case.recipe.compute_dtype]
    for path, module in list(base.named_modules()):
        if isinstance(module, torch.nn.Linear) and _is_packable(path, module):
            parent, _, name = path.rpartition(".")
            packed = PackedLinear(
                module,
                dtype=dtype,
                keeps_input=case.stack.keeps_packed_inputs,
                double_quantised=case.stack.double_quantised,
            )
            setattr(base.get_submodule(parent), name, packed)


def _is_packable(path: str, module: torch.nn.Module) -> bool:
    """Linear layers inside the decoder's layers: the head stays as it is."""
    return type(module) is torch.nn.Linear and ".layers." in path


def _tune(base: Any, case: MemoryCase) -> Any:
    """By the recipe's method; a tuning that the recipe does not spell out is laid on as LoRA of the same layers."""
    choice = case.recipe.method
    if tuning_of(case.shape, choice) == case.tuning:
        method = methods.get(choice.name)
        return method.apply(base, methods.options_for(choice.name, choice.options))
    if not case.tuning.frozen_base:
        return methods.get("full").apply(base, methods.options_for("full", {}))
    return attach_lora(base, _lora_options(case.tuning))


def _lora_options(tuning: Tuning) -> LoraOptions:
    width = sum((each.in_width + each.out_width) * each.copies for each in tuning.adapted)
    rank, rest = divmod(tuning.trainable_params, width) if width else (0, 1)
    if rest:
        raise SpecError(
            what=f"{tuning.trainable_params:,} trainable parameters are no LoRA of the layers that are named",
            expected="adapters of one rank on layers inside the model",
            next_step="name the method and its options in the recipe",
        )
    names = tuple(dict.fromkeys(each.name for each in tuning.adapted))
    return LoraOptions(rank=rank, alpha=2 * rank, dropout=tuning.dropout, targets=names)


def _set_adapter_dtypes(module: Any, case: MemoryCase) -> None:
    """fp32, or the base's; on meta PEFT leaves them in what they were made in.

    PEFT's 4-bit adapters do not cast their input when autocast will, unlike its plain ones.
    """
    if not case.tuning.frozen_base:
        return
    dtype = DTYPES[case.recipe.compute_dtype] if case.stack.adapter_math == "base" else torch.float32
    for each in module.parameters():
        if each.requires_grad:
            each.data = each.data.to(dtype)
    autocast = case.stack.adapter_math == "autocast" and case.compute_bytes == 2
    for layer in module.modules():
        if autocast and isinstance(getattr(layer, "base_layer", None), PackedLinear):
            layer.cast_input_dtype_enabled = False


def _give_fake_tensors(module: torch.nn.Module) -> None:
    """Each meta tensor becomes a fake one on the CPU; tied ones stay tied. Called inside the fake mode."""
    made: dict[int, torch.nn.Parameter] = {}
    for part in module.modules():
        for name, each in list(part._parameters.items()):
            if each is not None and id(each) not in made:
                fake = torch.empty(each.shape, dtype=each.dtype)
                made[id(each)] = torch.nn.Parameter(fake, requires_grad=each.requires_grad)
            if each is not None:
                part._parameters[name] = made[id(each)]
        for name, each in list(part._buffers.items()):
            if each is not None:
                part._buffers[name] = torch.empty(each.shape, dtype=each.dtype)
