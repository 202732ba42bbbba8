"""ftuneai: states by the textbook, activations as a multiple of the hidden states, 20% on top."""

from peers.peer import GIB, MemoryPeer, checkpoints, model_params, rows_and_length
from scrimp.calibrate.memory.rows import MemoryRow

_FACTOR_CHECKPOINTED, _FACTOR_KEPT = 4.0, 10.0
_FLASH_SHARE, _QLORA_FACTOR = 0.5, 2.0
_NF4_BYTES = 0.5 * 1.02
_GRADIENT_BYTES, _ADAM_BYTES, _ADAPTER_BYTES = 2, 8, 2
_OVERHEAD, _GATHER_SHARE = 0.20, 0.05


def gib(row: MemoryRow) -> float:
    """Memory of one card, with everything but activations shared out when the run did so."""
    full = row.row["method"] == "full"
    weights = model_params(row) * (2.0 if row.row["quant"] == "none" else _NF4_BYTES)
    trainable = model_params(row) if full else float(adapter_params(row))
    states = trainable * (_GRADIENT_BYTES + _ADAM_BYTES + (0 if full else _ADAPTER_BYTES))
    shards = row.case.shards
    gathered = _GATHER_SHARE * weights if shards > 1 else 0.0
    subtotal = (weights + states) / shards + activation_bytes(row) + gathered
    return subtotal * (1 + _OVERHEAD) / GIB


def activation_bytes(row: MemoryRow) -> float:
    """A multiple of the layer inputs; half of it with flash attention, twice with QLoRA."""
    shape, (rows, length) = row.case.shape, rows_and_length(row)
    factor = _FACTOR_CHECKPOINTED if checkpoints(row) else _FACTOR_KEPT
    kept = rows * length * shape.hidden * shape.layers * 2 * factor
    if shape.experts:
        kept *= shape.experts_active / shape.experts
    if row.row["attention"] != "eager":
        kept *= _FLASH_SHARE
    return kept * (_QLORA_FACTOR if row.row["method"] == "qlora" else 1.0)


def adapter_params(row: MemoryRow) -> int:
    """Parameters of adapters on q and v, on all of attention, or on all linear layers: the choices that it offers."""
    shape = row.case.shape
    rank = int(float(row.row["lora_rank"] or 16))
    h, kv, i = shape.hidden, shape.kv_heads * (shape.hidden // shape.heads), shape.intermediate
    square, narrow, wide = h + h, h + kv, h + i
    adapted = {linear.name for linear in row.case.tuning.adapted}
    if any(linear.part == "mlp" for linear in row.case.tuning.adapted):
        widths = 2 * square + 2 * narrow + 3 * wide * max(1, shape.experts)
    elif adapted <= {"q_proj", "v_proj"}:
        widths = square + narrow
    else:
        widths = 2 * square + 2 * narrow
    return rank * widths * shape.layers


MEMORY = (MemoryPeer(name="ftuneai", source="ftuneai 0.4.1 (PyPI), ftuneai.core.memory", gib=gib),)
