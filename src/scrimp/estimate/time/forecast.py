"""Wall-clock time of a whole job, part by part: waiting, fetching, loading, stepping, scoring, saving.

    total = start-up + image + download + load + probe + steps x step + evaluations + samples + checkpoints + final save

Step times come from `speed.py`; the constants here are the rest. Not modelled: waiting for capacity, preemptions,
compilation, data loading that the step would wait for.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from scrimp.core.estimate import Estimate
from scrimp.core.forecast import TimeForecast, TimePart
from scrimp.core.job import ProbeChoice
from scrimp.core.market import Device
from scrimp.core.model import ModelShape
from scrimp.core.probe import PROBE_STEPS, PROBED_MICRO_BATCHES, is_probed
from scrimp.core.recipe import Optimizer, Recipe
from scrimp.estimate.memory.case import LINEAR_BYTES, PACKED_STATE_BYTES
from scrimp.estimate.time.site import Site
from scrimp.estimate.time.speed import (
    Interval,
    Pace,
    evaluation_s,
    interval_of,
    pace_of,
    rehearsal_s,
    sampling_s,
    step_s,
)
from scrimp.estimate.time.token_load import TokenLoad

# Both moments of AdamW in fp32, or in 8 bit, wherever they live.
_STATE_BYTES: Mapping[Optimizer, float] = {
    "adamw": 8.0,
    "paged_adamw": 8.0,
    "adamw_8bit": PACKED_STATE_BYTES,
    "paged_adamw_8bit": PACKED_STATE_BYTES,
    "sgd": 0.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AroundConstants:
    """Everything around the steps, with how far each may be off (low and high ratio).

    startup_s           a fresh EC2 GPU node takes about 5 minutes (a Karpenter user's report), containers seconds
    download            1 Gbit/s, a usual line of cloud machines
    image_ratios        from an image that the host has already to an install that unpacks on a slow disk
    imports_s           torch, transformers and peft: 6 to 7 s on a CPU machine; twice that with CUDA
    load_bytes_per_s    LLaMA-2-70B, 138 GB, loads in 84 s from local disk with plain loaders (ServerlessLLM,
                        arXiv 2401.14351); mapped files on a CPU are read at about the same rate
    save_s              fixed cost of one atomic checkpoint: fsync, rename; the rest goes with its size (site.py)
    """

    startup_s: float = 300.0
    startup_ratios: tuple[float, float] = (0.2, 3.0)
    known_startup_ratios: tuple[float, float] = (0.5, 2.0)
    download_bytes_per_s: float = 125e6
    download_ratios: tuple[float, float] = (0.3, 3.0)
    image_ratios: tuple[float, float] = (0.1, 5.0)
    imports_cpu_s: float = 6.5
    imports_gpu_s: float = 15.0
    load_bytes_per_s: float = 1.6e9
    load_ratios: tuple[float, float] = (0.5, 2.0)
    save_s: float = 0.05
    save_ratios: tuple[float, float] = (0.3, 3.0)


AROUND = AroundConstants()
Part = tuple[str, float, float, float]


def forecast_time(
    shape: ModelShape,
    recipe: Recipe,
    device: Device,
    *,
    gpus: int,
    load: TokenLoad,
    site: Site,
    probe: ProbeChoice = "auto",
) -> TimeForecast:
    """Time of the job on `gpus` cards of one machine (1 on a CPU). `probe` is what the run looks ahead with.

    Raises:
        ValueError: the device's speed is not established.
        UnknownNameError, SpecError: the recipe's method is not known or its options are impossible.
    """
    pace = pace_of(shape, recipe, device, gpus=gpus)
    interval = interval_of(pace, load)
    each_s = step_s(pace, load)
    steps = load.steps.steps
    train_s = steps * each_s
    ahead = _ahead(pace, load, interval, probe, each_s)
    parts = [*_before(pace, site), *ahead, *_during(pace, load, site, interval, train_s)]
    parts = [part for part in parts if part[1] > 0]
    total = Estimate(
        value=sum(seconds for _, seconds, _, _ in parts),
        low=sum(seconds * low for _, seconds, low, _ in parts),
        high=sum(seconds * high for _, seconds, _, high in parts),
        basis=f"{interval.basis}; start-up and transfers at typical rates",
    )
    rate = load.steps.total_tokens / train_s if train_s else 0.0
    return TimeForecast(
        total_s=total,
        train_s=_within(train_s, interval),
        step_s=_within(each_s, interval),
        steps=steps,
        tokens_per_s=Estimate(value=rate, low=rate / interval.high, high=rate / interval.low, basis=interval.basis),
        parts=tuple(TimePart(name=name, duration_s=seconds) for name, seconds, _, _ in parts),
    )


def evaluation_count(recipe: Recipe, steps: int) -> int:
    """Once before, once after, and in between where the recipe asks for it."""
    return 2 + (max(0, steps - 1) // recipe.eval_every_steps if recipe.eval_every_steps else 0)


def checkpoint_count(recipe: Recipe, steps: int) -> int:
    """As often as the recipe asks for it, and always after the last step (train/boundary.py)."""
    return -(-steps // recipe.checkpoint_every_steps) if recipe.checkpoint_every_steps else min(1, steps)


def checkpoint_bytes(trainable_params: int, optimizer: Optimizer) -> float:
    """Trained weights in fp32, and what the optimizer keeps of each."""
    return trainable_params * (4.0 + _STATE_BYTES[optimizer])


def _before(pace: Pace, site: Site, around: AroundConstants = AROUND) -> list[Part]:
    """Until the first step."""
    startup = around.startup_s if site.startup_s is None else site.startup_s
    ratios = around.startup_ratios if site.startup_s is None else around.known_startup_ratios
    weights = pace.work.stored_params * LINEAR_BYTES[pace.recipe.weight_dtype]
    imports = around.imports_gpu_s if hasattr(pace.chip, "peak_flops") else around.imports_cpu_s
    return [
        ("start-up of the machine", startup, *ratios),
        ("image and packages", site.image_bytes / around.download_bytes_per_s, *around.image_ratios),
        ("download", site.download_bytes / around.download_bytes_per_s, *around.download_ratios),
        ("imports and loading", imports + weights / around.load_bytes_per_s, *around.load_ratios),
    ]


def _ahead(pace: Pace, load: TokenLoad, interval: Interval, probe: ProbeChoice, each_s: float) -> list[Part]:
    """Before the first step: the fullest micro-batch, or a probe of whole steps of at most a few micro-batches."""
    spread = (interval.low, interval.high)
    fullest_s = rehearsal_s(pace, load)
    if not is_probed(probe, load.steps):
        return [("rehearsal", fullest_s, *spread)]
    return [("probe", PROBE_STEPS * min(each_s, PROBED_MICRO_BATCHES * fullest_s), *spread)]


def _during(
    pace: Pace, load: TokenLoad, site: Site, interval: Interval, train_s: float, around: AroundConstants = AROUND
) -> list[Part]:
    """Steps, and what happens between and after them."""
    recipe, steps = pace.recipe, load.steps.steps
    evaluations = evaluation_count(recipe, steps)
    saves = checkpoint_count(recipe, steps)
    saved = checkpoint_bytes(pace.tuning.trainable_params, recipe.optimizer)
    save_s = around.save_s + saved / site.save_bytes_per_s
    result_s = around.save_s + pace.tuning.trainable_params * 4.0 / site.save_bytes_per_s
    samples_s = sampling_s(pace, load.sampled_tokens, bytes_each=LINEAR_BYTES[recipe.weight_dtype])
    spread = (interval.low, interval.high)
    return [
        ("training steps", train_s, *spread),
        ("evaluations", evaluations * evaluation_s(pace, load), *spread),
        ("samples", samples_s, 0.5, 2.0),
        ("checkpoints", saves * save_s, *around.save_ratios),
        ("saving the result", result_s, *around.save_ratios),
    ]


def _within(value: float, interval: Interval) -> Estimate[float]:
    return Estimate(value=value, low=value * interval.low, high=value * interval.high, basis=interval.basis)
