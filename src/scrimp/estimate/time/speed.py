"""How long one pass over a micro-batch takes on a given machine: the one door to the GPU and the CPU model."""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf

from scrimp.core.market import Device
from scrimp.core.model import ModelShape
from scrimp.core.recipe import Recipe
from scrimp.estimate.memory.activations import layer_bytes, mlp_width
from scrimp.estimate.memory.case import MemoryCase
from scrimp.estimate.stack import TRAINER, Stack
from scrimp.estimate.time.arithmetic import EVALUATION, Arithmetic, Passes, arithmetic_of, training_passes
from scrimp.estimate.time.cpu_speed import CpuChip, cpu_chip_of, cpu_micro_step_s
from scrimp.estimate.time.fitted import Interval, Spread, fitted_time, spread_of
from scrimp.estimate.time.roofline import (
    Chip,
    MicroStep,
    chip_of,
    four_bit_kind,
    micro_step_s,
    nodes_of,
    optimizer_step_s,
)
from scrimp.estimate.time.token_load import TokenLoad, padding_ratio
from scrimp.estimate.tuning import Tuning, tuning_of

# First-fit decreasing fills micro-batches to about this much of their limit.
FILL = 0.95
# One token at a time reads every weight; eager code launches this long a layer besides. On CPUs as measured.
_DECODE_LAUNCH_S = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Everything that the speed of one recipe on one machine follows from."""

    shape: ModelShape
    recipe: Recipe
    tuning: Tuning
    work: Arithmetic
    chip: Chip | CpuChip
    gpus: int
    stack: Stack

    def pass_s(self, *, tokens: float, scored_tokens: float, context_tokens: float, passes: Passes) -> float:
        """Seconds of one pass over that many (padded) tokens on each card."""
        step = MicroStep(
            tokens=tokens,
            scored_tokens=scored_tokens,
            context_tokens=context_tokens,
            passes=passes,
            frozen_base=self.tuning.frozen_base,
            four_bit=four_bit_kind(self.recipe.weight_dtype),
            sharded_gpus=self.gpus if self.recipe.sharding == "fsdp" else 1,
            gpus=self.gpus,
        )
        if isinstance(self.chip, CpuChip):
            return cpu_micro_step_s(self.work, step, self.chip, widths=self.shape.hidden + mlp_width(self.shape))
        return micro_step_s(self.work, step, self.chip, stack=self.stack.speed, software=self.stack.software)


def pace_of(shape: ModelShape, recipe: Recipe, device: Device, *, gpus: int, stack: Stack = TRAINER) -> Pace:
    """Put together a recipe, a model and a machine.

    Raises:
        ValueError: the device's speed is not established.
        UnknownNameError, SpecError: the recipe's method is not known or its options are impossible.
    """
    on_cpu = device.kind == "cpu"
    return Pace(
        shape=shape,
        recipe=recipe,
        tuning=tuning_of(shape, recipe.method),
        work=arithmetic_of(shape),
        chip=cpu_chip_of(device, recipe.compute_dtype) if on_cpu else chip_of(device, recipe.compute_dtype),
        gpus=max(1, gpus),
        stack=stack,
    )


def interval_of(pace: Pace, load: TokenLoad | None = None) -> Interval:
    """How far the step time may be off: the 80% interval on runs of this kind that the fit did not see.

    `load` says whether there are tokens enough to fill the micro-batches.
    """
    if isinstance(pace.chip, CpuChip):
        constants = pace.chip.constants
        return Interval(low=constants.low, high=constants.high, basis=constants.basis)
    tokens = min(pace.recipe.micro_batch_tokens, load.step_tokens / pace.gpus if load else inf)
    spread = spread_of(tokens=tokens, cards=pace.gpus, nodes=nodes_of(pace.gpus))
    return _shipped_interval(pace.chip.measured, pace.stack.software, pace.shape.experts > 0, spread)


@lru_cache(maxsize=256)
def _shipped_interval(card: bool, program: str, mixture: bool, spread: Spread) -> Interval:
    """A plan asks thousands of times for the same few."""
    fitted = fitted_time()
    known = program in fitted.constants.software
    return fitted.interval(card=card, software=known, mixture=mixture, spread=spread)


def step_s(pace: Pace, load: TokenLoad) -> float:
    """Seconds of a mean optimizer step: micro-steps, the exchange of gradients between whole copies, the update."""
    micro = pace.recipe.micro_batch_tokens
    rows = load.step_rows
    # Rows are whole: three rows on two cards take as long as four.
    cards = rows / -(-rows // pace.gpus) if rows > 0 else 1.0
    tokens = load.step_tokens / max(1.0, min(cards, pace.gpus))
    if pace.recipe.layout == "padded":
        tokens *= padding_ratio(load, step_rows=rows, micro_batch_tokens=micro)
    micro_steps = max(1.0, tokens / max(load.mean_row_tokens, micro * FILL, 1.0))
    share = load.trained_share if pace.recipe.loss == "selected" else 1.0
    each = pace.pass_s(
        tokens=tokens / micro_steps,
        scored_tokens=tokens / micro_steps * share,
        context_tokens=load.context_tokens,
        passes=_training_passes(pace),
    )
    return micro_steps * each + _reduce_s(pace) + _update_s(pace)


def rehearsal_s(pace: Pace, load: TokenLoad) -> float:
    """Seconds of the fullest micro-batch, taken once before the first step to see that it fits."""
    tokens = max(load.steps.longest_row_tokens, min(pace.recipe.micro_batch_tokens, load.steps.largest_step_tokens))
    if not tokens:
        return 0.0
    return pace.pass_s(
        tokens=tokens,
        scored_tokens=tokens * (load.trained_share if pace.recipe.loss == "selected" else 1.0),
        context_tokens=load.context_tokens,
        passes=_training_passes(pace),
    )


def evaluation_s(pace: Pace, load: TokenLoad) -> float:
    """Seconds to score the held-out rows once, spread over all cards, logits where labels are."""
    tokens = load.eval_tokens / pace.gpus
    if not tokens:
        return 0.0
    passes = max(1.0, tokens / max(load.mean_row_tokens, pace.recipe.micro_batch_tokens * FILL, 1.0))
    share = load.trained_share if pace.recipe.loss == "selected" else 1.0
    each = pace.pass_s(
        tokens=tokens / passes,
        scored_tokens=tokens / passes * share,
        context_tokens=load.context_tokens,
        passes=EVALUATION,
    )
    return passes * each


def sampling_s(pace: Pace, tokens: int, *, bytes_each: float) -> float:
    """Seconds to generate that many tokens one by one: each reads all weights once."""
    launch_s = pace.chip.constants.decode_launch_s if isinstance(pace.chip, CpuChip) else _DECODE_LAUNCH_S
    return tokens * (
        pace.work.stored_params * bytes_each / pace.chip.bandwidth_bytes_per_s + launch_s * pace.shape.layers
    )


def _reduce_s(pace: Pace) -> float:
    """Once a step, whole copies add up their gradients (ring: twice the bytes over the slowest link)."""
    if pace.recipe.sharding != "ddp" or pace.gpus == 1 or isinstance(pace.chip, CpuChip):
        return 0.0
    gradient_bytes = pace.tuning.trainable_params * 4.0
    return 2 * gradient_bytes * (pace.gpus - 1) / pace.gpus / pace.chip.link_bytes_per_s


def _update_s(pace: Pace) -> float:
    """The optimizer's own step over what each card trains; on a CPU it is part of what was measured."""
    if isinstance(pace.chip, CpuChip):
        return 0.0
    shards = pace.gpus if pace.recipe.sharding == "fsdp" else 1
    return optimizer_step_s(pace.tuning.trainable_params / shards, pace.chip, adamw=pace.recipe.optimizer == "adamw")


def _training_passes(pace: Pace) -> Passes:
    passes = training_passes(frozen_base=pace.tuning.frozen_base, checkpointing=pace.recipe.checkpointing)
    if pace.recipe.checkpointing != "selective":
        return passes
    case = MemoryCase(
        shape=pace.shape, recipe=pace.recipe, tuning=pace.tuning, gpus=pace.gpus,
        longest_row_tokens=pace.recipe.micro_batch_tokens, trained_share=1.0, stack=pace.stack,
    )  # fmt: skip
    # Each byte that is made again is written once and read once.
    again = 2 * pace.shape.layers * layer_bytes(case).recomputed_under("selective")
    return replace(passes, again_bytes=again)
