"""The learning rate as a pure function of the step: nothing to save, nothing to restore."""

import math

from scrimp.core.recipe import Recipe


def learning_rate(recipe: Recipe, *, step: int, steps: int) -> float:
    """The rate of step `step` (counted from 0) out of `steps`.

    The warm-up rises in equal parts and ends one step after its last at the full rate, so that no step is wasted on a
    rate of zero. `linear` and `cosine` then fall towards zero, which they would reach one step after the last.
    """
    if step < recipe.warmup_steps:
        return recipe.learning_rate * (step + 1) / (recipe.warmup_steps + 1)
    if recipe.schedule == "constant":
        return recipe.learning_rate
    done = (step - recipe.warmup_steps) / max(1, steps - recipe.warmup_steps)
    left = 1.0 - done if recipe.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))
    return recipe.learning_rate * left
