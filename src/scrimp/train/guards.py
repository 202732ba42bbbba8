"""Checks that stop a run in its first minute instead of letting it learn nothing for hours."""

import math
from collections.abc import Mapping

import torch

from scrimp import methods
from scrimp.core.errors import TrainingError
from scrimp.core.recipe import Recipe
from scrimp.train.load import LoadedModel

# LoRA's A gets no gradient in the very first step, because B is still zero.
WATCHED_STEPS = 2


def check_trainable_is_saved(loaded: LoadedModel, recipe: Recipe) -> None:
    """Refuse a model that trains tensors which would not be saved, or would save tensors that it does not train.

    Raises:
        TrainingError: names the first of them; or adapters that are not fp32.
    """
    if not loaded.trainable:
        raise TrainingError(
            what=f"the method {recipe.method.name} trains no tensor of this model",
            expected="at least one layer that the method knows",
            next_step="method: {name: lora, options: {targets: [all-linear]}}",
        )
    saved = _saved_names(loaded)
    trained = {_plain(name) for name in loaded.trainable}
    unsaved, untrained = sorted(trained - saved), sorted(saved - trained)
    if unsaved or untrained:
        name, flaw = (unsaved[0], "trained and not saved") if unsaved else (untrained[0], "saved and not trained")
        raise TrainingError(
            what=f"{len(unsaved) or len(untrained)} tensors would be {flaw}, the first is {name}",
            expected="the trained tensors and the saved ones to be the same",
            next_step="report this with the model's name",
        )
    narrow = [name for name, each in loaded.trainable.items() if each.dtype != torch.float32]
    if narrow and methods.get(recipe.method.name).frozen_base:
        raise TrainingError(
            what=f"{len(narrow)} adapter tensors are not fp32, the first is {narrow[0]}",
            expected="adapters in fp32 beside the frozen base",
            next_step="report this with the versions of torch and peft",
        )


class LearningWatch:
    """Looks at the gradients of the first steps: every trained tensor must get one that is finite and not zero."""

    def __init__(self, trainable: Mapping[str, torch.nn.Parameter]) -> None:
        """Nothing was seen yet."""
        self._trainable = trainable
        self._alive: set[str] = set()
        self._steps = 0

    def see(self, *, last: bool) -> tuple[str, ...]:
        """Look before the optimizer's step. Returns notes: experts that no token was sent to.

        Raises:
            TrainingError: after the watched steps (or the last of a short run) a tensor has had no gradient.
        """
        if self._steps >= WATCHED_STEPS:
            return ()
        self._steps += 1
        for name, each in self._trainable.items():
            if each.grad is not None and bool(each.grad.any()):
                self._alive.add(name)
        if self._steps < WATCHED_STEPS and not last:
            return ()
        dead = [name for name in self._trainable if name not in self._alive and not (last and self._waits(name))]
        idle = [name for name in dead if "expert" in name]
        dead = [name for name in dead if "expert" not in name]
        if dead:
            raise TrainingError(
                what=f"{len(dead)} of {len(self._trainable)} trained tensors get no gradient, the first is {dead[0]}",
                expected="a gradient for every trained tensor within the first two steps",
                next_step="choose other targets for the method; without a gradient nothing is learned",
            )
        return (f"{len(idle)} expert tensors got no token in the first steps",) if idle else ()

    def _waits(self, name: str) -> bool:
        return self._steps < WATCHED_STEPS and "lora_A" in name


def check_finite(loss: float, gradient_norm: float, *, step: int, overflow_is_normal: bool) -> None:
    """Refuse to take a step from numbers that are none.

    Raises:
        TrainingError: the loss, or the gradient where no loss scale explains it, is NaN or infinite.
    """
    if math.isfinite(loss) and (math.isfinite(gradient_norm) or overflow_is_normal):
        return
    what = (
        f"the loss of step {step} is {loss}" if not math.isfinite(loss) else f"the gradient of step {step} is infinite"
    )
    raise TrainingError(
        what=f"{what}: nothing was changed by it, the last checkpoint is kept",
        expected="finite numbers; often the learning rate is too high, or fp16 too narrow",
        next_step="training.learning_rate: a third of it, or training.precision=fp32",
    )


def _saved_names(loaded: LoadedModel) -> set[str]:
    """Names of what the method's `save` would write, without the adapter's own name in them."""
    if loaded.module is loaded.base:
        return {name for name, _ in loaded.module.named_parameters()}
    from peft import get_peft_model_state_dict

    return set(get_peft_model_state_dict(loaded.module))


def _plain(name: str) -> str:
    # PEFT leaves the name of the adapter out when it saves.
    return name.replace(".default.", ".").removesuffix(".default")
