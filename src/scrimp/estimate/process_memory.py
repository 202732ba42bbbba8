"""Memory of the training process on a CPU: resident set size instead of an allocator's count.

    RSS = interpreter and libraries + weights + adapters, gradients, states + slack x (activations, loss ...)

Weights that are used in the dtype of their file are mapped from it and counted once; converted ones lie beside the
mapped file while they load. Source: runs of this stack (torch 2.13, transformers 5.24, peft 0.21, one thread) on
the 135M-parameter shape of SmolLM2, figures in calibration/measured_process.csv.
"""

from dataclasses import dataclass, replace

from scrimp.core.estimate import Estimate
from scrimp.core.forecast import MemoryForecast, MemoryPhase, MemoryTerm
from scrimp.core.units import MIB
from scrimp.estimate.memory_case import MemoryCase
from scrimp.estimate.memory_phases import memory_phases

_STATIC = {"weights", "adapters", "optimizer states", "gradients"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessConstants:
    """`base_bytes` after the imports, `slack_ratio` what the C heap holds over the live tensors, and the interval of
    measured over forecast.
    """

    base_bytes: float = 390 * MIB
    workspace_bytes: float = 100 * MIB
    slack_ratio: float = 1.40
    low: float = 0.75
    high: float = 1.35


CONSTANTS = ProcessConstants()
_BASIS = "tensor count plus interpreter and heap slack, measured on one small model"


def process_forecast(case: MemoryCase, *, constants: ProcessConstants = CONSTANTS) -> MemoryForecast:
    """The forecast on a CPU. `peak_bytes` and `device_bytes` are both RSS: there is no allocator in between."""
    # CPU attention writes grouped heads out to the width of the queries, and adapters multiply in their own fp32.
    on_cpu = replace(case, stack=replace(case.stack, repeats_kv=True, adapter_math="fp32"))
    phases = tuple(_as_process(phase, case, constants) for phase in memory_phases(on_cpu))
    peak = max(phase.total_bytes for phase in phases)
    estimate = Estimate(value=peak, low=peak * constants.low, high=peak * constants.high, basis=_BASIS)
    return MemoryForecast(phases=phases, peak_bytes=estimate, device_bytes=estimate, need_bytes=estimate)


def _as_process(phase: MemoryPhase, case: MemoryCase, constants: ProcessConstants) -> MemoryPhase:
    terms = [MemoryTerm(name="interpreter and libraries", size_bytes=constants.base_bytes + constants.workspace_bytes)]
    for term in phase.terms:
        slack = 1.0 if term.name in _STATIC else constants.slack_ratio
        terms.append(MemoryTerm(name=term.name, size_bytes=term.size_bytes * slack))
    if phase.name == "load" and case.recipe.weight_dtype == "fp32":
        terms.append(MemoryTerm(name="mapped weight file", size_bytes=2.0 * case.shape.params))
    return MemoryPhase(name=phase.name, terms=tuple(terms))
