"""Forecasts after a probe: what was measured takes the place of what was computed, with what doubt is left.

memory   the probe's peak, on the fullest micro-batch of the run; on a CPU also what the heap grows by afterwards
steps    steps x the probe's mean step
around   loading and the probe itself as measured; evaluations and samples at the speed that the probe saw; the rest
         as planned
"""

from dataclasses import dataclass, replace

from scrimp.core.estimate import Estimate
from scrimp.core.forecast import MemoryForecast, TimeForecast, TimePart
from scrimp.core.probe import ProbeReading
from scrimp.core.recipe import Recipe
from scrimp.estimate.memory.process import CONSTANTS as PROCESS
from scrimp.estimate.time.forecast import evaluation_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """What a run measures over what its probe did: 80% of runs lie between `low` and `high`, `value` in the middle."""

    low: float
    value: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeDoubts:
    """By kind of device.

    card_memory   the allocator repeats itself: the fullest micro-batch was in the probe
    driver        its cache grows with shapes that the probe has not seen
    cpu_memory    how the process grows after the probe, beyond what is added for that (memory/process.py): 0.96 to
                  1.17 in eight runs
    card_step     clocks, thermals
    cpu_step      steps of a run became slower than those of its probe: by 1% in fp32, by 8 to 18% in 16 bit (six runs
                  of 30 and 60 steps alone on a 2-vCPU Xeon); neighbours on the machine
    around        evaluations and samples from a few tokens of each
    """

    card_memory: Doubt = Doubt(low=0.98, value=1.0, high=1.05)
    driver: Doubt = Doubt(low=0.97, value=1.02, high=1.15)
    cpu_memory: Doubt = Doubt(low=0.96, value=1.03, high=1.13)
    card_step: Doubt = Doubt(low=0.94, value=1.0, high=1.10)
    cpu_step: Doubt = Doubt(low=0.97, value=1.10, high=1.20)
    around: Doubt = Doubt(low=0.80, value=1.0, high=1.25)


DOUBTS = ProbeDoubts()


def probed_memory(
    memory: MemoryForecast, reading: ProbeReading, recipe: Recipe, *, steps: int, doubts: ProbeDoubts = DOUBTS
) -> MemoryForecast:
    """Memory of a run of so many steps after a probe.

    The phases keep their shares: a probe measures only the peak of all of them.
    """
    basis = _basis(reading)
    if reading.device_kind == "cpu":
        growth_bytes = 0.0 if recipe.compute_dtype == "fp32" else _growth_bytes(reading, steps)
        peak = _estimate(reading.peak_bytes + growth_bytes, doubts.cpu_memory, basis)
        return replace(memory, peak_bytes=peak, device_bytes=peak, need_bytes=peak)
    peak = _estimate(reading.peak_bytes, doubts.card_memory, basis)
    seen = reading.driver_bytes or reading.reserved_bytes
    device = memory.device_bytes if seen is None else _estimate(seen, doubts.driver, basis)
    # Beyond the tensors a card must hold what the driver counts outside the allocator.
    outside = max(0, (reading.driver_bytes or 0) - (reading.reserved_bytes or 0))
    need = _plus(peak, outside) if outside else memory.need_bytes.scaled(peak.value / memory.peak_bytes.value)
    return replace(memory, peak_bytes=peak, device_bytes=device, need_bytes=replace(need, basis=basis))


def probed_time(
    time: TimeForecast, reading: ProbeReading, recipe: Recipe, *, doubts: ProbeDoubts = DOUBTS
) -> TimeForecast:
    """Time after a probe, part by part."""
    basis = _basis(reading)
    pace = doubts.cpu_step if reading.device_kind == "cpu" else doubts.card_step
    step = _estimate(reading.step_s, pace, basis)
    train = step.scaled(float(time.steps))
    measured: dict[str, Estimate[float]] = {
        "training steps": train,
        "imports and loading": _estimate(reading.load_s, _KNOWN, basis),
        "rehearsal": _estimate(reading.probe_s, _KNOWN, basis),
        "probe": _estimate(reading.probe_s, _KNOWN, basis),
    }
    if reading.evaluation_s is not None:
        count = evaluation_count(recipe, time.steps)
        measured["evaluations"] = _estimate(count * reading.evaluation_s, doubts.around, basis)
    if reading.sampling_s is not None:
        measured["samples"] = _estimate(reading.sampling_s, doubts.around, basis)
    total, parts = _total(time, measured, basis)
    rate = time.tokens_per_s.value * time.train_s.value / train.value if train.value else 0.0
    return replace(
        time,
        total_s=total,
        train_s=train,
        step_s=step,
        tokens_per_s=Estimate(
            value=rate, low=rate * step.value / step.high, high=rate * step.value / step.low, basis=basis
        ),
        parts=parts,
    )


_KNOWN = Doubt(low=1.0, value=1.0, high=1.0)


def _total(
    time: TimeForecast, measured: dict[str, Estimate[float]], basis: str
) -> tuple[Estimate[float], tuple[TimePart, ...]]:
    """The sum of the parts: measured ones as they are, the rest as planned with the plan's own doubt."""
    low_ratio = time.total_s.low / time.total_s.value if time.total_s.value else 1.0
    high_ratio = time.total_s.high / time.total_s.value if time.total_s.value else 1.0
    value = low = high = 0.0
    parts: list[TimePart] = []
    for part in time.parts:
        found = measured.get(part.name)
        here = part.duration_s if found is None else found.value
        value += here
        low += here * low_ratio if found is None else found.low
        high += here * high_ratio if found is None else found.high
        parts.append(replace(part, duration_s=here))
    return Estimate(value=value, low=low, high=high, basis=basis), tuple(parts)


def _growth_bytes(reading: ProbeReading, steps: int) -> float:
    """What the process's heap grows by between the probe and the end of the run."""
    heap_bytes = max(0.0, reading.peak_bytes - reading.tensor_bytes - PROCESS.base_bytes)
    seen, whole = (PROCESS.growth_bytes_of(heap_bytes, steps=count) for count in (reading.steps, steps))
    return max(0.0, whole - seen)


def _estimate(measured: float, doubt: Doubt, basis: str) -> Estimate[float]:
    value = measured * doubt.value
    return Estimate(value=value, low=measured * min(doubt.low, doubt.value), high=measured * doubt.high, basis=basis)


def _plus(estimate: Estimate[float], more: float) -> Estimate[float]:
    return replace(estimate, value=estimate.value + more, low=estimate.low + more, high=estimate.high + more)


def _basis(reading: ProbeReading) -> str:
    return f"measured by a probe of {reading.steps} steps"
