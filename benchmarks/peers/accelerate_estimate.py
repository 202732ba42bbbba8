"""`accelerate estimate-memory`: the real functions of the installed package, on a model built without weights.

The command itself needs the hub for the config; given the config, its figures come from two functions that run here.
Its column for training with Adam knows no adapters, batch or length. It has none for 8 and 4 bit.
"""

from functools import cache

from peers.peer import GIB, MemoryPeer, model_params, ties_embeddings
from scrimp.calibrate.memory.rows import MemoryRow
from scrimp.core.model import ModelShape


def full_gib(row: MemoryRow) -> float | None:
    """Its column for training, for runs that do train every weight on one card."""
    return _adam_gib(row) if row.row["method"] == "full" else None


def read_for_adapters_gib(row: MemoryRow) -> float | None:
    """The same column read for runs on one card with adapters on 16-bit weights: what it shows a user who plans one."""
    return _adam_gib(row) if row.row["method"] == "lora" else None


def _adam_gib(row: MemoryRow) -> float | None:
    if row.case.gpus != 1:
        return None
    fp32_bytes = model_bytes(row.case.shape) if row.case.shape.gated_mlp else _counted_bytes(row)
    return training_bytes(fp32_bytes, "float32" if row.row["weight_dtype"] == "fp32" else "float16") / GIB


def training_bytes(fp32_bytes: int, dtype: str) -> float:
    """The largest of the stages that the package names, as its command prints it."""
    from accelerate.commands.estimate import estimate_training_usage

    return float(max(estimate_training_usage(fp32_bytes, dtype).values()))


@cache
def model_bytes(shape: ModelShape) -> int:
    """Size in fp32 of the model without its head (the command builds AutoModel), as the package adds it up."""
    from accelerate import init_empty_weights
    from accelerate.utils import calculate_maximum_sizes
    from transformers import AutoModel, LlamaConfig

    config = LlamaConfig(
        vocab_size=shape.vocab,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
    )
    with init_empty_weights():
        model = AutoModel.from_config(config)
    return int(calculate_maximum_sizes(model)[0])


def _counted_bytes(row: MemoryRow) -> int:
    """The same size counted, for architectures that are no Llama."""
    head = 0 if ties_embeddings(row) else row.case.shape.embedding_params
    return int(4 * (model_params(row) - head))


_SOURCE = "huggingface/accelerate 1.15.0, accelerate.commands.estimate, called on the config of each model"
MEMORY = (
    MemoryPeer(name="accelerate estimate-memory, full", source=_SOURCE, gib=full_gib),
    MemoryPeer(name="the same column read for LoRA", source=_SOURCE, gib=read_for_adapters_gib),
)
