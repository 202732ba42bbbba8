"""What software does the training: the knobs that change memory and speed at equal arithmetic.

The formulas take a `Stack` so that the very code that plans for our trainer is graded on measurements of others.
"""

from dataclasses import dataclass, replace
from typing import Literal

AdapterMath = Literal["autocast", "fp32", "base"]
OptimizerStep = Literal["fused", "foreach", "in_backward"]
Kernels = Literal["eager", "fused"]
SpeedStack = Literal["eager", "compiled", "fused", "megatron"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One way to run a fine-tune.

    adapter_math         `autocast`: fp32 adapters, each casting its input to 16 bit (HF Trainer with bf16=True);
                         `fp32`: fp32 adapters that multiply in fp32; `base`: adapters in the base's dtype (litgpt)
    optimizer_step       `foreach` holds one more copy of what it updates, `fused` none; `in_backward` frees every
                         gradient at once
    master_weights       16-bit weights are trained through a copy of them in fp32 (DeepSpeed), states in fp32 too
    full_loss_bytes      bytes per scored token and vocabulary entry where logits exist: 12 for transformers up to
                         4.45 and from 5.0, 14 for 4.46-4.57, 8 for a fused cross entropy over full logits, 4 for
                         litgpt's chunks, whose logits all stay (measured slopes and traces, see the memory page)
    piece_logits         `selected` makes at most so many logits at a time and forms their gradient at once; None: all
    attention_bytes      bytes of a value that attention keeps; None: those of the compute dtype
    accumulates          gradients of earlier micro-batches are alive during forward and backward
    kernels              `fused`: norms keep no fp32 copy and SwiGLU no intermediate (Liger, torch.compile)
    flat_shards          FSDP flattens frozen and trained weights of a unit into one tensor, which is trained as a
                         whole: states for all weights (litgpt)
    offloads             sharded weights, gradients and states wait in host memory
    offloads_activations what is kept for backward waits in host memory (unsloth from 2024-04, torchtune's switch)
    upcasts_16bit        norms, embeddings and head are made fp32 (PEFT's prepare_model_for_kbit_training), and with
                         the embedding the residual stream; sharding's mixed precision undoes both
    double_quantised     NF4 scales are packed again: 0.516 bytes a weight instead of 0.5625
    packs_head           4-bit loading packs the output head too (litgpt replaces every nn.Linear), which is then
                         unpacked whole for the loss
    score_bytes          bytes that attention keeps of each of its heads x length scores: none with flash and SDPA;
                         eager code keeps a softmax in fp32 and in 16 bit
    keeps_packed_inputs  every 4-bit linear keeps its input for backward (bitsandbytes before 0.43.2)
    packs_experts        4- and 8-bit loading packs the routed experts of a mixture too (transformers before 5, where
                         they are linear layers)
    fused_qkv            one adapter reads for q, k and v together (litgpt)
    repeats_kv           grouped keys and values are copied out to the width of the queries (litgpt)
    speed                kind of code, for the time model: `eager` modules of transformers, `compiled` by torch, `fused`
                         kernels (Liger, llm-foundry, unsloth), `megatron` for tensor-parallel fp8 code like it
    software             the program, where the time model was fitted on runs of it (time/fitted.json); else empty
    """

    name: str
    adapter_math: AdapterMath = "autocast"
    optimizer_step: OptimizerStep = "fused"
    master_weights: bool = False
    full_loss_bytes: float = 12.0
    piece_logits: int | None = None
    attention_bytes: int | None = None
    accumulates: bool = True
    kernels: Kernels = "eager"
    flat_shards: bool = False
    offloads: bool = False
    offloads_activations: bool = False
    upcasts_16bit: bool = False
    double_quantised: bool = True
    packs_head: bool = False
    score_bytes: float = 0.0
    keeps_packed_inputs: bool = False
    packs_experts: bool = False
    fused_qkv: bool = False
    repeats_kv: bool = False
    speed: SpeedStack = "eager"
    software: str = ""


# Our trainer: fused AdamW, gradients accumulated over micro-batches, fp32 adapters under autocast, a selective loss in
# pieces of 2^26 logits (train/loss.py), logits of all positions as transformers 5 makes them where a head asks for it.
TRAINER = Stack(name="scrimp", piece_logits=2**26)
# On a CPU its attention runs in fp32 (train/attention.py); torch 2.13's kernel takes grouped heads as they are.
TRAINER_ON_CPU = Stack(name="scrimp on a CPU", piece_logits=2**26, attention_bytes=4)
# The same where a step is one micro-batch: gradients come as activations go.
ONE_MICRO_BATCH_ON_CPU = replace(TRAINER_ON_CPU, accumulates=False)
