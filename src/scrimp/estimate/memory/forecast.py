"""Memory of one card (or of the process, on a CPU): what a recipe needs, with its interval.

Source: terms in `phases.py` and `activations.py`; the step from allocated to device memory and the intervals
are fitted on calibration/measured_memory.csv by benchmarks/grade_forecasts.py, whose errors docs/explanation/memory.md
shows. Valid for decoder-only transformers with flash or SDPA attention.
"""

from dataclasses import dataclass

from scrimp.core.estimate import Estimate
from scrimp.core.forecast import MemoryForecast
from scrimp.core.market import Device
from scrimp.core.model import ModelShape
from scrimp.core.recipe import Recipe
from scrimp.core.units import GIB
from scrimp.estimate.memory.case import MemoryCase
from scrimp.estimate.memory.phases import memory_phases
from scrimp.estimate.memory.process import process_forecast
from scrimp.estimate.stack import TRAINER, TRAINER_ON_CPU
from scrimp.estimate.tuning import tuning_of


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRatios:
    """From what the allocator hands out to what the card must have.

    context_bytes     CUDA context, libraries, workspaces: the smallest gap seen between nvidia-smi and allocated
    device_ratio      nvidia-smi (less context) over allocated where no logits are made
    device_logits     more of it for each byte of logits: large tensors that come and go fragment the cache
    need_ratio        allocated x this + context must fit: cached memory is given back near the limit
    low, high         80% interval of measured over forecast, one card
    sharded_high      the same on several cards, where nvidia-smi ran 1.05-1.92 times allocated
    mixture_high      the same for a mixture of experts, for which the carried rows say little
    device_low/high   80% interval of the device figure around its own value

    Source: 47 single-GPU rows of fms-acceleration that give both figures for one run: linear fit, correlation 0.76.
    """

    context_bytes: float = 0.9 * GIB
    device_ratio: float = 1.06
    device_logits: float = 0.46
    need_ratio: float = 1.05
    low: float = 0.95
    high: float = 1.25
    sharded_high: float = 1.40
    mixture_high: float = 1.40
    device_low: float = 0.90
    device_high: float = 1.25


RATIOS = DeviceRatios()
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
) -> MemoryForecast:
    """Memory that our trainer needs per card.

    `trained_share` is the share of all tokens that carry a label (1.0 when unknown, which errs high).

    Raises:
        UnknownNameError, SpecError: the recipe names no method of the methods room, or impossible options.
    """
    case = MemoryCase(
        shape=shape,
        recipe=recipe,
        tuning=tuning_of(shape, recipe.method),
        gpus=gpus,
        longest_row_tokens=longest_row_tokens,
        trained_share=min(1.0, trained_share * WORST_TRAINED_RATIO),
        stack=TRAINER_ON_CPU if device.kind == "cpu" else TRAINER,
    )
    return process_forecast(case) if device.kind == "cpu" else card_forecast(case)


def card_forecast(case: MemoryCase, *, ratios: DeviceRatios = RATIOS) -> MemoryForecast:
    """The forecast on GPUs: allocated peak, what nvidia-smi will show, and what the card must have.

    Of the device it depends on nothing but its kind. What nvidia-smi shows may pass the card's size on paper: near
    the limit the allocator gives its cache back, which is why `need_bytes` alone says whether a job fits.
    """
    phases = memory_phases(case)
    peak = max(phase.total_bytes for phase in phases)
    need = peak * ratios.need_ratio + ratios.context_bytes
    device = peak * ratios.device_ratio + case.logits_bytes * ratios.device_logits + ratios.context_bytes
    high, basis = _reliability(case, ratios)
    return MemoryForecast(
        phases=phases,
        peak_bytes=Estimate(value=peak, low=peak * ratios.low, high=peak * high, basis=basis),
        device_bytes=Estimate(
            value=device, low=device * ratios.device_low, high=device * max(ratios.device_high, high), basis=basis
        ),
        need_bytes=Estimate(value=need, low=need * ratios.low, high=need * high, basis=basis),
    )


def _reliability(case: MemoryCase, ratios: DeviceRatios) -> tuple[float, str]:
    """Upper end of the interval, and why it is there."""
    if case.shape.experts:
        return ratios.mixture_high, "tensor count; mixtures of experts were hardly measured"
    if case.shards > 1:
        return ratios.sharded_high, "tensor count; sharded runs measured on 2 and 4 cards"
    return ratios.high, "tensor count, graded on published single-card runs"
