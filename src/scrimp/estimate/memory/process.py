"""Memory of the training process on a CPU: resident set size instead of an allocator's count.

    RSS = interpreter and libraries + weights, adapters, gradients, states
        + kept ratio x activations + loss ratio x (logits and loss)

Weights that are used in the dtype of their file are mapped from it and counted once; converted ones lie beside the
mapped file while they load, and what was packed to 4 bit leaves as much in the heap. What the heap and the kernels hold
beyond live tensors differs by instruction set, because the kernels do: AMX and AVX-512 bf16 products pack what they
multiply into scratch memory. Source: runs of this trainer on small models, calibration/measured_process.csv; each
class of CPU was measured on one machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from scrimp.core.estimate import Estimate
from scrimp.core.forecast import MemoryForecast, MemoryPhase, MemoryTerm
from scrimp.core.units import MIB
from scrimp.estimate.memory.case import MemoryCase
from scrimp.estimate.memory.phases import memory_phases

_STATIC = {"weights", "adapters", "optimizer states", "gradients", "16-bit weight copies"}
_LOSS = "logits and loss"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeapRatios:
    """Resident over counted bytes of one class of CPU.

    kept_16bit   activations in 16 bit: the heap gives little away since oneDNN keeps few kernels (train/process.py)
    kept_fp32    the same in fp32
    loss         logits, their copies, and the vocabulary's weights packed for the product
    low, high    80% interval of measured over forecast
    """

    kept_16bit: float
    kept_fp32: float
    loss: float
    low: float
    high: float


def _measured_heaps() -> Mapping[str, HeapRatios]:
    return {
        "amx_bf16": HeapRatios(kept_16bit=1.0, kept_fp32=1.36, loss=2.9, low=0.90, high=1.16),
        "avx512_bf16": HeapRatios(kept_16bit=1.2, kept_fp32=2.1, loss=6.7, low=0.80, high=1.25),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessConstants:
    """What stands beside the live tensors.

    base_bytes    after the imports, with compiled kernels and Python objects of a run
    heaps         by instruction set, as measured
    other_heap    CPUs that nobody measured: between the two
    """

    base_bytes: float = 500 * MIB
    heaps: Mapping[str, HeapRatios] = field(default_factory=_measured_heaps)
    other_heap: HeapRatios = HeapRatios(kept_16bit=1.1, kept_fp32=1.7, loss=4.5, low=0.70, high=1.40)

    def heap_of(self, isa: str) -> HeapRatios:
        """The ratios of a class of CPU."""
        return self.heaps.get(isa, self.other_heap)


CONSTANTS = ProcessConstants()
_BASIS = "tensor count plus interpreter and heap slack, measured on small models on a CPU of this class"
_OTHER_BASIS = "tensor count plus interpreter and heap slack; no CPU of this class was measured"


def process_forecast(
    case: MemoryCase,
    *,
    device_class: str = "",
    constants: ProcessConstants = CONSTANTS,
    phases: tuple[MemoryPhase, ...] | None = None,
    basis: str | None = None,
) -> MemoryForecast:
    """The forecast on a CPU. `peak_bytes` and `device_bytes` are both RSS: there is no allocator in between.

    `device_class` is the CPU's, `cpu_amx_bf16`. `phases` and `basis` are those of a trace instead of the formula's own.
    """
    isa = device_class.removeprefix("cpu_")
    heap = constants.heap_of(isa)
    known = _BASIS if isa in constants.heaps else _OTHER_BASIS
    phases = tuple(_as_process(phase, case, heap, constants) for phase in phases or memory_phases(case))
    peak = max(phase.total_bytes for phase in phases)
    estimate = Estimate(value=peak, low=peak * heap.low, high=peak * heap.high, basis=basis or known)
    return MemoryForecast(phases=phases, peak_bytes=estimate, device_bytes=estimate, need_bytes=estimate)


def _as_process(phase: MemoryPhase, case: MemoryCase, heap: HeapRatios, constants: ProcessConstants) -> MemoryPhase:
    terms = [MemoryTerm(name="interpreter and libraries", size_bytes=constants.base_bytes)]
    kept = heap.kept_fp32 if case.recipe.compute_dtype == "fp32" else heap.kept_16bit
    # A trained head's gradient is in the loss's term and is as static as other gradients.
    head = 0.0 if case.tuning.frozen_base else min(4.0 * case.shape.embedding_params, _size(phase, _LOSS))
    for term in phase.terms:
        size_bytes = term.size_bytes * (1.0 if term.name in _STATIC else kept)
        if term.name == _LOSS:
            size_bytes = (term.size_bytes - head) * heap.loss + head
        terms.append(MemoryTerm(name=term.name, size_bytes=size_bytes))
    stored = case.recipe.weight_dtype
    if stored == "nf4" or (phase.name == "load" and stored == "fp32" and case.shape.native_dtype != "fp32"):
        terms.append(MemoryTerm(name="mapped weight file", size_bytes=2.0 * case.shape.params))
    return MemoryPhase(name=phase.name, terms=tuple(terms))


def _size(phase: MemoryPhase, name: str) -> float:
    return sum(term.size_bytes for term in phase.terms if term.name == name)
