"""Counts the storages that are alive, operation by operation, as a CUDA allocator would."""

import contextlib
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from scrimp.core.forecast import MemoryPhase, MemoryTerm, PhaseName
from scrimp.core.trace import TracedTensor

# The allocator of torch hands out memory in blocks of so many bytes (c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize).
_BLOCK_BYTES = 512
_CASTS = (torch.ops.aten._to_copy.default,)


@dataclass(slots=True, eq=False)
class _Allocation:
    """One storage: alive from event `start` until before event `end`."""

    size_bytes: int
    start: int
    term: str
    origin: str
    dtype: str
    sizes: tuple[int, ...]
    end: int | None = None


class Meter(TorchDispatchMode):
    """Sees the results of every operation below autograd, in forward, backward and the optimizer alike.

    `workspaces` gives, by the name of an operation, the bytes that its kernel takes and gives back within one call.
    """

    def __init__(self, *, vocab: int, workspaces: dict[str, Callable[..., int]] | None = None) -> None:
        """`vocab` tells logits from other tensors: they are as wide as the vocabulary."""
        super().__init__()
        self.live_bytes = 0
        self._vocab = vocab
        self._workspaces = workspaces or {}
        self._events = 0
        self._log: list[_Allocation] = []
        self._live: dict[int, tuple[_Allocation, Any]] = {}
        self._peaks: dict[str, tuple[int, int]] = {}
        self._phase = "load"
        self._term = "weights"
        self._modules: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation and count what it has made."""
        made = func(*args, **(kwargs or {}))
        for each in made if isinstance(made, tuple | list) else (made,):
            if isinstance(each, torch.Tensor):
                self._see(each, func, args)
        workspace = self._workspaces.get(func.name())
        if workspace is not None:
            self._mark(self.live_bytes + workspace(*args))
        return made

    @contextlib.contextmanager
    def phase(self, name: str, *, term: str = "activations") -> Iterator[None]:
        """Count towards this phase (or what lies between phases) from here on; new storages are called `term`."""
        before = self._phase, self._term
        self._phase, self._term = name, term
        self._modules.clear()
        self._mark(self.live_bytes)
        try:
            yield
        finally:
            self._phase, self._term = before

    def register(self, tensor: torch.Tensor, term: str, origin: str) -> None:
        """Count a tensor that no operation made here, or give a counted one its name."""
        entry = self._live.get(tensor.untyped_storage()._cdata)
        if entry is None:
            self._add(tensor, term, origin)
            return
        entry[0].term, entry[0].origin = term, origin

    def watch(self, root: torch.nn.Module, names: Callable[[str], str]) -> None:
        """Name what the modules below `root` make after them; `names` shortens a module's path."""

        def enter(name: str) -> Callable[..., None]:
            return lambda *_: self._modules.append(name)

        def leave(*_: object) -> None:
            if self._modules:
                self._modules.pop()

        for path, module in root.named_modules():
            module.register_forward_pre_hook(enter(names(path)))
            module.register_forward_hook(leave, always_call=True)

    def phase_of(self, name: PhaseName) -> MemoryPhase:
        """What was alive at the peak of that phase, by term, the largest first."""
        totals: dict[str, int] = defaultdict(int)
        for each in self._alive_at(self._peaks[name][1]):
            totals[each.term] += each.size_bytes
        missing = self._peaks[name][0] - sum(totals.values())
        if missing > 0:
            totals["kernel workspace"] = missing
        ordered = sorted(totals.items(), key=lambda item: -item[1])
        return MemoryPhase(name=name, terms=tuple(MemoryTerm(name=term, size_bytes=size) for term, size in ordered))

    def alive(self, *, at_peak_of: str | None = None) -> tuple[TracedTensor, ...]:
        """Groups of equal tensors alive now, or at the peak of a phase, the largest first."""
        event = self._events if at_peak_of is None else self._peaks[at_peak_of][1]
        groups: dict[tuple[str, str, str, tuple[int, ...]], list[int]] = defaultdict(list)
        for each in self._alive_at(event):
            groups[each.term, each.origin, each.dtype, each.sizes].append(each.size_bytes)
        found = [
            TracedTensor(
                term=term, origin=origin, dtype=dtype, sizes=sizes, copies=len(each), size_bytes=float(sum(each))
            )
            for (term, origin, dtype, sizes), each in groups.items()
        ]
        return tuple(sorted(found, key=lambda group: -group.size_bytes))

    def _see(self, tensor: torch.Tensor, func: Any, args: Any) -> None:
        if tensor.untyped_storage()._cdata in self._live:
            return
        term = self._term
        if func in _CASTS and isinstance(args[0], torch.nn.Parameter):
            term = "16-bit weight copies"
        elif tensor.ndim and tensor.shape[-1] == self._vocab and term != "optimizer states":
            term = "logits and loss"
        where = self._modules[-1] if self._modules else ""
        self._add(tensor, term, f"{where} {func._opname}".strip())

    def _add(self, tensor: torch.Tensor, term: str, origin: str) -> None:
        storage = tensor.untyped_storage()
        size_bytes = -(-storage.nbytes() // _BLOCK_BYTES) * _BLOCK_BYTES
        if not size_bytes:
            return
        self._events += 1
        made = _Allocation(
            size_bytes=size_bytes,
            start=self._events,
            term=term,
            origin=origin,
            dtype=str(tensor.dtype).removeprefix("torch."),
            sizes=tuple(tensor.shape),
        )
        self._log.append(made)
        key = storage._cdata
        self._live[key] = made, weakref.ref(storage, lambda _: self._freed(key))
        self.live_bytes += size_bytes
        self._mark(self.live_bytes)

    def _freed(self, key: int) -> None:
        gone, _ = self._live.pop(key)
        self._events += 1
        gone.end = self._events
        self.live_bytes -= gone.size_bytes

    def _mark(self, size_bytes: int) -> None:
        if size_bytes > self._peaks.get(self._phase, (-1, 0))[0]:
            self._peaks[self._phase] = size_bytes, self._events

    def _alive_at(self, event: int) -> Iterator[_Allocation]:
        return (each for each in self._log if each.start <= event and (each.end is None or each.end > event))
