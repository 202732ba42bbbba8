"""The trace: exact parameters, phases that behave as memory does, one step that stands for two, and its refusals."""

import gc
import resource
from dataclasses import replace

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from oracle_cases import HUGGING_FACE, case_of
from torch._subclasses.fake_tensor import FakeTensorMode

from scrimp.core.errors import SpecError
from scrimp.estimate.memory.phases import memory_phases
from scrimp.estimate.stack import TRAINER, TRAINER_ON_CPU, Stack
from scrimp.models.table import known_shapes
from scrimp.trace.config import config_of_shape
from scrimp.trace.meter import Meter
from scrimp.trace.model import build
from scrimp.trace.run import trace_memory
from scrimp.trace.step import huggingface_step, row_sizes
from scrimp.workflows.trace import trainer_step

pytestmark = pytest.mark.train

SMOLLM = replace(known_shapes()["HuggingFaceTB/SmolLM2-135M"], layers=3)


def _case(method="lora", *, stack=HUGGING_FACE, tokens=2048, **changes):
    case = case_of(SMOLLM, method, stack=stack, **changes)
    return replace(case, recipe=replace(case.recipe, micro_batch_tokens=tokens), longest_row_tokens=512)


def _phase(traced, name):
    return next(phase for phase in traced.phases if phase.name == name)


def _terms(traced, name):
    return {term.name: term.size_bytes for term in _phase(traced, name).terms}


@pytest.mark.parametrize("method", ["full", "lora", "lora/qv", "qlora"])
def test_parameters_are_counted_exactly_and_static_memory_follows(method):
    case = _case(method)
    traced = trace_memory(case)
    assert traced.trainable_params == case.tuning.trainable_params
    assert traced.params == SMOLLM.params + (case.tuning.trainable_params if case.tuning.frozen_base else 0)
    # Blocks of 512 bytes, and scales of 4-bit weights in whole numbers.
    assert _terms(traced, "save")["weights"] == pytest.approx(case.weight_bytes, rel=2e-3)
    # The count of steps is a block for each tensor.
    assert _terms(traced, "save")["optimizer states"] == pytest.approx(case.state_bytes, rel=0.02)


def test_more_tokens_need_more_and_checkpointing_less():
    small, large = (trace_memory(_case(tokens=tokens, loss="fused")) for tokens in (1024, 2048))
    assert _phase(small, "forward_backward").total_bytes < _phase(large, "forward_backward").total_bytes
    checkpointed = trace_memory(_case(checkpointing="full", loss="fused"))
    assert checkpointed.kept_bytes < large.kept_bytes / 2
    assert checkpointed.peak_bytes < large.peak_bytes


def test_the_peak_is_a_phase_and_its_terms_and_tensors_say_what_is_in_it():
    traced = trace_memory(_case())
    assert traced.peak_bytes == max(phase.total_bytes for phase in traced.phases)
    assert [phase.name for phase in traced.phases] == [
        "load", "forward_backward", "optimizer_step", "evaluation", "save"
    ]  # fmt: skip
    assert traced.peak_phase.name == "forward_backward"
    sizes = [tensor.size_bytes for tensor in traced.tensors]
    assert sizes == sorted(sizes, reverse=True)
    gates = next(tensor for tensor in traced.tensors if tensor.origin.startswith("mlp.gate_proj add"))
    assert gates.copies == SMOLLM.layers
    assert gates.size_bytes == SMOLLM.layers * 2048 * SMOLLM.intermediate * 2


def _two_steps(case) -> dict[str, int]:
    """Peaks by phase of the second of two real steps, nothing prefilled: what `trace_memory` stands for."""
    mode, code = FakeTensorMode(allow_non_fake_inputs=True), huggingface_step(case)
    model = build(case, config_of_shape(case.shape), mode, attention=code.attention)
    meter = Meter(vocab=case.shape.vocab)
    gc.collect()
    with mode, meter:
        code.checkpoint(model)
        for each in (*model.module.parameters(), *model.module.buffers()):
            meter.register(each, "weights", "")
        optimizer = code.optimizer(model)
        model.module.train()
        for step in ("first", "second"):
            for _ in range(2 if case.stack.accumulates else 1):
                with meter.phase(f"{step} forward_backward"):
                    code.loss(model).backward()
            with meter.phase(f"{step} optimizer_step"):
                optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    return {
        name: meter.phase_of(f"second {name}").total_bytes
        for name in ("forward_backward", "optimizer_step")
    }  # fmt: skip


@pytest.mark.parametrize("step", ["foreach", "fused"])
@pytest.mark.parametrize("accumulates", [False, True])
@pytest.mark.parametrize("method", ["full", "lora"])
def test_one_step_stands_for_two(method, accumulates, step):
    case = _case(method, stack=Stack(name="HF", optimizer_step=step, accumulates=accumulates), tokens=512)
    traced = trace_memory(case)
    for name, size_bytes in _two_steps(case).items():
        assert _phase(traced, name).total_bytes == pytest.approx(size_bytes, rel=1e-4)


@pytest.mark.parametrize(
    ("full_loss_bytes", "tolerance"), [(12.0, 0.02), (14.0, 0.02), (8.0, 0.3)], ids=["12", "14", "8"]
)
def test_the_loss_code_of_a_version_takes_what_it_is_named_for(full_loss_bytes, tolerance):
    stack = replace(HUGGING_FACE, full_loss_bytes=full_loss_bytes)
    case = _case(stack=stack, checkpointing="full", tokens=4096)
    terms = _terms(trace_memory(case), "forward_backward")
    assert terms["logits and loss"] == pytest.approx(full_loss_bytes * 4096 * SMOLLM.vocab, rel=tolerance)


def test_a_fused_loss_never_holds_all_logits():
    terms = _terms(trace_memory(_case(loss="fused", checkpointing="full", tokens=4096)), "forward_backward")
    assert terms.get("logits and loss", 0) < 4096 * SMOLLM.vocab


def test_foreach_holds_one_more_copy_than_fused_and_8_bit_states_are_a_quarter():
    copies = [
        _terms(trace_memory(_case("full", stack=replace(HUGGING_FACE, optimizer_step=step))), "optimizer_step")
        for step in ("foreach", "fused")
    ]
    assert copies[0]["copies of the update"] == pytest.approx(4 * SMOLLM.params, rel=0.01)
    assert copies[1].get("copies of the update", 0) < 4096
    packed = _terms(trace_memory(_case("full", optimizer="adamw_8bit")), "save")
    assert packed["optimizer states"] == pytest.approx(2 * SMOLLM.params * (1 + 4 / 256), rel=0.01)
    assert "optimizer states" not in _terms(trace_memory(_case("full", optimizer="paged_adamw")), "save")


def test_gradients_freed_inside_backward_never_exist_all_at_once():
    inside = trace_memory(_case("full", stack=replace(HUGGING_FACE, optimizer_step="in_backward")))
    assert _terms(inside, "forward_backward").get("gradients", 0) < 2 * SMOLLM.params


@pytest.mark.parametrize("stack", [TRAINER, TRAINER_ON_CPU], ids=["card", "cpu"])
@pytest.mark.parametrize("checkpointing", ["none", "selective", "full"])
@pytest.mark.parametrize("method", ["lora", "full"])
def test_the_formula_forecasts_our_own_step_within_5_percent(method, checkpointing, stack):
    case = _case(method, stack=stack, checkpointing=checkpointing, loss="selected", tokens=4096)
    traced = trace_memory(case, code=trainer_step(case, on_card=stack is TRAINER))
    counted = max(phase.total_bytes for phase in memory_phases(case))
    assert counted == pytest.approx(traced.peak_bytes, rel=0.05)


@pytest.mark.parametrize("checkpointing", ["none", "full"])
@pytest.mark.parametrize("method", ["full", "full/bf16", "lora", "qlora"])
def test_the_formula_forecasts_the_trainers_of_others_within_5_percent(method, checkpointing):
    name, _, bf16 = method.partition("/")
    changes = {"weight_dtype": "bf16"} if bf16 else {}
    case = _case(name, checkpointing=checkpointing, tokens=4096, **changes)
    counted = max(phase.total_bytes for phase in memory_phases(case))
    assert counted == pytest.approx(trace_memory(case).peak_bytes, rel=0.05)


def test_rows_fill_the_micro_batch():
    assert row_sizes(_case(tokens=2048)) == (4, 512)
    assert row_sizes(_case(tokens=2000)) == (1, 2000)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (replace(_case("full", sharding="fsdp"), gpus=4), "4 cards"),
        (_case(weight_dtype="int8"), "int8"),
        (_case(checkpointing="selective"), "selective"),
        (_case(stack=Stack(name="litgpt", fused_qkv=True)), "litgpt"),
        (_case(stack=Stack(name="odd", full_loss_bytes=11.0)), "11 bytes"),
        (replace(_case(), shape=replace(SMOLLM, family="mpt")), "mpt"),
    ],
)
def test_what_cannot_be_traced_says_so_in_three_parts(case, words):
    with pytest.raises(SpecError) as caught:
        trace_memory(case)
    assert words in caught.value.what
    assert caught.value.expected
    assert caught.value.next_step


def test_a_large_model_takes_no_real_memory():
    """Two layers of 70B width: 9 GB of weights, of which this process must not hold any."""
    shape = replace(known_shapes()["meta-llama/Llama-3.3-70B-Instruct"], layers=2)
    case = case_of(shape, "lora/qv", checkpointing="full", loss="fused")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    traced = trace_memory(case)
    assert traced.peak_bytes > 7e9
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 5e8
