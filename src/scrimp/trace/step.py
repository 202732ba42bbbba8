"""Whose training step is traced: forward, loss, checkpointing and optimizer as one program that others can hand in."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from scrimp.core.errors import SpecError
from scrimp.estimate.memory.case import MemoryCase
from scrimp.trace import attention
from scrimp.trace.loss import loss_code
from scrimp.trace.model import FakeModel
from scrimp.trace.optimizer import optimizer_of_case


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCode:
    """One trainer's step, in pieces that the trace runs in turn under fake tensors.

    name            for people: whose code it is
    attention       the attention function, by its name in transformers
    on_card         dropout and normalisation leave what they leave on a card; False: on this CPU
    checkpoint      sets the case's checkpointing on the model
    loss            forward and loss of one micro-batch
    optimizer       the optimizer over the trainable tensors
    """

    name: str
    attention: str
    on_card: bool
    checkpoint: Callable[[FakeModel], None]
    loss: Callable[[FakeModel], torch.Tensor]
    optimizer: Callable[[FakeModel], torch.optim.Optimizer]


def huggingface_step(case: MemoryCase) -> StepCode:
    """The step of the Hugging Face Trainer, with the loss code of the version that the case's stack stands for.

    Raises:
        SpecError: software that transformers' model code does not stand for.
    """
    _check_software(case)
    attention.register_attention()
    return StepCode(
        name=f"Hugging Face model code, {case.stack.name}",
        attention=attention.WRITTEN_OUT if case.stack.repeats_kv else attention.GROUPED,
        on_card=True,
        checkpoint=checkpoint_layers,
        loss=_huggingface_loss,
        optimizer=optimizer_of_case,
    )


def checkpoint_layers(model: FakeModel) -> None:
    """Every decoder layer keeps its input alone, or what the case says.

    Raises:
        SpecError: a kind of checkpointing that transformers does not have.
    """
    kind = model.case.recipe.checkpointing
    if kind == "none":
        return
    if kind != "full":
        raise SpecError(
            what=f"{kind} checkpointing is not part of transformers",
            expected="checkpointing of whole layers, or none",
            next_step="training.checkpointing=full",
        )
    # The generator's state is not part of the memory, and a fake one cannot be set.
    settings = {"use_reentrant": False, "preserve_rng_state": False}
    if hasattr(model.base, "activation_checkpointing_enable"):
        model.base.activation_checkpointing_enable(activation_checkpointing_kwargs=settings)
    else:
        model.base.gradient_checkpointing_enable(gradient_checkpointing_kwargs=settings)


def row_sizes(case: MemoryCase) -> tuple[int, int]:
    """Rows and tokens of a row: rows of the longest length where they fill the micro-batch, else one long row."""
    rows, rest = divmod(case.tokens, case.longest_row_tokens)
    return (1, case.tokens) if rest else (rows, case.longest_row_tokens)


def _check_software(case: MemoryCase) -> None:
    """Refuse what transformers' model code and torch's optimizers do not stand for."""
    stack = case.stack
    reasons = {
        "fused kernels": stack.kernels == "fused",
        "q, k and v in one matrix": stack.fused_qkv,
        "a packed output head": stack.packs_head,
        "attention that keeps its scores": stack.score_bytes > 0,
        "fp32 copies of 16-bit weights": stack.master_weights,
        "offloading to host memory": stack.offloads or stack.offloads_activations,
    }
    found = [words for words, applies in reasons.items() if applies]
    if found:
        raise SpecError(
            what=f"{stack.name} trains with code that is not at hand: {', '.join(found)}",
            expected="a stack whose models are those of transformers and whose optimizer is torch's or bitsandbytes'",
            next_step="use the formula's forecast for it",
        )


def _huggingface_loss(model: FakeModel) -> torch.Tensor:
    tokens_BL = torch.zeros(row_sizes(model.case), dtype=torch.int64)
    with model.compute():
        hidden_BLH = model.base.get_decoder()(input_ids=tokens_BL, use_cache=False).last_hidden_state
        return loss_code(model.case)(model, hidden_BLH, tokens_BL)
