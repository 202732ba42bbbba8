"""Remedies: when no plan is possible, the changes that would make one possible, each with the price of its plan.

A remedy is proven: the changed job was searched, and money and time are those of its best plan.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from decimal import ROUND_UP, Decimal
from textwrap import wrap
from typing import Any

from scrimp import methods
from scrimp.core.errors import NoPlanError
from scrimp.core.job import JobSpec, LimitsSpec, MarketSpec, MethodChoice
from scrimp.core.plan import Candidate, PlanSet, Rejected, Remedy
from scrimp.core.recipe import Optimizer
from scrimp.core.units import HOUR_S, MINUTE_S, format_duration, format_usd
from scrimp.planner.limits import judge
from scrimp.planner.order import cost_usd, duration_s, in_order, is_tight, tie_break
from scrimp.planner.question import Forecaster, MarketFacts, Workload
from scrimp.planner.recipes import method_choices
from scrimp.planner.relief import best_relief_words, shorter_rows, shorter_rows_words
from scrimp.planner.search import search

_MOST_REMEDIES = 6
_MOST_REASONS = 6
_MORE_CARDS = (8, 16)
_CENT = Decimal("0.01")
_WIDTH = 80
_OPTIMIZERS: tuple[tuple[Optimizer, str], ...] = (
    ("adamw_8bit", "with optimizer states in 8 bit"),
    ("paged_adamw_8bit", "with 8-bit optimizer states that can move to host memory"),
)
# Filters of the market by their neutral value, in words.
_WITHOUT_FILTER = (
    ("gpus", "all GPUs"),
    ("providers", "all providers"),
    ("regions", "all regions"),
    ("tiers", "all kinds of provider"),
    ("max_price_usd_per_hour", "machines at any price"),
    ("max_price_age_s", "prices of any age"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of a spec, in words, and the changed spec."""

    words: str
    spec: JobSpec


def find_remedies(
    workload: Workload, facts: MarketFacts, forecaster: Forecaster, beyond: Sequence[Candidate]
) -> tuple[Remedy, ...]:
    """What would help, the cheapest plan first. `beyond` are the candidates that fit but break budget or deadline."""
    spec = workload.spec
    proven: list[Remedy] = []

    def prove(changes: Iterable[Change]) -> None:
        for change in changes:
            found = search(replace(workload, spec=change.spec), facts, forecaster)
            remedy = _proven(change, spec, found.candidates, may_raise_limits=not beyond)
            proven.extend([remedy] if remedy else [])

    if beyond:
        prove([*_wider_market(spec), *_other_methods(spec)])
    else:
        prove([*_smaller(spec), *_other_methods(spec), *_freer_training(spec), *_wider_market(spec)])
        prove([*_smaller_states(spec), *_shorter_rows(workload)])
    if not beyond and not proven:
        prove([_everything(spec)])
    proven.sort(key=lambda remedy: (remedy.cost_usd or 0, remedy.duration_s or 0, remedy.change))
    return (*_higher_limits(spec, beyond), *proven)[:_MOST_REMEDIES]


def no_plan_error(plans: PlanSet) -> NoPlanError:
    """Why there is no plan, and each remedy with its price, as an error that the command line can show."""
    limits = plans.spec.limits
    broken = [item for item in plans.rejected if item.kind in ("over_budget", "past_deadline")]
    closest = broken or [item for item in plans.rejected if item.kind != "dominated"]
    wanted = [
        *([f"at most {format_usd(limits.budget_usd)}"] if limits.budget_usd is not None else []),
        *([f"at most {format_duration(limits.deadline_s)}"] if limits.deadline_s is not None else []),
    ]
    expected = " and ".join(wanted) if broken else "a machine among those that the spec allows that holds the job"
    why = "what fits breaks the limits" if broken else "nothing fits"
    lines = [line for item in _one_of_each(closest)[:_MOST_REASONS] for line in _rejected_lines(item)]
    offers = "one offer" if plans.considered_offers == 1 else f"{plans.considered_offers:,} offers"
    head = f"no plan for {plans.model_shape.name} among {offers}: {why}"
    return NoPlanError(
        what="\n  ".join([head, *lines]),
        expected=expected,
        next_step="\n  ".join(
            ["one of these", *("\n    ".join(_wrapped(remedy_words(remedy))) for remedy in plans.remedies)]
        )
        if plans.remedies
        else "a smaller model: nothing in the catalogue holds this one with the methods there are",
    )


def _rejected_lines(item: Rejected) -> list[str]:
    """What was rejected and why, and below it what would lower its memory; no wider than a terminal."""
    words = [f"{item.subject} ({item.offers}): {item.reason}", *filter(None, [best_relief_words(item.relief)])]
    first, *others = [line for text in words for line in _wrapped(text)]
    return [first, *(f"  {line}" for line in others)]


def _wrapped(text: str) -> list[str]:
    """Lines that stay within a terminal behind four spaces; what is to be typed is not broken inside a word."""
    return wrap(text, _WIDTH - 4, break_long_words=False, break_on_hyphens=False)


def remedy_words(remedy: Remedy) -> str:
    """`$0.41 in 2.10 h  qlora instead of lora: method.name=qlora`."""
    cost = "price unknown" if remedy.cost_usd is None else format_usd(remedy.cost_usd)
    time = "" if remedy.duration_s is None else f" in {format_duration(remedy.duration_s)}"
    return f"{cost}{time}  {remedy.change}"


def overrides(old: JobSpec, new: JobSpec) -> str:
    """What to type after the spec's path to turn one spec into the other: `market.gpus=[] limits.budget=8.21`."""
    words: list[str] = []
    if new.method.name != old.method.name:
        words.append(f"method.name={new.method.name}")
    known = old.method.options if new.method.name == old.method.name else {}
    words += [f"method.{key}={_typed(value)}" for key, value in new.method.options.items() if known.get(key) != value]
    for section in ("data", "training", "market"):
        before, after = getattr(old, section), getattr(new, section)
        for item in fields(after):
            if getattr(before, item.name) != getattr(after, item.name):
                words.append(f"{section}.{item.name}={_typed(getattr(after, item.name))}")
    if new.limits.budget_usd is not None and new.limits.budget_usd != old.limits.budget_usd:
        words.append(f"limits.budget={new.limits.budget_usd:f}")
    if new.limits.deadline_s is not None and new.limits.deadline_s != old.limits.deadline_s:
        words.append(f"limits.deadline={_typed_duration(new.limits.deadline_s)}")
    return " ".join(words)


def _proven(change: Change, old: JobSpec, candidates: Sequence[Candidate], *, may_raise_limits: bool) -> Remedy | None:
    """The remedy with its best plan, within the limits if there is one; None when the change does not help."""
    judged = judge(candidates, old.limits)
    if judged.within:
        return _remedy(change, old, in_order(judged.within, old.market.objective)[0])
    if not judged.beyond or not may_raise_limits:
        return None
    best = _least_beyond(judged.beyond, old.limits)
    limits = _raised(old.limits, best)
    words = f"{change.words}, and {_raise_in_words(old.limits, limits)}"
    return _remedy(Change(words=words, spec=replace(change.spec, limits=limits)), old, best)


def _remedy(change: Change, old: JobSpec, best: Candidate) -> Remedy:
    return Remedy(
        change=f"{change.words}: {overrides(old, change.spec)}", cost_usd=cost_usd(best), duration_s=duration_s(best)
    )


def _higher_limits(spec: JobSpec, beyond: Sequence[Candidate]) -> Iterator[Remedy]:
    """More money, more time, or the least of both together: by how much."""
    limits = spec.limits
    in_time = [c for c in beyond if limits.deadline_s is None or duration_s(c) <= limits.deadline_s]
    in_budget = [c for c in beyond if limits.budget_usd is None or cost_usd(c) <= limits.budget_usd]
    chosen: list[Candidate] = []
    if in_time:
        chosen.append(in_order(in_time, "cheapest")[0])
    if in_budget:
        chosen.append(in_order(in_budget, "fastest")[0])
    if beyond and not chosen:
        chosen.append(_least_beyond(beyond, limits))
    for candidate in chosen:
        raised = _raised(limits, candidate)
        words = _raise_in_words(limits, raised)
        yield _remedy(Change(words=words, spec=replace(spec, limits=raised)), spec, candidate)


def _least_beyond(candidates: Sequence[Candidate], limits: LimitsSpec) -> Candidate:
    """The candidate whose worse limit is broken by the smallest factor."""

    def factor(candidate: Candidate) -> float:
        money = float(cost_usd(candidate) / limits.budget_usd) if limits.budget_usd else 0.0
        time = duration_s(candidate) / limits.deadline_s if limits.deadline_s else 0.0
        return max(money, time)

    return min(candidates, key=lambda c: (is_tight(c), factor(c), cost_usd(c), duration_s(c), tie_break(c)))


def _raised(limits: LimitsSpec, candidate: Candidate) -> LimitsSpec:
    """Limits that the candidate meets: budget rounded up to the cent, deadline to the minute or a tenth of an hour."""
    budget, deadline = limits.budget_usd, limits.deadline_s
    if budget is not None and cost_usd(candidate) > budget:
        budget = cost_usd(candidate).quantize(_CENT, rounding=ROUND_UP)
    if deadline is not None and duration_s(candidate) > deadline:
        grain_s = MINUTE_S if duration_s(candidate) < 2 * HOUR_S else HOUR_S / 10
        deadline = math.ceil(duration_s(candidate) / grain_s) * grain_s
    return LimitsSpec(budget_usd=budget, deadline_s=deadline)


def _raise_in_words(old: LimitsSpec, new: LimitsSpec) -> str:
    parts: list[str] = []
    if new.budget_usd is not None and old.budget_usd is not None and new.budget_usd > old.budget_usd:
        parts.append(f"{format_usd(new.budget_usd - old.budget_usd)} more budget")
    if new.deadline_s is not None and old.deadline_s is not None and new.deadline_s > old.deadline_s:
        parts.append(f"{format_duration(new.deadline_s - old.deadline_s)} more time")
    return " and ".join(parts)


def _smaller(spec: JobSpec) -> Iterator[Change]:
    """The cheaper settings that the methods themselves name, such as smaller ranks."""
    for choice in method_choices(spec.method):
        method = methods.get(choice.name)
        for words, options in method.variants(methods.options_for(choice.name, choice.options)):
            values = {item.name: getattr(options, item.name) for item in fields(options)}
            changed = {key: value for key, value in values.items() if value != choice.options[key]}
            new = MethodChoice(name=choice.name, options={**spec.method.options, **changed})
            yield Change(words=f"{choice.name} with {words}", spec=replace(spec, method=new))


def _other_methods(spec: JobSpec) -> Iterator[Change]:
    if spec.method.name != "auto":
        for name in methods.names():
            if name != spec.method.name:
                yield Change(
                    words=f"{name} instead of {spec.method.name}", spec=replace(spec, method=MethodChoice(name=name))
                )


def _freer_training(spec: JobSpec) -> Iterator[Change]:
    """Settings of the user's that cost memory and change no result."""
    training = spec.training
    if training.checkpointing != "auto":
        new = replace(training, checkpointing="auto")
        yield Change(words="with gradient checkpointing where needed", spec=replace(spec, training=new))
    if training.micro_batch_tokens is not None:
        new = replace(training, micro_batch_tokens=None)
        yield Change(words="with a micro-batch of the planner's choice", spec=replace(spec, training=new))
    if training.precision != "auto":
        new = replace(training, precision="auto")
        yield Change(words="in the precision that suits the machine", spec=replace(spec, training=new))


def _smaller_states(spec: JobSpec) -> Iterator[Change]:
    """Optimizer states in 8 bit, and in memory that can move to the host."""
    if spec.training.optimizer in ("auto", "adamw"):
        for name, words in _OPTIMIZERS:
            yield Change(words=words, spec=replace(spec, training=replace(spec.training, optimizer=name)))


def _shorter_rows(workload: Workload) -> Iterator[Change]:
    """A lower limit for the length of rows, where few rows set the need of all.

    Its price is that of all rows: those that are left out or cut would be saved on top.
    """
    found = shorter_rows(workload)
    if found is None:
        return
    length, beyond = found
    data = replace(workload.spec.data, max_length_tokens=length)
    if data.overlong == "error":
        data = replace(data, overlong="drop")
    yield Change(
        words=f"rows of at most {length:,} tokens ({shorter_rows_words(workload, beyond)})",
        spec=replace(workload.spec, data=data),
    )


def _wider_market(spec: JobSpec) -> Iterator[Change]:
    """Each filter of the user's lifted by itself."""
    market, free = spec.market, MarketSpec()
    if market.where == "local":
        yield Change(words="on rented machines too", spec=replace(spec, market=replace(market, where="any")))
    for name, words in _WITHOUT_FILTER:
        if getattr(market, name) != getattr(free, name):
            new = replace(market, **{name: getattr(free, name)})
            yield Change(words=words, spec=replace(spec, market=new))
    if market.spot != "auto":
        words = "spot machines too" if market.spot == "never" else "on-demand machines too"
        yield Change(words=words, spec=replace(spec, market=replace(market, spot="auto")))
    more = next((cards for cards in _MORE_CARDS if cards > market.max_gpus), None)
    if more is not None and market.where != "local":
        new = replace(market, max_gpus=more)
        yield Change(words=f"up to {more} cards in a machine", spec=replace(spec, market=new))


def _everything(spec: JobSpec) -> Change:
    """All at once, for when no single change is enough."""
    market = MarketSpec(objective=spec.market.objective, max_gpus=max(spec.market.max_gpus, _MORE_CARDS[-1]))
    training = replace(spec.training, checkpointing="auto", micro_batch_tokens=None, precision="auto")
    return Change(
        words="all methods on all machines",
        spec=replace(spec, market=market, training=training, method=MethodChoice()),
    )


def _one_of_each(rejected: Iterable[Rejected]) -> list[Rejected]:
    """The first, nearest class of every kind and method, so that each says its own."""
    seen: dict[tuple[str, str], Rejected] = {}
    for item in rejected:
        seen.setdefault((item.kind, item.subject.rpartition(", ")[2]), item)
    return list(seen.values())


def _typed(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, tuple):
        return f"[{','.join(str(item) for item in value)}]"
    return str(value)


def _typed_duration(duration_s: float) -> str:
    return f"{duration_s / MINUTE_S:.0f}m" if duration_s < 2 * HOUR_S else f"{duration_s / HOUR_S:.1f}h"
