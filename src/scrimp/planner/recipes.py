"""Recipes: for one method on one kind of machine, the settings that fit and train fastest.

What the user set stays as set. The rest is searched: the largest micro-batch that fits (memory never falls as it grows,
so the ladder is bisected), with every kind of checkpointing, for the first weight dtype that fits at all.
"""

import math
from dataclasses import dataclass, fields, replace

from scrimp import methods
from scrimp.core.forecast import MemoryForecast, MemoryPhase, MemoryTerm
from scrimp.core.job import MethodChoice
from scrimp.core.plan import Rejected, RejectionKind, Relief
from scrimp.core.recipe import Checkpointing, ComputeDtype, Recipe, Sharding, WeightDtype
from scrimp.core.units import format_bytes
from scrimp.planner.question import Forecaster, Machine, Workload
from scrimp.planner.relief import can_page

# Powers of two: below 512 tokens a card is mostly idle, by 64k its speed has flattened out.
_RUNGS_TOKENS = tuple(2**power for power in range(9, 17))
# What weights may be stored in under each compute dtype. bf16 has no kernels on cards that compute in fp16.
_STORED: dict[ComputeDtype, tuple[WeightDtype, ...]] = {
    "bf16": ("bf16", "fp32", "nf4", "int8"),
    "fp16": ("fp16", "fp32", "nf4", "int8"),
    "fp32": ("fp32", "nf4", "int8"),
}
_PACKED: set[WeightDtype] = {"nf4", "int8"}
# A kill costs a tenth of the run at most; an adapter is written in a second, so ten saves are cheap.
_CHECKPOINTS = 10
# PyTorch's cuda device covers both; Gaudi needs Optimum-Habana, TPUs need XLA.
_GPU_VENDORS = ("NVIDIA", "AMD")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A recipe on one kind of machine, with what it needs there."""

    machine: Machine
    recipe: Recipe
    memory: MemoryForecast

    @property
    def fits(self) -> bool:
        """Whether the forecast need is within the card."""
        return self.memory.need_bytes.value <= self.machine.device.memory_bytes

    @property
    def comfortable(self) -> bool:
        """Whether even the high end of the interval is."""
        return self.memory.need_bytes.high <= self.machine.device.memory_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfit:
    """Why a method has no recipe on one kind of machine; `closest` is what asks least of a card, when memory lacks."""

    machine: Machine
    method: str
    kind: RejectionKind
    reason: str
    closest: Fit | None = None

    @property
    def excess_ratio(self) -> float:
        """Need over what the card has; 0 when it is not memory that is missing."""
        need = 0.0 if self.closest is None else self.closest.memory.need_bytes.value
        return need / max(1, self.machine.device.memory_bytes)

    def rejected(self, offers: int, relief: tuple[Relief, ...] = ()) -> Rejected:
        """As a class of offers that were left out."""
        subject = f"{self.machine.label}, {self.method}"
        return Rejected(kind=self.kind, subject=subject, reason=self.reason, offers=offers, relief=relief)


def method_choices(choice: MethodChoice) -> tuple[MethodChoice, ...]:
    """The methods to try, each with all its options written out. `auto` tries all that know the options given.

    Raises:
        UnknownNameError, SpecError: no such method, no method with such an option, or an impossible value.
    """
    if choice.name != "auto":
        return (_complete(MethodChoice(name=choice.name, options=choice.options)),)
    given = set(choice.options)
    able = [name for name in methods.names() if given <= _option_names(name)]
    if not able:
        # The method that knows most of the options explains what is wrong with the rest.
        able = [max(methods.names(), key=lambda name: len(_option_names(name) & given))]
    return tuple(_complete(MethodChoice(name=name, options=choice.options)) for name in able)


def search_recipe(workload: Workload, choice: MethodChoice, machine: Machine, forecaster: Forecaster) -> Fit | Unfit:
    """The fastest recipe of one method that fits one kind of machine, or why there is none.

    Drafts are tried in order of preference. One that fits even at the high end of its interval is taken at once; one
    that fits only by its value is kept for when there is nothing better.
    """
    refusal = _refusal(workload, choice, machine)
    if refusal:
        return Unfit(machine=machine, method=choice.name, kind="unsupported", reason=refusal)
    tight: Fit | None = None
    tried: list[Fit] = []
    for draft in _drafts(workload, choice, machine):
        sized = [
            _largest(replace(draft, checkpointing=checkpointing), workload, machine, forecaster)
            for checkpointing in _switches(workload)
        ]
        fits = [fit for fit in sized if fit.comfortable] or [fit for fit in sized if fit.fits]
        if fits:
            best = max(fits, key=lambda fit: forecaster.tokens_per_s(fit.recipe, machine))
            if best.comfortable:
                return best
            tight = tight or best
        tried += sized
    return tight or _too_big(min(tried, key=lambda fit: fit.memory.need_bytes.value))


def compute_dtype(workload: Workload, machine: Machine) -> ComputeDtype:
    """bf16 where the hardware has it, fp16 on GPUs without, fp32 on CPUs without; or what the spec asks for."""
    asked = workload.spec.training.precision
    if asked != "auto":
        return asked
    if machine.device.supports_bf16:
        return "bf16"
    return "fp16" if machine.device.kind == "gpu" else "fp32"


def micro_batch_ladder(workload: Workload, gpus: int) -> tuple[int, ...]:
    """Micro-batch sizes to try, ascending: the longest row, powers of two, at most what one card gets of a step."""
    longest = max(1, min(workload.steps.longest_row_tokens, workload.spec.data.max_length_tokens))
    asked = workload.spec.training.micro_batch_tokens
    if asked is not None:
        return (asked,)
    share = math.ceil(workload.steps.largest_step_tokens / gpus)
    top = max(longest, min(share, _RUNGS_TOKENS[-1]))
    return (longest, *(rung for rung in _RUNGS_TOKENS if longest < rung < top), *((top,) if top > longest else ()))


def _complete(choice: MethodChoice) -> MethodChoice:
    """With every option of the method written out, checked, in the order of the method's own file."""
    options = methods.options_for(choice.name, choice.options)
    return MethodChoice(name=choice.name, options={item.name: getattr(options, item.name) for item in fields(options)})


def _option_names(name: str) -> set[str]:
    return {item.name for item in fields(methods.get(name).options_type)}


def _refusal(workload: Workload, choice: MethodChoice, machine: Machine) -> str:
    """Why this method cannot run on this machine at all, whatever its memory; empty when it can."""
    device, training = machine.device, workload.spec.training
    method = methods.get(choice.name)
    compute = compute_dtype(workload, machine)
    if device.kind == "gpu" and device.vendor not in _GPU_VENDORS:
        return f"{device.vendor} {device.architecture} needs a software stack of its own; NVIDIA, AMD and CPUs train"
    if compute == "fp32" and not device.fp32_flops:
        return "its fp32 speed is not established, and the spec asks for it (training.precision)"
    if compute == "bf16" and not device.supports_bf16:
        return "no bf16 in hardware, and the spec asks for it (training.precision)"
    if compute == "fp16" and device.kind == "cpu":
        return "fp16 is for GPUs, and the spec asks for it (training.precision)"
    if device.kind == "cpu" and workload.spec.method.name == "auto" and set(method.weight_dtypes) <= _PACKED:
        # Measured on the bundled model: slower than 16-bit weights, and 0.26 nats of held-out loss to begin with.
        return f"4-bit weights cost speed and quality on a CPU and save only memory; method={choice.name} uses them"
    if training.batch_tokens is None and training.batch_rows < machine.gpus:
        return f"{training.batch_rows} rows a step cannot be split over {machine.gpus} cards (training.batch_rows)"
    if training.optimizer.startswith("paged") and not can_page(machine):
        return f"no unified memory of CUDA for optimizer states, and the spec asks for {training.optimizer}"
    if not _weight_dtypes(choice, compute):
        return f"no way to store weights for {compute}: the method has {', '.join(method.weight_dtypes)}"
    return ""


def _weight_dtypes(choice: MethodChoice, compute: ComputeDtype) -> tuple[WeightDtype, ...]:
    """In the method's order; a frozen base is best kept in the dtype that it is multiplied in."""
    method = methods.get(choice.name)
    usable: list[WeightDtype] = [dtype for dtype in method.weight_dtypes if dtype in _STORED[compute]]
    if method.frozen_base:
        usable.sort(key=lambda dtype: dtype != compute)
    return tuple(usable)


def _shardings(gpus: int) -> tuple[Sharding, ...]:
    """Whole copies on every card where they fit: slicing the model costs traffic."""
    return ("none",) if gpus == 1 else ("ddp", "fsdp")


def _switches(workload: Workload) -> tuple[Checkpointing, ...]:
    """The least checkpointing is tried first, so that it wins a tie."""
    asked = workload.spec.training.checkpointing
    return ("none", "selective", "full") if asked == "auto" else (asked,)


def _drafts(workload: Workload, choice: MethodChoice, machine: Machine) -> list[Recipe]:
    """Recipes in order of preference, micro-batch and checkpointing still to be found."""
    compute = compute_dtype(workload, machine)
    base = _draft(workload, choice, compute)
    return [
        replace(base, weight_dtype=weights, sharding=sharding)
        for weights in _weight_dtypes(choice, compute)
        for sharding in _shardings(machine.gpus)
    ]


def _draft(workload: Workload, choice: MethodChoice, compute: ComputeDtype) -> Recipe:
    """Everything that the spec, the method and the steps decide."""
    spec, training = workload.spec, workload.spec.training
    rate = training.learning_rate
    return Recipe(
        model=spec.model,
        method=choice,
        weight_dtype=_weight_dtypes(choice, compute)[0],
        compute_dtype=compute,
        layout="padded" if training.packing == "off" else "packed",
        loss="selected",
        sharding="none",
        optimizer="adamw" if training.optimizer == "auto" else training.optimizer,
        checkpointing="none",
        max_length_tokens=spec.data.max_length_tokens,
        batch_rows=training.batch_rows,
        batch_tokens=training.batch_tokens,
        micro_batch_tokens=workload.steps.longest_row_tokens,
        epochs=training.epochs,
        max_steps=training.max_steps,
        learning_rate=methods.get(choice.name).learning_rate if rate is None else rate,
        schedule=training.schedule,
        warmup_steps=round(training.warmup_share * workload.steps.steps),
        weight_decay=training.weight_decay,
        clip_norm=training.clip_norm,
        seed=training.seed,
        eval_every_steps=training.eval_every_steps,
        checkpoint_every_steps=training.checkpoint_every_steps or math.ceil(workload.steps.steps / _CHECKPOINTS),
        keep_checkpoints=training.keep_checkpoints,
    )


def _largest(recipe: Recipe, workload: Workload, machine: Machine, forecaster: Forecaster) -> Fit:
    """The highest rung of the ladder that fits comfortably; where none does, the lowest, for the most room to spare."""
    ladder = micro_batch_ladder(workload, machine.gpus)

    def at(rung: int) -> Fit:
        sized = replace(recipe, micro_batch_tokens=ladder[rung])
        return Fit(machine=machine, recipe=sized, memory=forecaster.memory(sized, machine))

    low, high = 0, len(ladder) - 1
    best = at(high)
    if best.comfortable or high == 0:
        return best
    best = at(low)
    if not best.comfortable:
        return best
    while high - low > 1:
        middle = (low + high) // 2
        tried = at(middle)
        if tried.comfortable:
            low, best = middle, tried
        else:
            high = middle
    return best


def phase_words(phase: MemoryPhase) -> str:
    """`forward and backward`, `optimizer step`."""
    return phase.name.replace("forward_backward", "forward and backward").replace("_", " ")


def largest_terms(phase: MemoryPhase) -> list[MemoryTerm]:
    """The two that say most."""
    return sorted(phase.terms, key=lambda term: -term.size_bytes)[:2]


def _too_big(closest: Fit) -> Unfit:
    """`needs 27.1 GiB of 23.6 GiB even at micro-batch 1,024 tokens (peak in optimizer step: weights 15.0 GiB ...)`."""
    recipe, memory = closest.recipe, closest.memory
    need = memory.need_bytes.value
    phase = memory.peak_phase
    terms = ", ".join(f"{term.name} {format_bytes(term.size_bytes)}" for term in largest_terms(phase))
    ways = [
        f"micro-batch {recipe.micro_batch_tokens:,} tokens",
        f"{recipe.weight_dtype} weights",
        *([f"{recipe.checkpointing} checkpointing"] if recipe.checkpointing != "none" else []),
        *([f"sharded over {closest.machine.gpus} cards"] if recipe.sharding == "fsdp" else []),
    ]
    return Unfit(
        machine=closest.machine,
        method=recipe.method.name,
        kind="memory",
        reason=f"needs {format_bytes(need)} of {format_bytes(closest.machine.device.memory_bytes)} even at "
        f"{', '.join(ways)} (peak in {phase_words(phase)}: {terms})",
        closest=closest,
    )
