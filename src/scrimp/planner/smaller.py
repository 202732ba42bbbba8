"""What to try when a recipe that should have fitted ran out of memory: the same training in smaller bites.

    1  half the micro-batch, down to the longest row alone      more accumulation, nothing computed twice
    2  selective checkpointing, then full                       some of the forward pass computed twice

Rows and optimizer steps stay as they are, and so does the loss: it is a mean over the label tokens of the step,
however they are divided. Only the last bits change, by the order of additions.
"""

from dataclasses import replace

from scrimp.core.data import StepPlan
from scrimp.core.errors import NoPlanError
from scrimp.core.recipe import Checkpointing, Recipe

_NEXT: dict[Checkpointing, Checkpointing] = {"none": "selective", "selective": "full"}


def smaller_recipe(recipe: Recipe, steps: StepPlan) -> Recipe | None:
    """The next recipe that needs less memory; None when there is none left."""
    longest = max(1, steps.longest_row_tokens)
    # A limit beyond the fullest step limits nothing.
    limit = min(recipe.micro_batch_tokens, max(longest, steps.largest_step_tokens))
    if limit > longest:
        return replace(recipe, micro_batch_tokens=max(longest, limit // 2))
    following = _NEXT.get(recipe.checkpointing)
    return None if following is None else replace(recipe, checkpointing=following)


def change_words(before: Recipe, after: Recipe) -> str:
    """`micro-batch 512 instead of 1,002 tokens`."""
    if before.checkpointing != after.checkpointing:
        return f"{after.checkpointing} checkpointing instead of {before.checkpointing}"
    return f"micro-batch {after.micro_batch_tokens:,} instead of {before.micro_batch_tokens:,} tokens"


def out_of_memory_error(recipe: Recipe, *, loaded: bool, target: str) -> NoPlanError:
    """Why nothing is left to try, and what would help. `target` is the spec or plan as the user named it."""
    ways = [
        *(["method.name=qlora    # 4-bit weights"] if recipe.method.name != "qlora" else []),
        *(["method.name=lora    # trains a hundredth of the weights"] if recipe.method.name == "full" else []),
        *([f"data.max_length_tokens={recipe.max_length_tokens // 2}    # shorter rows"] if loaded else []),
        "model=...    # a smaller one: scrimp plan shows what each needs",
        "market.where=any    # a machine with more memory",
    ]
    tried = f"even at a micro-batch of one row with {recipe.checkpointing} checkpointing"
    return NoPlanError(
        what=f"memory ran out {tried}" if loaded else "memory ran out while the model was loaded",
        expected="a machine that holds the model with its smallest recipe",
        next_step="\n  ".join(["one of these", *(f"scrimp run {target} {way}" for way in ways)]),
    )
