"""Memory of the training process on a CPU: resident set size instead of an allocator's count.

    RSS = interpreter and libraries + weights + adapters, gradients, states + slack x (activations, loss ...)

Weights that are used in the dtype of their file are mapped from it and counted once; converted ones lie beside the
mapped file while they load. Source: runs of this trainer on small models, calibration/measured_process.csv.
"""

from dataclasses import dataclass

from scrimp.core.estimate import Estimate
from scrimp.core.forecast import MemoryForecast, MemoryPhase, MemoryTerm
from scrimp.core.units import MIB
from scrimp.estimate.memory.case import MemoryCase
from scrimp.estimate.memory.phases import memory_phases

_STATIC = {"weights", "adapters", "optimizer states", "gradients", "16-bit weight copies"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessConstants:
    """What stands beside the live tensors.

    base_bytes           after the imports
    workspace_bytes      more once training has begun: compiled primitives, Python objects
    slack_ratio          what glibc's heap holds over the live activations: 2.3 and 2.4 in whole runs with rows of all
                         lengths, 1.3 to 1.6 when every step has equal rows
    checkpointing_slack  the same with gradient checkpointing, whose many short-lived tensors are freed into the heap
                         and not given back: 3.2 to 4.6 with equal rows
    low, high            80% interval of measured over forecast
    """

    base_bytes: float = 390 * MIB
    workspace_bytes: float = 100 * MIB
    slack_ratio: float = 2.2
    checkpointing_slack: float = 4.7
    low: float = 0.70
    high: float = 1.30


CONSTANTS = ProcessConstants()
_BASIS = "tensor count plus interpreter and heap slack, measured on small models"


def process_forecast(case: MemoryCase, *, constants: ProcessConstants = CONSTANTS) -> MemoryForecast:
    """The forecast on a CPU. `peak_bytes` and `device_bytes` are both RSS: there is no allocator in between."""
    phases = tuple(_as_process(phase, case, constants) for phase in memory_phases(case))
    peak = max(phase.total_bytes for phase in phases)
    estimate = Estimate(value=peak, low=peak * constants.low, high=peak * constants.high, basis=_BASIS)
    return MemoryForecast(phases=phases, peak_bytes=estimate, device_bytes=estimate, need_bytes=estimate)


def _as_process(phase: MemoryPhase, case: MemoryCase, constants: ProcessConstants) -> MemoryPhase:
    terms = [MemoryTerm(name="interpreter and libraries", size_bytes=constants.base_bytes + constants.workspace_bytes)]
    slack = constants.checkpointing_slack if case.recipe.checkpointing != "none" else constants.slack_ratio
    for term in phase.terms:
        size_bytes = term.size_bytes * (1.0 if term.name in _STATIC else slack)
        terms.append(MemoryTerm(name=term.name, size_bytes=size_bytes))
    if phase.name == "load" and case.recipe.weight_dtype == "fp32":
        terms.append(MemoryTerm(name="mapped weight file", size_bytes=2.0 * case.shape.params))
    return MemoryPhase(name=phase.name, terms=tuple(terms))
