"""What the row of a measured run says of its software, as a `Stack` and the settings of a recipe.

What differs between trainers is said here and nowhere else; the formulas are the product's own.
"""

import re

from scrimp.calibrate.table import Row
from scrimp.core.recipe import Checkpointing, LossCode, Optimizer, Sharding, WeightDtype
from scrimp.estimate.stack import AdapterMath, OptimizerStep, Stack

# Models whose own code computes the loss in the dtype of the logits.
_OWN_LOSS = ("Qwen/Qwen-", "bigcode/gpt_bigcode")
_PACKED_OPTIMIZERS = ("8bit", "8-bit", "4bit", "4-bit")
_FULL_SHARDS = ("fsdp", "zero3", "full_shard", "stage 3")


def stack_of(row: Row) -> Stack:
    """The software of a row."""
    litgpt = is_litgpt(row)
    adapter_math: AdapterMath = "base" if litgpt else "autocast" if row["amp"] in {"bf16", "fp16"} else "fp32"
    quantised = row["quant"].startswith("nf4")
    return Stack(
        name=row["source"],
        adapter_math=adapter_math,
        optimizer_step=_optimizer_step(row),
        master_weights="fp32 master" in row["optimizer"] + row["notes"],
        offloads="offload" in row["sharding"] and is_sharded(row),
        offloads_activations="offloaded" in row["framework"] + row["notes"],
        flat_shards=litgpt and is_sharded(row),
        full_loss_bytes=_loss_bytes(row),
        # litgpt's own configurations accumulate, whatever a row's column says.
        accumulates=litgpt or row["grad_accum"] not in {"", "1"},
        kernels="fused" if "compile" in row["framework"] else "eager",
        # ms-swift's QLoRA rows are only explained by it.
        upcasts_16bit="baseline-peft-bnb" in row["notes"] or (row["source"] == "ms-swift-benchmark" and quantised),
        double_quantised=row["quant"] != "nf4",
        packs_head=litgpt,
        score_bytes=_score_bytes(row),
        keeps_packed_inputs=quantised and _keeps_packed_inputs(row),
        # All published rows are older than transformers 5.
        packs_experts=True,
        fused_qkv=litgpt,
        repeats_kv=litgpt,
    )


def is_litgpt(row: Row) -> bool:
    """Whether Lightning's litgpt or lit-gpt trained it."""
    return "litgpt" in row["framework"] or "lit-gpt" in row["framework"]


def weight_dtype_of(row: Row) -> WeightDtype:
    """What the base weights are stored in. 4-bit GPTQ is counted as NF4, 8-bit as int8."""
    quant = row["quant"]
    if quant.startswith("nf4") or "4" in quant:
        return "nf4"
    if "8" in quant:
        return "int8"
    if row["weight_dtype"].startswith("fp32"):
        return "fp32"
    if is_sharded(row) and row["method"] == "full" and row["amp"] == "bf16":
        # Accelerate's FSDP with mixed precision keeps trained weights in fp32.
        return "fp32"
    return "bf16"


def loss_of(row: Row) -> LossCode:
    """`fused` where logits never exist as a whole."""
    note = row["loss_note"].lower()
    fused = "liger" in note or "cut cross" in note or "cut ce" in note
    chunked = "chunk" in note and not is_litgpt(row) and "full logits" not in note
    return "fused" if fused or (chunked and "torchtune" not in row["framework"]) else "full"


def optimizer_of(row: Row) -> Optimizer:
    """The optimizer whose states the row's run held."""
    name = row["optimizer"].lower()
    packed = any(word in name for word in _PACKED_OPTIMIZERS)
    if "paged" in name:
        return "paged_adamw_8bit" if packed else "paged_adamw"
    if "sgd" in name:
        return "sgd"
    return "adamw_8bit" if packed else "adamw"


def sharding_of(row: Row) -> Sharding:
    """How the run was spread over its cards."""
    name = row["sharding"].lower()
    if int(row["n_gpus"] or 1) < 2:
        return "none"
    if any(word in name for word in _FULL_SHARDS):
        return "fsdp"
    return "zero2" if "zero" in name else "ddp" if "ddp" in name else "none"


def is_sharded(row: Row) -> bool:
    """Whether weights were split over cards."""
    return sharding_of(row) == "fsdp"


def checkpointing_of(row: Row) -> Checkpointing:
    """What backward found kept; an unknown setting is taken as the usual one, checkpointing in full."""
    given: dict[str, Checkpointing] = {"n": "none", "selective": "selective"}
    return given.get(row["grad_checkpointing"], "full")


def version_in(framework: str, *names: str) -> tuple[int, ...] | None:
    """The version of a library that a row's `framework` names: `bnb 0.41.3` gives (0, 41, 3)."""
    found = re.search(rf"\b(?:{'|'.join(names)})[ =]+(\d+(?:\.\d+)*)", framework)
    return tuple(map(int, found[1].split("."))) if found else None


def _keeps_packed_inputs(row: Row) -> bool:
    """bitsandbytes before 0.43.2 kept the input of every 4-bit linear for backward (its PR 1270)."""
    version = version_in(row["framework"], "bnb", "bitsandbytes")
    return "before 0.43.2 keeps" in row["notes"] or (version is not None and version < (0, 43, 2))


def _optimizer_step(row: Row) -> OptimizerStep:
    name = row["optimizer"].lower()
    if "backward" in name:
        return "in_backward"
    fused = re.search(r"\bfused\b(?!\?)|fused\)", name) or "foreach=false" in name
    # bitsandbytes and torchao update tensor by tensor.
    by_tensor = "bnb" in name or "8bit" in name or "8-bit" in name or "paged" in name
    return "fused" if fused or by_tensor or row["source"] == "torchtune-flags" else "foreach"


def _score_bytes(row: Row) -> float:
    """Eager attention keeps a softmax in fp32 and in 16 bit; litgpt caps Gemma 2's scores with a tanh that it keeps."""
    if is_litgpt(row) and "gemma-2-" in row["model"]:
        return 8.0
    if row["attention"] != "eager":
        return 0.0
    # The first Qwen's own code leaves the softmax in 16 bit and keeps a mask of one byte.
    return 3.0 if row["model"].startswith(_OWN_LOSS) else 6.0


def _loss_bytes(row: Row) -> float:
    """Bytes per token and vocabulary entry where logits exist, by the code of the row's versions."""
    note, framework = row["loss_note"], row["framework"]
    if is_litgpt(row):
        # Lightning hands all chunks out in fp32: logits, log-softmax or its gradient, and the gradient in 16 bit.
        return 10.0
    if row["model"].startswith(_OWN_LOSS):
        # Their code does not upcast; under autocast Accelerate hands the logits out in fp32 beside those in 16 bit.
        return 8.0 if "gpt_bigcode" in row["model"] and row["amp"] == "n" else 14.0
    if "fused CE" in note and "linear" not in note:
        return 8.0
    if "chunk" in note.lower():
        return 4.0
    transformers = version_in(framework, "transformers")
    return 14.0 if transformers is not None and (4, 46) <= transformers < (5,) else 12.0
