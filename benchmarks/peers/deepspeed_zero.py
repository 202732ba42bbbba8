"""DeepSpeed's estimators for ZeRO-2 and ZeRO-3 without offload: model states alone, full fine-tuning alone."""

from peers.peer import GIB, MemoryPeer, model_params
from scrimp.calibrate.memory.rows import MemoryRow
from scrimp.core.model import ModelShape


def zero2_bytes(params: float, gpus: int) -> float:
    """Whole 16-bit weights with their gradients, and 16 bytes a parameter of fp32 states over the cards."""
    return 4 * params + 16 * params / gpus


def zero3_bytes(params: float, largest_layer_params: float, gpus: int) -> float:
    """One gathered layer with its gradient, and 18 bytes a parameter over the cards."""
    return 4 * largest_layer_params + 18 * params / gpus


def zero2_gib(row: MemoryRow) -> float | None:
    """On one card; the sharded rows share out their weights too, which ZeRO-2 does not."""
    if row.row["method"] != "full" or row.case.gpus != 1:
        return None
    return zero2_bytes(model_params(row), 1) / GIB


def zero3_gib(row: MemoryRow) -> float | None:
    """For runs that share out everything."""
    if row.row["method"] != "full" or row.case.shards == 1:
        return None
    return zero3_bytes(model_params(row), largest_layer_params(row.case.shape), row.case.shards) / GIB


def largest_layer_params(shape: ModelShape) -> int:
    """Parameters of the largest single module: an embedding, as a rule."""
    return max(shape.embedding_params, shape.hidden * shape.intermediate, shape.hidden * shape.attention_width)


_SOURCE = "deepspeedai/DeepSpeed, docs/code-docs/source/memory.rst (main, read 2026-12-01)"
MEMORY = (
    MemoryPeer(name="DeepSpeed's ZeRO-2 estimator", source=_SOURCE, gib=zero2_gib),
    MemoryPeer(name="DeepSpeed's ZeRO-3 estimator", source=_SOURCE, gib=zero3_gib),
)
