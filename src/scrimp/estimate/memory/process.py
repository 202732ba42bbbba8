"""Memory of the training process on a CPU: resident set size instead of an allocator's count.

    RSS = interpreter and libraries + weights, adapters, gradients, states
        + kept ratio x activations + loss ratio x (logits and loss)
        + steps / (steps + half) x (growth ratio x what is neither static nor the interpreter's + growth)

Weights that are used in the dtype of their file are mapped from it and counted once; converted ones lie beside the
mapped file while they load, and what was packed to 4 bit leaves as much in the heap. What the heap and the kernels hold
beyond live tensors differs by instruction set, because the kernels do: AMX and AVX-512 bf16 products pack what they
multiply into scratch memory. Source: runs of this trainer on small models, calibration/measured_process.csv; each
class of CPU was measured on one machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scrimp.core.estimate import Estimate
from scrimp.core.forecast import MemoryForecast, MemoryPhase, MemoryTerm
from scrimp.core.units import MIB
from scrimp.estimate.memory.case import MemoryCase
from scrimp.estimate.memory.phases import Terms, memory_phases

_STATIC = {"weights", "adapters", "optimizer states", "gradients", "16-bit weight copies"}
_LOSS = "logits and loss"
_BASE = "interpreter and libraries"
_MAPPED = "mapped weight file"


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
        "amx_bf16": HeapRatios(kept_16bit=1.0, kept_fp32=1.40, loss=2.9, low=0.90, high=1.12),
        "avx512_bf16": HeapRatios(kept_16bit=1.25, kept_fp32=2.2, loss=6.7, low=0.80, high=1.25),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessConstants:
    """What stands beside the live tensors.

    base_bytes    after the imports, with compiled kernels and Python objects of a run
    growth_ratio  what a long run in 16 bit adds to what the heap holds of a micro-batch: oneDNN makes kernels with
                  scratch memory for every new length (in fp32, whose products it does not make, 30 steps added nothing)
    growth_bytes  and however small the micro-batches are
    half_steps    steps after which half of that is there
    heaps         by instruction set, as measured
    other_heap    CPUs that nobody measured: between the two
    """

    base_bytes: float = 500 * MIB
    growth_ratio: float = 0.40
    growth_bytes: float = 320 * MIB
    half_steps: float = 20.0
    heaps: Mapping[str, HeapRatios] = field(default_factory=_measured_heaps)
    other_heap: HeapRatios = HeapRatios(kept_16bit=1.1, kept_fp32=1.7, loss=4.5, low=0.70, high=1.40)

    def heap_of(self, isa: str) -> HeapRatios:
        """The ratios of a class of CPU."""
        return self.heaps.get(isa, self.other_heap)

    def growth_bytes_of(self, heap_bytes: float, *, steps: int | None) -> float:
        """Growth in 16 bit after so many steps with rows of all lengths; None: after very many."""
        share = 1.0 if steps is None else steps / (steps + self.half_steps)
        return share * (self.growth_ratio * heap_bytes + self.growth_bytes)


CONSTANTS = ProcessConstants()
_BASIS = "tensor count plus interpreter and heap slack, measured on small models on a CPU of this class"
_OTHER_BASIS = "tensor count plus interpreter and heap slack; no CPU of this class was measured"


def process_forecast(
    case: MemoryCase,
    *,
    device_class: str = "",
    steps: int | None = None,
    constants: ProcessConstants = CONSTANTS,
    phases: tuple[MemoryPhase, ...] | None = None,
    basis: str | None = None,
) -> MemoryForecast:
    """The forecast on a CPU. `peak_bytes` and `device_bytes` are both RSS: there is no allocator in between.

    `device_class` is the CPU's, `cpu_amx_bf16`; `steps` those of the run, None for very many. `phases` and
    `basis` are those of a trace instead of the formula's own.
    """
    isa = device_class.removeprefix("cpu_")
    heap = constants.heap_of(isa)
    known = _BASIS if isa in constants.heaps else _OTHER_BASIS

    def weigh(terms: Terms) -> float:
        return _as_process(MemoryPhase(name="forward_backward", terms=terms), case, heap, constants).total_bytes

    counted = phases or memory_phases(case, weigh=weigh)
    phases = tuple(_as_process(phase, case, heap, constants) for phase in counted)
    if case.recipe.compute_dtype != "fp32":
        phases = tuple(phase if phase.name == "load" else _grown(phase, constants, steps) for phase in phases)
    peak = max(phase.total_bytes for phase in phases)
    estimate = Estimate(value=peak, low=peak * heap.low, high=peak * heap.high, basis=basis or known)
    return MemoryForecast(phases=phases, peak_bytes=estimate, device_bytes=estimate, need_bytes=estimate)


def _as_process(phase: MemoryPhase, case: MemoryCase, heap: HeapRatios, constants: ProcessConstants) -> MemoryPhase:
    terms = [MemoryTerm(name=_BASE, size_bytes=constants.base_bytes)]
    kept = heap.kept_fp32 if case.recipe.compute_dtype == "fp32" else heap.kept_16bit
    # A trained head's gradient in fp32 and in 16 bit is in the loss's term: no kernel packs those.
    head = 0.0 if case.tuning.frozen_base else min(6.0 * case.shape.embedding_params, _size(phase, _LOSS))
    for term in phase.terms:
        size_bytes = term.size_bytes * (1.0 if term.name in _STATIC else kept)
        if term.name == _LOSS:
            size_bytes = (term.size_bytes - head) * heap.loss + head
        terms.append(MemoryTerm(name=term.name, size_bytes=size_bytes))
    stored = case.recipe.weight_dtype
    if stored == "nf4" or (phase.name == "load" and stored == "fp32" and case.shape.native_dtype != "fp32"):
        terms.append(MemoryTerm(name=_MAPPED, size_bytes=2.0 * case.shape.params))
    return MemoryPhase(name=phase.name, terms=tuple(terms))


def _grown(phase: MemoryPhase, constants: ProcessConstants, steps: int | None) -> MemoryPhase:
    still = {*_STATIC, _BASE, _MAPPED}
    heap_bytes = sum(term.size_bytes for term in phase.terms if term.name not in still)
    growth_bytes = constants.growth_bytes_of(heap_bytes, steps=steps)
    added = (MemoryTerm(name="kernels of many lengths", size_bytes=growth_bytes),) if growth_bytes else ()
    return replace(phase, terms=(*phase.terms, *added))


def _size(phase: MemoryPhase, name: str) -> float:
    return sum(term.size_bytes for term in phase.terms if term.name == name)
