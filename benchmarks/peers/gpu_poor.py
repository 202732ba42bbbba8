"""gpu_poor: every activation of every layer with written-out attention scores, 15% of it under checkpointing.

Its adapters are of rank 8 whatever is asked, its heads are never grouped, and its bytes are 16 bit throughout.
"""

from math import sqrt

from peers.peer import GIB, MemoryPeer, checkpoints, rows_and_length
from scrimp.calibrate.memory.rows import MemoryRow
from scrimp.core.model import ModelShape

_MIB = 2.0**20
_OVERHEAD_BYTES = 650 * _MIB
_CHECKPOINTED_SHARE = 0.15
_RANK = 8


def gib(row: MemoryRow) -> float | None:
    """Weights, gradients with states, activations and overhead on one card."""
    if row.case.gpus != 1:
        return None
    shape, (rows, length) = row.case.shape, rows_and_length(row)
    method = row.row["method"]
    kept = activation_bytes(shape, length) * rows * (_CHECKPOINTED_SHARE if checkpoints(row) else 1.0)
    states = state_bytes(shape, method, rows=rows, length=length)
    return (weight_bytes(shape, method) + states + kept + _OVERHEAD_BYTES) / GIB


def params(shape: ModelShape) -> int:
    """Parameters as it counts them: four square attention matrices, three feed-forward ones, embedding and head."""
    h, i = shape.hidden, shape.intermediate
    return 2 * shape.vocab * h + shape.layers * (4 * h * h + 3 * i * h)


def weight_bytes(shape: ModelShape, method: str) -> float:
    """2 bytes a parameter; a quarter of that, less its saving and with 6% on top, for QLoRA."""
    whole = 2.0 * params(shape)
    return whole / 4 - whole / 64 + 0.06 * whole if method == "qlora" else whole


def state_bytes(shape: ModelShape, method: str, *, rows: int, length: int) -> float:
    """Gradients and Adam's moments; for QLoRA something that grows with the root of the length as well."""
    if method == "full":
        return 3 * 2.0 * params(shape)
    adapters = shape.layers * _RANK * shape.hidden
    if method == "lora":
        return adapters * 2 * 4 * 3 * 2.0
    width = 15 * shape.hidden + 6 * shape.intermediate
    extra = 0.75 * width * shape.layers * 50 * max(1.0, sqrt(length / 50))
    return adapters * 0.5 * 4 * 3 + extra * rows


def activation_bytes(shape: ModelShape, length: int) -> float:
    """One row through all layers: eight vectors and three score matrices of attention, eight of the block, norms."""
    h, i = shape.hidden, shape.intermediate
    attention = 8 * length * h * 2 + length**2 * shape.heads * (2 + 4 + 2)
    block = 2 * length * h * 2 + 6 * length * i * 2
    norms = 8 * length + 6 * length * h * 2
    return float(shape.layers * (attention + block + norms))


MEMORY = (
    MemoryPeer(
        name="gpu_poor",
        source="RahulSChand/gpu_poor, src/App.js (main, read 2026-12-01)",
        gib=gib,
    ),
)
