"""Tensors into one bf16 safetensors file, one after the other, without torch.

The format is 8 bytes of header length, a JSON header, then the tensors (huggingface/safetensors, README "Format").
It is written here because numpy has no bf16, and one tensor at a time keeps memory at the size of the largest.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BF16_BYTES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorPlace:
    """A tensor's name and shape, known before its values are."""

    name: str
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes in bf16."""
        count = 1
        for width in self.shape:
            count *= width
        return count * _BF16_BYTES


def write_bf16(path: Path, places: Sequence[TensorPlace], values: "Iterable[NDArray[Any]]") -> None:
    """Write fp32 `values`, which come in the order of `places`, rounded to bf16.

    Raises:
        ValueError: a tensor has another shape than its place, or there are more or fewer of them.
    """
    with path.open("wb") as file:
        file.write(_header(places))
        for place, value in zip(places, values, strict=True):
            if tuple(value.shape) != place.shape:
                raise ValueError(f"{place.name} has shape {tuple(value.shape)}, planned {place.shape}")
            file.write(to_bf16(value).tobytes())


def to_bf16(values: "NDArray[Any]") -> "NDArray[Any]":
    """The upper halves of fp32 numbers, rounded to the nearest, ties to even, as torch does; finite values only."""
    import numpy as np

    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounding = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return ((bits + rounding) >> np.uint32(16)).astype(np.uint16)


def _header(places: Sequence[TensorPlace]) -> bytes:
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    start = 0
    for place in places:
        end = start + place.size_bytes
        entries[place.name] = {"dtype": "BF16", "shape": list(place.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    # Readers map the file into memory, so the tensors start at a multiple of 8 bytes.
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
