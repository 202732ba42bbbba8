"""What a trace of one training step found: memory phase by phase, and the tensors alive at the peak."""

from dataclasses import dataclass

from scrimp.core.forecast import MemoryPhase, MemoryTerm


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedTensor:
    """`copies` tensors of one kind that were alive together; `origin` is the module and operation that made them."""

    term: str
    origin: str
    dtype: str
    sizes: tuple[int, ...]
    copies: int
    size_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedMemory:
    """Live tensors of a step that ran under fake tensors: what the allocator hands out, without its fragments.

    `code` says whose training step was traced. `kept_bytes` is what forward leaves for backward. `tensors` are the
    largest groups at the peak, the largest first.
    """

    code: str
    phases: tuple[MemoryPhase, ...]
    tensors: tuple[TracedTensor, ...]
    kept_bytes: float
    params: int
    trainable_params: int
    trace_s: float

    @property
    def peak_bytes(self) -> float:
        """The most that is alive at once in any phase."""
        return self.peak_phase.total_bytes

    @property
    def peak_phase(self) -> MemoryPhase:
        """The phase that sets the peak."""
        return max(self.phases, key=lambda phase: phase.total_bytes)

    @property
    def dominant(self) -> MemoryTerm:
        """The largest term of that phase."""
        return max(self.peak_phase.terms, key=lambda term: term.size_bytes)
