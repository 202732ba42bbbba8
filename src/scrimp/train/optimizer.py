"""The optimizer, its state by name, and the loss scale of fp16."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from scrimp._lazy import need
from scrimp.core.recipe import Optimizer, Recipe
from scrimp.train.load import LoadedModel

# AdamW's defaults (Loshchilov and Hutter 2019, arXiv 1711.05101).
_BETAS = (0.9, 0.999)
_EPSILON = 1e-8
# Names in bitsandbytes.optim. 8-bit states: Dettmers et al. 2022, arXiv 2110.02861.
_BITSANDBYTES: Mapping[Optimizer, str] = {
    "adamw_8bit": "AdamW8bit",
    "paged_adamw": "PagedAdamW",
    "paged_adamw_8bit": "PagedAdamW8bit",
}
# The code books of 8-bit states: constants of bitsandbytes, one tensor for all parameters.
_CONSTANT = frozenset({"qmap1", "qmap2"})


def build_optimizer(loaded: LoadedModel, recipe: Recipe) -> torch.optim.Optimizer:
    """AdamW (torch's fused one, or one of bitsandbytes) or plain SGD over the trainable tensors, its state made.

    Norms and biases (tensors of one dimension) get no weight decay. The state is made now, so that memory and the size
    of a checkpoint are known before the first step.

    Raises:
        MissingPackageError: the optimizer is one of bitsandbytes, which is not installed.
    """
    decayed = [each for each in loaded.trainable.values() if each.ndim > 1]
    others = [each for each in loaded.trainable.values() if each.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}]
    groups = [group for group in groups if group["params"]]
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=recipe.learning_rate)
    if recipe.optimizer in _BITSANDBYTES:
        return _bitsandbytes_optimizer(groups, recipe)
    optimizer = torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=_BETAS, eps=_EPSILON, fused=True)
    for each in loaded.trainable.values():
        optimizer.state[each] = {
            "step": torch.zeros((), dtype=torch.float32, device=each.device),
            "exp_avg": torch.zeros_like(each),
            "exp_avg_sq": torch.zeros_like(each),
        }
    return optimizer


def _bitsandbytes_optimizer(groups: list[dict[str, Any]], recipe: Recipe) -> torch.optim.Optimizer:
    bitsandbytes = need("bitsandbytes", extra="quant", why=f"to train with {recipe.optimizer}")
    make = getattr(bitsandbytes.optim, _BITSANDBYTES[recipe.optimizer])
    optimizer = make(groups, lr=recipe.learning_rate, betas=_BETAS, eps=_EPSILON)
    for group_index, group in enumerate(optimizer.param_groups):
        for index, each in enumerate(group["params"]):
            optimizer.init_state(group, each, group_index, index)
    return optimizer


def optimizer_tensors(
    optimizer: torch.optim.Optimizer, trainable: Mapping[str, torch.nn.Parameter]
) -> dict[str, dict[str, torch.Tensor]]:
    """The state in groups (exp_avg ...), each by the names of the tensors that it belongs to.

    A count of steps that the optimizer keeps as a number becomes a tensor; constants are left out.
    """
    found: dict[str, dict[str, torch.Tensor]] = {}
    for name, parameter in trainable.items():
        for key, value in optimizer.state.get(parameter, {}).items():
            if key not in _CONSTANT and isinstance(value, torch.Tensor | int):
                found.setdefault(key, {})[name] = torch.as_tensor(value)
    return found


def restore_optimizer(
    optimizer: torch.optim.Optimizer,
    trainable: Mapping[str, torch.nn.Parameter],
    groups: Mapping[str, Mapping[str, torch.Tensor]],
) -> None:
    """Put what `optimizer_tensors` gave into a new optimizer's state, in place: paged memory stays paged.

    What has no place there is left out; comparing hashes finds it.
    """
    for group, named in groups.items():
        for name, tensor in named.items():
            state = optimizer.state[trainable[name]]
            there = state.get(group)
            if isinstance(there, torch.Tensor) and there.shape == tensor.shape:
                there.copy_(tensor)
            elif isinstance(there, int):
                state[group] = int(tensor)


def optimizer_bytes(optimizer: torch.optim.Optimizer) -> int:
    """Size of the state; what all parameters share counts once."""
    values = (value for state in optimizer.state.values() for value in state.values())
    tensors = {id(value): value for value in values if isinstance(value, torch.Tensor)}
    return sum(value.numel() * value.element_size() for value in tensors.values())


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """The rate of the next step, for all groups."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def clip_gradients(parameters: Iterable[torch.nn.Parameter], *, limit: float, unscale: float = 1.0) -> float:
    """Divide gradients by `unscale`, then scale them down to a total norm of at most `limit`. Returns the norm before.

    A limit of 0 clips nothing.
    """
    given = [each for each in parameters if each.grad is not None]
    if unscale != 1.0:
        for each in given:
            assert each.grad is not None
            each.grad.div_(unscale)
    norm = torch.nn.utils.get_total_norm([each.grad for each in given if each.grad is not None])
    if limit > 0 and math.isfinite(float(norm)):
        torch.nn.utils.clip_grads_with_norm_(given, limit, norm)
    return float(norm)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossScale:
    """The factor that keeps fp16 gradients from vanishing (Micikevicius et al. 2018, arXiv 1710.03740).

    Halved when a gradient overflows, and that step is skipped; doubled after 1,000 steps without. 1 and never changed
    in other precisions.
    """

    scale: float = 1.0
    good_steps: int = 0
    dynamic: bool = False

    @classmethod
    def of(cls, recipe: Recipe) -> "LossScale":
        """What a recipe starts with."""
        return cls(scale=2.0**14, dynamic=True) if recipe.compute_dtype == "fp16" else cls()

    def after(self, *, overflowed: bool) -> "LossScale":
        """The scale of the next step."""
        if not self.dynamic:
            return self
        if overflowed:
            return replace(self, scale=max(1.0, self.scale / 2), good_steps=0)
        if self.good_steps + 1 >= 1000:
            return replace(self, scale=self.scale * 2, good_steps=0)
        return replace(self, good_steps=self.good_steps + 1)
