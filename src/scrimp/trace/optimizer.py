"""The optimizers of published code, by what they keep and what they take while they update."""

from collections.abc import Iterable
from typing import Any

import torch

from scrimp.estimate.memory.case import OPTIMIZER_BLOCK
from scrimp.trace.model import FakeModel


def optimizer_of_case(model: FakeModel) -> torch.optim.Optimizer:
    """torch's AdamW or SGD where the case means those, else states alone."""
    recipe, stack = model.case.recipe, model.case.stack
    trainable = list(model.trainable.values())
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(trainable, lr=1e-3, foreach=stack.optimizer_step == "foreach")
    if recipe.optimizer == "adamw" and stack.optimizer_step != "in_backward":
        kind: dict[str, Any] = {"fused": True} if stack.optimizer_step == "fused" else {"foreach": True}
        return torch.optim.AdamW(trainable, lr=1e-3, **kind)
    state_bytes = {"adamw": None, "adamw_8bit": 1}.get(recipe.optimizer, 0)
    return StatesAlone(trainable, bytes_per_value=state_bytes)


class StatesAlone(torch.optim.Optimizer):
    """Two states a value, updated in place by kernels that take nothing: bitsandbytes, or torch's inside backward.

    `bytes_per_value` 1 stands for 8-bit states with an fp32 scale a block, 0 for states in paged memory, which the
    allocator does not count; None for states like the parameter.
    """

    def __init__(self, parameters: Iterable[torch.nn.Parameter], *, bytes_per_value: int | None) -> None:
        """See the class."""
        super().__init__(parameters, {})
        self._bytes_per_value = bytes_per_value

    def step(self, closure: Any = None) -> Any:
        """Make the states where there are none."""
        for group in self.param_groups:
            for each in group["params"]:
                if each not in self.state:
                    self.state[each] = dict(enumerate(self._states(each)))

    def _states(self, parameter: torch.nn.Parameter) -> list[torch.Tensor]:
        if self._bytes_per_value is None:
            return [torch.zeros_like(parameter), torch.zeros_like(parameter)]
        if not self._bytes_per_value:
            return []
        blocks = -(-parameter.numel() // OPTIMIZER_BLOCK)
        packed = [torch.zeros_like(parameter, dtype=torch.uint8) for _ in range(2)]
        return packed + [torch.zeros(blocks, dtype=torch.float32) for _ in range(2)]
