"""Relief: what would lower the memory of one recipe on one kind of machine, each change forecast anew.

Every change is one that can be typed after the spec's path. How much it saves follows from the whole forecast and not
from one term: with one phase lowered, the next one may be the peak.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from scrimp import methods
from scrimp.core.forecast import MemoryForecast
from scrimp.core.job import MethodChoice
from scrimp.core.plan import Relief
from scrimp.core.recipe import Checkpointing, Optimizer, Recipe
from scrimp.core.units import format_bytes, format_count_of
from scrimp.planner.question import Forecaster, Machine, Workload

# Less than this of the need is not worth a line.
_WORTH_RATIO = 0.02
_MOST = 4
# Kinds of checkpointing by what they keep, the most first.
_CHECKPOINTING: tuple[Checkpointing, ...] = ("none", "selective", "full")
_OPTIMIZERS: tuple[Optimizer, ...] = ("adamw_8bit", "paged_adamw_8bit")
# Shorter rows are worth a thought when few are longer, and when that shortens the longest clearly.
_ROWS_KEPT_RATIO = 0.95
_SHORTER_RATIO = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """One change of a recipe: what to type, the recipe then, and what else the change does."""

    change: str
    recipe: Recipe
    note: str = ""


def find_relief(
    workload: Workload, recipe: Recipe, machine: Machine, memory: MemoryForecast, forecaster: Forecaster
) -> tuple[Relief, ...]:
    """The changes that save most, at most four; those alone that save something worth it."""
    need = memory.need_bytes.value
    rate = forecaster.tokens_per_s(recipe, machine)
    found: list[Relief] = []
    for lever in levers(workload, recipe, machine):
        then = forecaster.memory(lever.recipe, machine).need_bytes.value
        if need - then < _WORTH_RATIO * need:
            continue
        found.append(
            Relief(
                change=lever.change,
                note=lever.note,
                saved_bytes=need - then,
                need_bytes=then,
                time_ratio=rate / forecaster.tokens_per_s(lever.recipe, machine),
                fits=then <= machine.device.memory_bytes,
            )
        )
    found.sort(key=lambda item: (-item.saved_bytes, item.change))
    return tuple(found[:_MOST])


def levers(workload: Workload, recipe: Recipe, machine: Machine) -> Iterator[Lever]:
    """Every single change that may lower what this recipe needs on this machine."""
    for kind in _CHECKPOINTING[_CHECKPOINTING.index(recipe.checkpointing) + 1 :]:
        yield Lever(change=f"training.checkpointing={kind}", recipe=replace(recipe, checkpointing=kind))
    yield from _optimizers(recipe, machine)
    yield from _smaller_micro_batch(workload, recipe)
    yield from _method_options(recipe)
    if machine.device.kind == "gpu" and workload.spec.method.name != "auto":
        yield from _packed_base(recipe)
    yield from _shorter_rows(workload, recipe)


def relief_words(relief: Relief) -> str:
    """`training.checkpointing=selective saves 9.00 GiB and costs 8% more time`."""
    words = f"{relief.change} saves {format_bytes(relief.saved_bytes)}"
    percent = round(100 * (relief.time_ratio - 1))
    if percent > 0:
        words += f" and costs {percent}% more time"
    elif percent < 0:
        words += f" and {-percent}% of the time"
    return f"{words} ({relief.note})" if relief.note else words


def best_relief_words(reliefs: tuple[Relief, ...]) -> str:
    """For what does not fit: the quickest change that makes it fit, else the one that saves most and is not enough."""
    if not reliefs:
        return ""
    enough = [item for item in reliefs if item.fits]
    if enough:
        # What has no side effect first.
        return relief_words(min(enough, key=lambda item: (bool(item.note), item.time_ratio))) + ": enough"
    return relief_words(reliefs[0]) + ": not enough alone"


def shorter_rows(workload: Workload) -> tuple[int, int] | None:
    """A limit for the length of rows that few exceed and that is clearly shorter, with how many rows exceed it."""
    histogram = workload.profile.length_histogram
    longest = workload.steps.longest_row_tokens
    rows = sum(count for _, count in histogram)
    kept = 0
    for length, count in histogram:
        kept += count
        if kept >= _ROWS_KEPT_RATIO * rows:
            return (length, rows - kept) if 0 < length <= _SHORTER_RATIO * longest and kept < rows else None
    return None


def shorter_rows_words(workload: Workload, beyond: int) -> str:
    """`12 rows are left out`, or cut, as the spec treats rows that are too long."""
    cut = workload.spec.data.overlong.startswith("truncate")
    return f"{format_count_of(beyond, 'row')} {'is' if beyond == 1 else 'are'} {'cut' if cut else 'left out'}"


def shorter_rows_change(workload: Workload, length_tokens: int) -> str:
    """What to type; rows that are too long must not be an error then."""
    dropping = " data.overlong=drop" if workload.spec.data.overlong == "error" else ""
    return f"data.max_length_tokens={length_tokens}{dropping}"


def _optimizers(recipe: Recipe, machine: Machine) -> Iterator[Lever]:
    if recipe.optimizer != "adamw":
        return
    for name in _OPTIMIZERS:
        if not name.startswith("paged") or can_page(machine):
            note = "paging not timed" if name.startswith("paged") else ""
            yield Lever(change=f"training.optimizer={name}", recipe=replace(recipe, optimizer=name), note=note)


def can_page(machine: Machine) -> bool:
    """Whether optimizer states can move to host memory and back by themselves: CUDA's unified memory."""
    return machine.device.kind == "gpu" and machine.device.vendor == "NVIDIA"


def _smaller_micro_batch(workload: Workload, recipe: Recipe) -> Iterator[Lever]:
    longest = min(workload.steps.longest_row_tokens, recipe.max_length_tokens)
    smaller = max(longest, recipe.micro_batch_tokens // 2)
    if smaller < recipe.micro_batch_tokens:
        yield Lever(change=f"training.micro_batch_tokens={smaller}", recipe=replace(recipe, micro_batch_tokens=smaller))


def _method_options(recipe: Recipe) -> Iterator[Lever]:
    """Without dropout, and the cheaper settings that the method itself names, such as smaller ranks."""
    known = recipe.method.options
    if known.get("dropout"):
        yield _with_options(recipe, {"dropout": 0.0})
    method = methods.get(recipe.method.name)
    for _, options in method.variants(methods.options_for(recipe.method.name, known)):
        values = {item.name: getattr(options, item.name) for item in fields(options)}
        yield _with_options(recipe, {key: value for key, value in values.items() if value != known.get(key)})


def _with_options(recipe: Recipe, changed: dict[str, Any]) -> Lever:
    method = replace(recipe.method, options={**recipe.method.options, **changed})
    typed = " ".join(f"method.{key}={value:g}" for key, value in changed.items())
    return Lever(change=typed, recipe=replace(recipe, method=method))


def _packed_base(recipe: Recipe) -> Iterator[Lever]:
    """A method that does the same on a base of packed 4-bit weights."""
    method = methods.get(recipe.method.name)
    if not method.frozen_base or recipe.weight_dtype == "nf4":
        return
    for name in methods.names():
        other = methods.get(name)
        if other.frozen_base and set(other.weight_dtypes) == {"nf4"} and other.options_type == method.options_type:
            choice = MethodChoice(name=name, options=recipe.method.options)
            yield Lever(change=f"method.name={name}", recipe=replace(recipe, method=choice, weight_dtype="nf4"))


def _shorter_rows(workload: Workload, recipe: Recipe) -> Iterator[Lever]:
    """Where one row fills the micro-batch, fewer tokens in the longest row."""
    found = shorter_rows(workload)
    if found is None or recipe.micro_batch_tokens > workload.steps.longest_row_tokens:
        return
    length, beyond = found
    yield Lever(
        change=shorter_rows_change(workload, length),
        recipe=replace(recipe, max_length_tokens=length, micro_batch_tokens=length),
        note=shorter_rows_words(workload, beyond),
    )
