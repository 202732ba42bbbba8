"""hf-vram-calc: multiples of the weights. Batch and length change its figure for inference only."""

from peers.peer import GIB, MemoryPeer, model_params
from scrimp.calibrate.memory.rows import MemoryRow

_ADAM_FACTOR, _TRAINING_MARGIN, _ADAPTER_MARGIN = 4.0, 1.3, 1.2
# A quarter of the parameters carry adapters, in matrices that are 4,096 wide.
_ADAPTED_SHARE, _WIDTH = 0.25, 4096


def gib(row: MemoryRow) -> float | None:
    """Its figure for training with Adam, or for LoRA; it splits inference over cards, not training."""
    if row.case.gpus != 1:
        return None
    bytes_each = {"none": 4.0 if row.row["weight_dtype"] == "fp32" else 2.0}.get(row.row["quant"], 0.5)
    weights_gib = model_params(row) * bytes_each / GIB
    if row.row["method"] == "full":
        return training_gib(weights_gib)
    return adapters_gib(weights_gib, model_params(row), rank=float(row.row["lora_rank"] or 64))


def training_gib(weights_gib: float) -> float:
    """Weights, gradients and two states in the dtype of the weights, and 30%."""
    return weights_gib * _ADAM_FACTOR * _TRAINING_MARGIN


def adapters_gib(weights_gib: float, params: float, *, rank: float) -> float:
    """Weights and four 16-bit copies of the adapters (in GB, added to GiB), and 20%."""
    adapters = params * _ADAPTED_SHARE * 2 * rank / _WIDTH
    return (weights_gib + adapters / 1e9 * 2 * _ADAM_FACTOR) * _ADAPTER_MARGIN


MEMORY = (MemoryPeer(name="hf-vram-calc", source="hf-vram-calc 1.0.9 (PyPI), hf_vram_calc.calculator", gib=gib),)
