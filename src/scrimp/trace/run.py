"""Trace one training step: load, forward and backward, optimizer, evaluation, save.

One step stands for all of them. Gradients and optimizer states that a later step finds are put in place first, the way
the first step would have made them; a test holds the result against two steps in full.
"""

import contextlib
import gc
import re
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from scrimp.core.errors import SpecError
from scrimp.core.forecast import MemoryPhase, MemoryTerm
from scrimp.core.trace import TracedMemory, TracedTensor
from scrimp.estimate.memory.case import MemoryCase
from scrimp.trace.attention import backward_workspace_bytes
from scrimp.trace.card import as_on_card
from scrimp.trace.config import config_of_shape
from scrimp.trace.meter import Meter
from scrimp.trace.model import FakeModel, build, check_params
from scrimp.trace.step import StepCode, huggingface_step, row_sizes

Note = Callable[[str], None]

_SHOWN_TENSORS = 24
_LAYER = re.compile(r"(base_model\.model\.)?(model\.)?(layers\.\d+\.)?")


def trace_memory(
    case: MemoryCase,
    *,
    code: StepCode | None = None,
    config: Any = None,
    note: Note = lambda _: None,
) -> TracedMemory:
    """Memory of one step of `code` (by default the Hugging Face Trainer's) on the case's model.

    `config` is the model's own transformers configuration; by default one is made from the case's shape. `note` is told
    what is being traced.

    Raises:
        SpecError: sharding, or a part of the case that cannot be traced; each says what can.
        MissingPackageError: PEFT is not installed.
    """
    _check(case)
    began_s = time.monotonic()
    code = code or huggingface_step(case)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    note(f"building {case.shape.name} without weights")
    model = build(case, config or config_of_shape(case.shape), mode, attention=code.attention)
    if config is None:
        check_params(model, case)
    meter = Meter(vocab=case.shape.vocab, workspaces=_WORKSPACES if code.on_card else {})
    with _quiet(), mode, meter:
        if code.on_card:
            as_on_card(model.module)
        code.checkpoint(model)
        _register(model, meter)
        kept = _step(model, code, meter, note)
    phases = _phases(meter, case)
    peak = max(phases, key=lambda phase: phase.total_bytes)
    return TracedMemory(
        code=code.name,
        phases=phases,
        tensors=meter.alive(at_peak_of=peak.name)[:_SHOWN_TENSORS],
        kept_bytes=float(kept),
        params=model.params,
        trainable_params=model.trainable_params,
        trace_s=time.monotonic() - began_s,
    )


def trace_kept(case: MemoryCase) -> tuple[TracedTensor, ...]:
    """What the decoder's forward alone leaves for backward, in groups of equal tensors, the largest first.

    The oracle of the formula's count per layer: the difference between two depths is what a layer keeps.
    """
    _check(case)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    code = huggingface_step(case)
    model = build(case, config_of_shape(case.shape), mode, attention=code.attention)
    meter = Meter(vocab=case.shape.vocab)
    with _quiet(), mode, meter, model.compute():
        as_on_card(model.module)
        code.checkpoint(model)
        _register(model, meter)
        model.module.train()
        with meter.phase("forward"):
            tokens_BL = torch.zeros(row_sizes(case), dtype=torch.int64)
            hidden_BLH = model.base.get_decoder()(input_ids=tokens_BL, use_cache=False).last_hidden_state
        kept = meter.alive()
        del hidden_BLH
    return tuple(each for each in kept if each.term == "activations")


def _check(case: MemoryCase) -> None:
    if case.gpus > 1 and case.recipe.sharding != "none":
        raise SpecError(
            what=f"a step that {case.recipe.sharding} spreads over {case.gpus} cards is not traced",
            expected="one card: the trace runs one process and sees no exchange between cards",
            next_step="market.max_gpus=1, or plan without --exact",
        )


def _step(model: FakeModel, code: StepCode, meter: Meter, note: Note) -> int:
    """Everything that a run does, once. Returns the bytes that forward has left for backward."""
    freed = model.case.stack.optimizer_step == "in_backward"
    _label_gradients(model, meter, freed=freed)
    model.module.train()
    note("tracing the optimizer")
    with meter.phase("before", term="optimizer states"):
        optimizer = code.optimizer(model)
        _put_gradients(model, meter)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if model.case.stack.accumulates and not freed:
            _put_gradients(model, meter)
    note("tracing forward and backward")
    kept = _forward_backward(model, code, meter)
    with meter.phase("optimizer_step", term="copies of the update"):
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    note("tracing an evaluation")
    model.module.eval()
    with meter.phase("evaluation"), torch.no_grad():
        code.loss(model)
    with meter.phase("save"):
        pass
    return kept


def _forward_backward(model: FakeModel, code: StepCode, meter: Meter) -> int:
    before = meter.live_bytes
    with meter.phase("forward_backward"):
        loss = code.loss(model)
    kept = meter.live_bytes - before
    with meter.phase("forward_backward", term="one layer's backward"):
        loss.backward()
    del loss
    return kept


def _register(model: FakeModel, meter: Meter) -> None:
    """Count weights and adapters under their names; name the modules in what follows."""
    with meter.phase("load"):
        for path, each in model.module.named_parameters():
            adapter = each.requires_grad and model.case.tuning.frozen_base
            meter.register(each, "adapters" if adapter else "weights", _short(path))
        for path, each in model.module.named_buffers():
            meter.register(each, "weights", _short(path))
    meter.watch(model.module, _short)


def _short(path: str) -> str:
    """A module's path without the number of its layer, so that equal tensors of all layers are one group."""
    return _LAYER.sub("", path, count=1)


def _label_gradients(model: FakeModel, meter: Meter, *, freed: bool) -> None:
    def made(parameter: torch.nn.Parameter) -> None:
        assert parameter.grad is not None
        meter.register(parameter.grad, "gradients", "gradient")
        if freed:
            parameter.grad = None

    for each in model.trainable.values():
        each.register_post_accumulate_grad_hook(made)


def _put_gradients(model: FakeModel, meter: Meter) -> None:
    """The gradients of an earlier micro-batch."""
    for each in model.trainable.values():
        each.grad = torch.zeros_like(each)
        meter.register(each.grad, "gradients", "gradient")


def _phases(meter: Meter, case: MemoryCase) -> tuple[MemoryPhase, ...]:
    load = meter.phase_of("load")
    # Files hold 16-bit tensors: what is stored otherwise is converted one tensor at a time.
    largest = max(case.largest_linear_params, case.shape.embedding_params)
    if case.recipe.weight_dtype not in {"bf16", "fp16"}:
        transit = MemoryTerm(name="tensor being converted", size_bytes=2.0 * largest)
        load = MemoryPhase(name="load", terms=(*load.terms, transit))
    rest = (meter.phase_of("forward_backward"), meter.phase_of("optimizer_step"))
    return (load, *rest, meter.phase_of("evaluation"), meter.phase_of("save"))


def _varlen_workspace(grad: torch.Tensor, query: torch.Tensor, key: torch.Tensor, *_: object) -> int:
    return backward_workspace_bytes(query.shape[1], key.shape[1], query.numel(), query.element_size())


# What kernels take within one call, by the name of the operation.
_WORKSPACES: dict[str, Callable[..., int]] = {"torch_attn::_varlen_attn_backward": _varlen_workspace}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Storages must go when their last reader goes, so cycles are swept first; warnings about fake values are noise."""
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
