"""Unsloth Studio's estimate: weights, states, gradients with a floor, one or two layers of activations, 1.4 GiB.

It was calibrated by its authors on Unsloth's own kernels, which make no logits; here it is held against Hugging Face,
litgpt and torchtune runs. Its fixed overhead is included, although most rows are allocator peaks without it.
"""

from peers.peer import GIB, MemoryPeer, checkpoints, rows_and_length, ties_embeddings
from scrimp.calibrate.memory.rows import MemoryRow
from scrimp.core.model import ModelShape

# 16-bit bytes of an NF4 weight: blockwise scales, and double quantisation.
_NF4_BYTES = {"nf4": 2 / 3.2, "nf4+dq": 2 / 3.6}
_OVERHEAD_BYTES = 1.4 * GIB
_GRADIENT_FLOOR = 0.15
# Layers of activations that are alive with checkpointing.
_LIVE_LAYERS_FULL, _LIVE_LAYERS_ADAPTERS = 2.0, 1.0
_EAGER_FACTOR = 12.0
_PAGED_OPTIMIZER_BYTES, _TORCH_OPTIMIZER_BYTES = 8, 6


def gib(row: MemoryRow) -> float:
    """Memory of one card; activations and overhead are on every card, the rest is shared out."""
    full = row.row["method"] == "full"
    shape = row.case.shape
    weights = weight_bytes(shape, quant=row.row["quant"], tied=ties_embeddings(row))
    trainable = weight_bytes(shape, quant="none", tied=ties_embeddings(row)) / 2 if full else _adapter_params(row)
    optimizer = trainable * (_PAGED_OPTIMIZER_BYTES if "Paged" in row.row["optimizer"] else _TORCH_OPTIMIZER_BYTES)
    activations = activation_bytes(row)
    floor = _GRADIENT_FLOOR * weights
    gradients = max(2 * trainable, floor if full else min(floor, max(activations, optimizer)))
    adapters = 0.0 if full else 2 * trainable
    spread = (weights + adapters + optimizer + gradients) / row.case.shards
    return (spread + activations + _OVERHEAD_BYTES) / GIB


def weight_bytes(shape: ModelShape, *, quant: str, tied: bool) -> float:
    """Bytes of the weights; the rule counts three feed-forward matrices whatever the model has."""
    attention = shape.hidden * (2 * shape.attention_width + 2 * shape.kv_width)
    experts = max(1, shape.experts)
    router = shape.hidden * experts if experts > 1 else 0
    packable = shape.layers * (attention + 3 * shape.hidden * shape.intermediate * experts + router)
    other = 2 * shape.hidden * shape.layers + shape.vocab * shape.hidden * (1 if tied else 2)
    return packable * _NF4_BYTES.get(quant, 2.0) + other * 2


def activation_bytes(row: MemoryRow) -> float:
    """Projections, residuals and feed-forward of the layers that are alive, with a quarter on top."""
    shape, (rows, length) = row.case.shape, rows_and_length(row)
    width = shape.attention_width + 2 * shape.kv_width + 2 + 2 * shape.intermediate * max(1, shape.experts_active)
    checkpointed = _LIVE_LAYERS_FULL if row.row["method"] == "full" else _LIVE_LAYERS_ADAPTERS
    layers = checkpointed if checkpoints(row) else float(shape.layers)
    linear = rows * length * width * 2 * 1.25 * layers
    if row.row["attention"] != "eager":
        return linear
    return max(linear, rows * shape.heads * length**2 * 2 * _EAGER_FACTOR * layers)


def _adapter_params(row: MemoryRow) -> float:
    return float(row.case.tuning.trainable_params)


MEMORY = (
    MemoryPeer(
        name="Unsloth Studio",
        source="unslothai/unsloth, studio/backend/utils/hardware/VRAM_ESTIMATION.md (main, read 2026-12-01)",
        gib=gib,
    ),
)
