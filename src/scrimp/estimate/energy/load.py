"""What keeps a machine busy while it trains: arithmetic, other cards, or the starting of kernels.

Compared is the rate that the time forecast gives with the rate that one such card reaches on a long micro-batch alone.
Below half of it the arithmetic units wait more than they work: for other cards if the recipe's own micro-batch would
keep one card busy, else for kernels to start.
"""

from dataclasses import replace

from scrimp.core.market import Device
from scrimp.core.model import ModelShape
from scrimp.core.recipe import Recipe
from scrimp.estimate.energy.power import Load
from scrimp.estimate.time.arithmetic import training_passes
from scrimp.estimate.time.speed import Pace, pace_of

_LONG_TOKENS = 16_384
_CONTEXT_TOKENS = 512
_WAITING_SHARE = 0.5


def load_of(shape: ModelShape, recipe: Recipe, device: Device, *, gpus: int, tokens_per_s: float) -> Load:
    """The load of training steps, at `tokens_per_s` on all cards together. A CPU always computes.

    Raises:
        ValueError: the device's speed is not established.
    """
    if device.kind == "cpu" or tokens_per_s <= 0:
        return "compute"
    alone = pace_of(shape, replace(recipe, sharding="none"), device, gpus=1)
    full = _rate(alone, _LONG_TOKENS)
    if tokens_per_s / max(1, gpus) >= _WAITING_SHARE * full:
        return "compute"
    keeps_one_busy = _rate(alone, recipe.micro_batch_tokens) >= _WAITING_SHARE * full
    return "communication" if gpus > 1 and keeps_one_busy else "launch"


def _rate(pace: Pace, tokens: float) -> float:
    passes = training_passes(frozen_base=pace.tuning.frozen_base, checkpointing=pace.recipe.checkpointing)
    return tokens / pace.pass_s(tokens=tokens, scored_tokens=tokens, context_tokens=_CONTEXT_TOKENS, passes=passes)
