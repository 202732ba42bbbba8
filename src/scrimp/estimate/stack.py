"""What software does the training: the knobs that change memory and speed at equal arithmetic.

The formulas take a `Stack` so that the very code that plans for our trainer is graded on measurements of others.
"""

from dataclasses import dataclass
from typing import Literal

AdapterMath = Literal["autocast", "fp32", "base"]
OptimizerStep = Literal["fused", "foreach", "paged", "in_backward"]
Kernels = Literal["eager", "fused"]
SpeedStack = Literal["eager", "fused", "megatron"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One way to run a fine-tune.

    adapter_math         `autocast`: fp32 adapters, each casting its input to 16 bit (HF Trainer with bf16=True);
                         `fp32`: fp32 adapters that multiply in fp32; `base`: adapters in the base's dtype (litgpt)
    optimizer_step       `foreach` holds one more copy of what it updates, `fused` none; `paged` keeps its states
                         outside the allocator; `in_backward` also frees every gradient at once
    full_loss_bytes      bytes per scored token and vocabulary entry where logits exist: 12 for transformers up to
                         4.45 and from 5.0, 14 for 4.46-4.57, 8 for a fused cross entropy over full logits, 4 for
                         litgpt's chunks, whose logits all stay (measured slopes and traces, see the memory page)
    piece_logits         `selected` makes at most so many logits at a time and forms their gradient at once; None: all
    attention_bytes      bytes of a value that attention keeps; None: those of the compute dtype
    accumulates          gradients of earlier micro-batches are alive during forward and backward
    kernels              `fused`: norms keep no fp32 copy and SwiGLU no intermediate (Liger, torch.compile)
    upcasts_16bit        norms, embeddings and head are made fp32 (PEFT's prepare_model_for_kbit_training)
    keeps_packed_inputs  every 4-bit linear keeps its input for backward (bitsandbytes before 0.43.2)
    packs_experts        4- and 8-bit loading packs the routed experts of a mixture too (transformers before 5, where
                         they are linear layers)
    fused_qkv            one adapter reads for q, k and v together (litgpt)
    repeats_kv           grouped keys and values are copied out to the width of the queries (litgpt)
    speed                which multiplier of the time model applies
    """

    name: str
    adapter_math: AdapterMath = "autocast"
    optimizer_step: OptimizerStep = "fused"
    full_loss_bytes: float = 12.0
    piece_logits: int | None = None
    attention_bytes: int | None = None
    accumulates: bool = True
    kernels: Kernels = "eager"
    upcasts_16bit: bool = False
    keeps_packed_inputs: bool = False
    packs_experts: bool = False
    fused_qkv: bool = False
    repeats_kv: bool = False
    speed: SpeedStack = "eager"


# Our trainer: fused AdamW, gradients accumulated over micro-batches, fp32 adapters under autocast, a selective loss in
# pieces of 2^26 logits (train/loss.py), logits of all positions as transformers 5 makes them where a head asks for it.
TRAINER = Stack(name="scrimp", piece_logits=2**26)
# On a CPU its attention runs in fp32 and writes grouped heads out to the width of the queries (train/attention.py).
TRAINER_ON_CPU = Stack(name="scrimp on a CPU", piece_logits=2**26, attention_bytes=4, repeats_kv=True)
