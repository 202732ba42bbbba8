"""Trace: the memory of one step of our own trainer, run without weights and without a GPU.

The trace room knows models, methods and counting; what a step of this trainer does is the train room's own code, handed
over here as a program.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrimp._lazy import need
from scrimp.core.errors import SpecError
from scrimp.core.forecast import MemoryForecast
from scrimp.core.plan import Candidate, Plan, PlanSet
from scrimp.core.trace import TracedMemory
from scrimp.data.row import EncodedRow
from scrimp.estimate.memory.case import MemoryCase
from scrimp.estimate.memory.forecast import card_forecast, trainer_case
from scrimp.estimate.memory.process import process_forecast
from scrimp.models.resolve import resolve
from scrimp.planner.question import machine_of
from scrimp.workflows.plan import Planned, PlanRequest, is_plan_file, plan_file, plan_from, read_plan, write_plan
from scrimp.workflows.world import World

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from scrimp.trace.model import FakeModel
    from scrimp.trace.step import StepCode
    from scrimp.train.forward import Forward
    from scrimp.train.load import LoadedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceAnswer:
    """A candidate's memory by the formula and by the trace; `forecast` is the trace's in the formula's form."""

    formula: MemoryForecast
    traced: TracedMemory
    forecast: MemoryForecast

    @property
    def difference_ratio(self) -> float:
        """formula / trace - 1, of the peaks."""
        return self.formula.peak_bytes.value / self.forecast.peak_bytes.value - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedPlan:
    """A plan whose chosen candidate carries the traced memory in the place of the formula's."""

    planned: Planned
    answer: TraceAnswer


def trace_spec(request: PlanRequest, *, world: World) -> TracedPlan:
    """Plan the job of a spec and trace the step of the picked plan. With `output` the traced plan is written.

    Raises:
        MissingPackageError: torch, transformers or PEFT is not installed.
        SpecError: the picked plan cannot be traced (several cards that share a model; weights in int8).
        ScrimpError: whatever planning raises.
    """
    _need_packages()
    planned = plan_file(replace(request, output=None), world=world)
    answer = trace_candidate(planned.plans, planned.chosen, world=world)
    chosen = replace(planned.chosen, memory=answer.forecast)
    written = request.output
    if written is not None:
        write_plan(plan_from(planned.plans, chosen, world=world), written)
    return TracedPlan(planned=replace(planned, request=request, chosen=chosen, written=written), answer=answer)


def trace_target(target: Path, *, overrides: tuple[str, ...] = (), world: World) -> TraceAnswer:
    """Trace the best plan of a spec, or the plan of a plan file.

    Raises:
        SpecError: overrides beside a plan file; see also `trace_spec`.
        ScrimpError: whatever planning raises.
    """
    _need_packages()
    path = world.cwd / target
    if not is_plan_file(path):
        return trace_spec(PlanRequest(spec=str(target), overrides=overrides), world=world).answer
    if overrides:
        raise SpecError(
            what=f"{target} is a plan, whose values are settled: {' '.join(overrides)} would change them",
            expected="a plan alone, or a spec with KEY=VALUE",
            next_step=f"edit {target}, or trace the spec it was made from",
        )
    plan = read_plan(path)
    return trace_candidate(plan, plan.chosen, world=world)


def trace_candidate(plans: Plan | PlanSet, chosen: Candidate, *, world: World) -> TraceAnswer:
    """Trace one candidate of a plan; `world.note` is told what is going on.

    Raises:
        MissingPackageError, SpecError: see `trace_spec`.
    """
    _need_packages()
    from scrimp.trace.config import config_of_folder
    from scrimp.trace.run import trace_memory

    case = _case_of(plans, chosen)
    on_card = chosen.device.kind != "cpu"
    source = resolve(plans.spec.model, env=world.env)
    folder = Path(source.folder) if source.folder else None
    config = config_of_folder(folder) if folder and (folder / "config.json").is_file() else None
    traced = trace_memory(case, code=trainer_step(case, on_card=on_card), config=config, note=world.note)
    basis = f"traced: {traced.code}"
    forecast = (
        card_forecast(case, phases=traced.phases, basis=basis)
        if on_card
        else process_forecast(
            case,
            device_class=chosen.device.device_class,
            steps=chosen.time.steps,
            phases=traced.phases,
            basis=f"{basis}, plus interpreter and heap slack",
        )
    )
    return TraceAnswer(formula=chosen.memory, traced=traced, forecast=forecast)


def trainer_step(case: MemoryCase, *, on_card: bool) -> "StepCode":
    """Our trainer's step as a program for the trace: rows end to end, loss in pieces, its own checkpointing.

    Raises:
        MissingPackageError: torch or transformers is not installed.
    """
    _need_packages()
    from scrimp.trace.step import StepCode
    from scrimp.train.attention import register_attention
    from scrimp.train.recompute import checkpoint_activations

    register_attention()
    attention = _attention_name(case, on_card=on_card)

    def loss(model: "FakeModel") -> Any:
        forward = _forward_of(model, case, attention)
        return forward.loss(forward.lay_out(_rows(case)))

    def checkpoint(model: "FakeModel") -> None:
        checkpoint_activations(model.base, case.recipe.checkpointing)

    return StepCode(
        name=f"scrimp's own step, {'as on a card' if on_card else 'on this CPU'}",
        attention=attention,
        on_card=on_card,
        checkpoint=checkpoint,
        loss=loss,
        optimizer=lambda model: _optimizer_of(model, case, on_card=on_card),
    )


def _case_of(plans: Plan | PlanSet, candidate: Candidate) -> MemoryCase:
    """The case that the planner's forecast was made of."""
    machine = machine_of(candidate)
    return trainer_case(
        plans.model_shape,
        candidate.recipe,
        candidate.device,
        gpus=machine.gpus if candidate.recipe.sharding != "none" else 1,
        longest_row_tokens=plans.steps.longest_row_tokens,
        trained_share=plans.profile.trained_share,
    )


def _attention_name(case: MemoryCase, *, on_card: bool) -> str:
    """What the trainer would use: documents in one call on a card, one by one on a CPU.

    Padded rows go through the model's own attention, and without torch's call for ragged rows (2.10) a card's kernel
    has to be stood in for: both keep the same.
    """
    from scrimp.trace import attention as stand_in
    from scrimp.train.attention import BY_DOCUMENT, VARLEN

    stand_in.register_attention()
    if case.recipe.layout == "padded":
        return stand_in.GROUPED if on_card else stand_in.WRITTEN_OUT
    if not on_card:
        return BY_DOCUMENT
    try:
        need("torch.nn.attention.varlen", extra="train", why="to lay rows end to end on a card")
    except ImportError:
        return stand_in.GROUPED
    return VARLEN


def _forward_of(model: "FakeModel", case: MemoryCase, attention: str) -> "Forward":
    from scrimp.train.forward import Forward
    from scrimp.train.head import find_head

    return Forward(
        loaded=_loaded(model),
        layout=case.recipe.layout,
        attention=attention,
        head=None if case.recipe.loss == "full" else find_head(model.base),
        pad_id=0,
    )


def _loaded(model: "FakeModel") -> "LoadedModel":
    import torch

    from scrimp.train.hardware import TORCH_DTYPES
    from scrimp.train.load import LoadedModel

    return LoadedModel(
        module=model.module,
        base=model.base,
        trainable=model.trainable,
        device=torch.device("cpu"),
        compute_dtype=TORCH_DTYPES[model.case.recipe.compute_dtype],
    )


def _optimizer_of(model: "FakeModel", case: MemoryCase, *, on_card: bool) -> "Optimizer":
    """The trainer's own; those of bitsandbytes, which hold no fake tensors, by what they keep."""
    from scrimp.trace.optimizer import optimizer_of_case
    from scrimp.train.optimizer import build_optimizer

    if case.recipe.optimizer not in {"adamw", "sgd"}:
        return optimizer_of_case(model)
    optimizer = build_optimizer(_loaded(model), case.recipe)
    if case.recipe.optimizer == "sgd" and on_card:
        # What torch chooses by itself on a card.
        for group in optimizer.param_groups:
            group["foreach"] = True
    return optimizer


def _rows(case: MemoryCase) -> list[EncodedRow]:
    """A fullest micro-batch: rows of the longest length, the rest one shorter row; labels at the end of each."""
    whole, rest = divmod(case.tokens, case.longest_row_tokens)
    lengths = [case.longest_row_tokens] * whole + ([rest] if rest > 1 else [])
    return [_row(number, length, case.trained_share) for number, length in enumerate(lengths)]


def _row(number: int, length: int, trained_share: float) -> EncodedRow:
    from array import array

    trained = min(length - 1, round(length * trained_share))
    return EncodedRow(
        number=number,
        tokens=array("i", bytes(4 * length)),
        labels_mask=bytes(length - trained) + b"\x01" * trained,
    )


def _need_packages() -> None:
    for package in ("torch", "transformers", "peft"):
        need(package, extra="train", why="to trace a training step")
