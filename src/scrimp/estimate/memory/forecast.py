"""Memory of one card (or of the process, on a CPU): what a recipe needs, with its interval.

Source: terms in `phases.py` and `activations.py`; the step from allocated to device memory and the intervals are
fitted on calibration/measured_memory.csv (`fitted.json`, by `make calibrate`); docs/explanation/memory.md shows the
errors. Valid for decoder-only transformers with flash or SDPA attention.
"""

from dataclasses import replace

from scrimp.core.estimate import Estimate
from scrimp.core.forecast import MemoryForecast, MemoryPhase
from scrimp.core.market import Device
from scrimp.core.model import ModelShape
from scrimp.core.recipe import Recipe
from scrimp.estimate.memory.case import MemoryCase
from scrimp.estimate.memory.fitted import SEVERAL_CARDS, FittedMemory, fitted_memory, region_of
from scrimp.estimate.memory.phases import memory_phases
from scrimp.estimate.memory.process import process_forecast
from scrimp.estimate.stack import ONE_MICRO_BATCH_ON_CPU, TRAINER, TRAINER_ON_CPU
from scrimp.estimate.tuning import tuning_of

# Rows differ in how much of them is trained: the worst micro-batch is taken to carry half as much again as the mean.
WORST_TRAINED_RATIO = 1.5


def forecast_memory(
    shape: ModelShape,
    recipe: Recipe,
    device: Device,
    *,
    gpus: int,
    longest_row_tokens: int,
    trained_share: float = 1.0,
    largest_step_tokens: int | None = None,
    steps: int | None = None,
) -> MemoryForecast:
    """Memory that our trainer needs per card.

    `trained_share` is the share of all tokens that carry a label (1.0 when unknown, which errs high).

    `largest_step_tokens` is the fullest optimizer step: on a CPU a step of one micro-batch has no gradients of earlier
    ones to keep (None: it may have). `steps` are those of the run: a process on a CPU grows with them (None: very
    many).

    Raises:
        UnknownNameError, SpecError: the recipe names no method of the methods room, or impossible options.
    """
    case = trainer_case(
        shape, recipe, device, gpus=gpus, longest_row_tokens=longest_row_tokens, trained_share=trained_share
    )
    if device.kind == "cpu":
        one_micro_batch = largest_step_tokens is not None and largest_step_tokens <= recipe.micro_batch_tokens
        case = replace(case, stack=ONE_MICRO_BATCH_ON_CPU if one_micro_batch else case.stack)
        return process_forecast(case, device_class=device.device_class, steps=steps)
    return card_forecast(case)


def trainer_case(
    shape: ModelShape,
    recipe: Recipe,
    device: Device,
    *,
    gpus: int,
    longest_row_tokens: int,
    trained_share: float = 1.0,
) -> MemoryCase:
    """What `forecast_memory` forecasts, as a case: for formulas and traces alike."""
    return MemoryCase(
        shape=shape,
        recipe=recipe,
        tuning=tuning_of(shape, recipe.method),
        gpus=gpus,
        longest_row_tokens=longest_row_tokens,
        trained_share=min(1.0, trained_share * WORST_TRAINED_RATIO),
        stack=TRAINER_ON_CPU if device.kind == "cpu" else TRAINER,
    )


def card_forecast(
    case: MemoryCase,
    *,
    fitted: FittedMemory | None = None,
    phases: tuple[MemoryPhase, ...] | None = None,
    basis: str | None = None,
) -> MemoryForecast:
    """The forecast on GPUs: allocated peak, what nvidia-smi will show, and what the card must have.

    Of the device it depends on nothing but its kind. What nvidia-smi shows may pass the card's size on paper: near
    the limit the allocator gives its cache back, which is why `need_bytes` alone says whether a job fits. `phases` and
    `basis` are those of a trace instead of the formula's own.
    """
    fitted = fitted or fitted_memory()
    phases = phases or memory_phases(case)
    peak = max(phase.total_bytes for phase in phases)
    device = "device" if case.gpus == 1 else SEVERAL_CARDS
    basis = basis or _basis(case)

    def doubt(figure: str) -> tuple[float, float]:
        """The interval of a figure in bytes: ratios of what was fitted to it."""
        fitted_bytes = fitted.figures[figure].of(peak_bytes=peak, logits_bytes=case.logits_bytes)
        low, high = fitted.interval(region_of(case, figure))
        return fitted_bytes * low, fitted_bytes * high

    low, high = doubt("allocated")
    device_bytes = fitted.figures[device].of(peak_bytes=peak, logits_bytes=case.logits_bytes)
    need = fitted.need.of(peak_bytes=peak, logits_bytes=case.logits_bytes)
    return MemoryForecast(
        phases=phases,
        peak_bytes=_estimate(peak, low, high, basis),
        device_bytes=_estimate(device_bytes, *doubt(device), basis),
        need_bytes=_estimate(need, need * low / peak, need * high / peak, basis),
    )


def _estimate(value: float, low: float, high: float, basis: str) -> Estimate[float]:
    """The interval holds its own value even where every measured run lay to one side of it."""
    return Estimate(value=value, low=min(value, low), high=max(value, high), basis=basis)


def _basis(case: MemoryCase) -> str:
    if case.shape.experts:
        return "tensor count; of mixtures of experts a few sharded runs were measured"
    if case.shards > 1:
        return "tensor count, graded on published runs on 2 to 8 cards"
    return "tensor count, graded on published single-card runs"
