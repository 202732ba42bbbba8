"""Explain a plan set in words: the verdict, what dominates, what was rejected, how sure and how old everything is.

Only text is made here; the command line lays it out.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TypeVar

from scrimp.catalog.offers import ATTRIBUTION, price_age_days
from scrimp.core.estimate import Estimate
from scrimp.core.forecast import EnergyForecast
from scrimp.core.job import LimitsSpec
from scrimp.core.market import GridMethod
from scrimp.core.plan import Candidate, PlanSet, Rejected, RejectionKind
from scrimp.core.units import (
    format_bytes,
    format_co2,
    format_count,
    format_count_of,
    format_duration,
    format_duration_range,
    format_energy,
    format_usd,
)
from scrimp.planner.carbon import carbon_cell
from scrimp.planner.limits import chance_over
from scrimp.planner.market import is_stale
from scrimp.planner.order import cost_usd, duration_s, is_tight
from scrimp.planner.question import machine_of
from scrimp.planner.recipes import phase_words
from scrimp.planner.relief import best_relief_words, relief_words

Quantity = TypeVar("Quantity", float, Decimal)

_KIND_ORDER: tuple[RejectionKind, ...] = (
    "memory", "over_budget", "past_deadline", "unsupported", "price_unknown", "filtered", "dominated",
)  # fmt: skip
KIND_WORDS: dict[RejectionKind, str] = {
    "memory": "does not fit",
    "over_budget": "over budget",
    "past_deadline": "too slow",
    "unsupported": "unsupported",
    "price_unknown": "price unknown",
    "filtered": "filtered out",
    "dominated": "dominated",
}
# Kinds whose subject is `machine, method`.
_BY_METHOD = ("memory", "over_budget", "past_deadline")
# A chance below this is not worth a line, above its complement it is certain enough.
_NEGLIGIBLE_CHANCE = 0.05
_DAYS_A_MONTH = 30.44
_DAYS_A_YEAR = 365.25
_MOST_PARTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """One candidate as the cells of a table."""

    rank: int
    on_front: bool
    method: str
    machine: str
    provider: str
    region: str
    market: str
    price: str
    memory_need: str
    memory_has: str
    time: str
    time_range: str
    cost: str
    cost_range: str
    energy: str
    carbon: str
    price_age: str

    @property
    def mark(self) -> str:
        """A star for plans on the front."""
        return "*" if self.on_front else " "


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedRow:
    """One line about what was rejected: the kind in words, how many offers, what it was and why."""

    kind: str
    offers: int
    words: str


def plan_row(
    candidate: Candidate, *, rank: int, on_front: bool, today: date, counted_by: GridMethod | None = None
) -> PlanRow:
    """The cells of one candidate; `counted_by` is the way of counting CO2e that the rows are compared in."""
    offer, total = candidate.offer, candidate.time.total_s
    money = candidate.money
    return PlanRow(
        rank=rank,
        on_front=on_front,
        method=candidate.recipe.method.name,
        machine=machine_of(candidate).label,
        provider=offer.provider if offer.market != "local" else "this machine",
        region=offer.region if offer.market != "local" else "",
        market=market_words(candidate),
        price="unknown" if offer.price_usd_per_hour is None else f"{format_usd(offer.price_usd_per_hour)}/h",
        memory_need=f"{format_bytes(candidate.memory.need_bytes.value)}{'?' if is_tight(candidate) else ''}",
        memory_has=format_bytes(candidate.device.memory_bytes),
        time=format_duration(total.value),
        time_range=duration_range(total),
        cost="unknown" if money is None else format_usd(money.total_usd.value),
        cost_range="" if money is None else usd_range(money.total_usd),
        energy=format_energy(candidate.energy.energy_kwh.value),
        carbon=carbon_cell(candidate, counted_by),
        price_age=price_age_words(candidate, today),
    )


def verdict(candidate: Candidate) -> str:
    """`qlora on 1x RTX4090 (24.0 GiB) at vast, spot: $0.41 (0.28-0.61), 2.10 h (1.40-2.90 h), memory 17 of 24 GiB`."""
    has = format_bytes(candidate.device.memory_bytes)
    cards = f"{has} each" if machine_of(candidate).gpus > 1 else has
    place = "on this machine" if candidate.offer.market == "local" else f"at {place_words(candidate)}"
    money = candidate.money
    cost = "price unknown" if money is None else f"{format_usd(money.total_usd.value)} ({usd_range(money.total_usd)})"
    total = candidate.time.total_s
    return (
        f"{candidate.recipe.method.name} on {machine_of(candidate).label} ({cards}) {place}: {cost}, "
        f"{format_duration(total.value)} ({duration_range(total)}), "
        f"memory {_of(candidate.memory.need_bytes.value, candidate.device.memory_bytes)}"
    )


def better_but_tight(plans: PlanSet, chosen: Candidate) -> Candidate | None:
    """The best plan that may not fit, when it would be cheaper (or faster, if that is the aim) than the chosen one."""
    measure = cost_usd if plans.spec.market.objective == "cheapest" else duration_s
    tight = [item for item in plans.candidates if is_tight(item) and measure(item) < measure(chosen)]
    return None if is_tight(chosen) else min(tight, key=measure, default=None)


def doubts(candidate: Candidate, limits: LimitsSpec, today: date) -> tuple[str, ...]:
    """What may go wrong with a plan that was chosen by its values: a limit broken after all, memory, an old price."""
    lines: list[str] = []
    if candidate.money is not None and limits.budget_usd is not None:
        words = f"{{}} that it costs more than the budget of {format_usd(limits.budget_usd)}"
        lines += _chance_line(words, candidate.money.total_usd, limits.budget_usd)
    if limits.deadline_s is not None:
        words = f"{{}} that it takes longer than the deadline of {format_duration(limits.deadline_s)}"
        lines += _chance_line(words, candidate.time.total_s, limits.deadline_s)
    has = candidate.device.memory_bytes
    lines += _chance_line(f"{{}} that {format_bytes(has)} are not enough", candidate.memory.need_bytes, float(has))
    if candidate.recipe.sharding != "none":
        lines.append("the trainer of this version uses one card: a plan for several is for comparison")
    if candidate.offer.market == "spot":
        lines.append("a spot machine can be taken away; no preemption is counted in time and cost")
    if candidate.offer.market != "local":
        if candidate.offer.price_date is None:
            lines.append("the price carries no date")
        elif is_stale(candidate.offer, today):
            lines.append(f"the price is of {candidate.offer.price_date}: more than a year old")
    return tuple(lines)


def job_words(plans: PlanSet) -> str:
    """Model, data and the steps that will be taken."""
    steps, training = plans.steps, plans.spec.training
    batch = (
        f"{training.batch_tokens:,} tokens" if training.batch_tokens else format_count_of(training.batch_rows, "row")
    )
    epochs = f"{steps.epochs:.3g} epoch{'' if steps.epochs == 1 else 's'}"
    return (
        f"{plans.model_shape.name}, {format_count(plans.model_shape.params)} parameters; "
        f"{format_count_of(steps.steps, 'step')} of {batch} ({epochs}), {format_count_of(steps.total_tokens, 'token')}"
    )


def data_words(plans: PlanSet) -> str:
    """What is known of the data, and on what basis."""
    profile = plans.profile
    dropped = sum(item.rows for item in profile.dropped)
    parts = [
        f"{format_count(profile.rows_trained)} rows train, {format_count(profile.eval_rows)} held out",
        *([f"{format_count(dropped)} dropped"] if dropped else []),
        *([f"{format_count_of(profile.duplicate_rows, 'exact duplicate')}"] if profile.duplicate_rows else []),
        f"mean {format_count(profile.mean_row_tokens)} and at most {format_count(profile.longest_row_tokens)} tokens",
        f"{profile.trained_share:.0%} of them carry a label",
        profile.token_basis,
        *profile.notes,
    ]
    return "; ".join(parts)


def dominant_words(candidate: Candidate) -> tuple[tuple[str, str], ...]:
    """(heading, words) of memory, time, cost, energy and carbon: the figure, its largest parts first, its basis."""
    time, money, energy = candidate.time, candidate.money, candidate.energy
    lines = [
        ("memory", _memory_words(candidate)),
        *([("to save", "; ".join(map(relief_words, candidate.relief)))] if candidate.relief else []),
        (
            "time",
            f"{format_duration(time.total_s.value)}: "
            f"{_parts([(part.name, part.duration_s) for part in time.parts], format_duration)}; "
            f"{format_count(time.tokens_per_s.value)} tokens/s; {time.train_s.basis}",
        ),
    ]
    if money is not None:
        parts = [(part.name, part.amount_usd) for part in money.parts]
        lines.append(
            ("cost", f"{format_usd(money.total_usd.value)}: {_parts(parts, format_usd)}; {money.total_usd.basis}")
        )
    kwh = energy.energy_kwh
    spread = f"{format_energy(kwh.low)} to {format_energy(kwh.high)}"
    lines.append(("energy", f"{format_energy(kwh.value)} ({spread}){_pue_words(candidate)}; {kwh.basis}"))
    lines.append(("carbon", "; ".join(_carbon_words(energy)) or "CO2e unknown: no figure for this grid"))
    return tuple(lines)


def _memory_words(candidate: Candidate) -> str:
    """Need of the card, the phase that peaks with its biggest terms, and all three figures with their ranges."""
    memory, phase = candidate.memory, candidate.memory.peak_phase
    terms = [(term.name, term.size_bytes) for term in phase.terms]
    names = ("needs", "allocates at most", "nvidia-smi will show")
    figures = dict(zip(names, (memory.need_bytes, memory.peak_bytes, memory.device_bytes), strict=True))
    if candidate.device.kind == "cpu":
        figures = {"resident": memory.need_bytes}
    ranges = ", ".join(
        f"{name} {format_bytes(figure.value)} ({_bytes_range(figure)})" for name, figure in figures.items()
    )
    return (
        f"{_of(memory.need_bytes.value, candidate.device.memory_bytes)}: peak in {phase_words(phase)}: "
        f"{_parts(terms, format_bytes)}; {ranges}; {memory.need_bytes.basis}"
    )


def _bytes_range(figure: Estimate[float]) -> str:
    return f"{format_bytes(figure.low)} to {format_bytes(figure.high)}"


def recipe_words(candidate: Candidate) -> str:
    """The decisions of the recipe on one line."""
    recipe = candidate.recipe
    warm_up = format_count_of(recipe.warmup_steps, "warm-up step")
    options = ", ".join(
        f"{key} {_option(value)}" for key, value in recipe.method.options.items() if value not in (0, 0.0)
    )
    return "; ".join(
        [
            f"{recipe.method.name}{f' ({options})' if options else ''}",
            f"{recipe.weight_dtype} weights, {recipe.compute_dtype} compute",
            f"micro-batches of {recipe.micro_batch_tokens:,} tokens, {recipe.layout}",
            f"checkpointing {recipe.checkpointing}",
            *([f"{recipe.sharding} over {machine_of(candidate).gpus} cards"] if recipe.sharding != "none" else []),
            f"learning rate {recipe.learning_rate:g}, {recipe.schedule}, {warm_up}",
        ]
    )


def rejected_rows(rejected: Sequence[Rejected], *, every: bool) -> tuple[RejectedRow, ...]:
    """The rejected in words; unless `every`, classes that differ only in the machine or the offer share a line."""
    rows: list[RejectedRow] = []
    for kind in _KIND_ORDER:
        classes = [item for item in rejected if item.kind == kind]
        for group in [[item] for item in classes] if every else _grouped(classes):
            offers = sum(item.offers for item in group)
            rows.append(RejectedRow(kind=KIND_WORDS[kind], offers=offers, words=_class_words(group)))
    return tuple(rows)


def price_words(plans: PlanSet, today: date) -> str:
    """How old the prices are, and whose."""
    prices = plans.prices
    if prices.oldest is None or prices.newest is None:
        return "without dates" if prices.undated_offers else "this machine's own, from the spec"
    undated = f", {format_count(prices.undated_offers)} without a date" if prices.undated_offers else ""
    age = _age((today - prices.newest).days)
    return f"of {prices.oldest} to {prices.newest}, the newest {age} old{undated}. {ATTRIBUTION}"


def price_age_words(candidate: Candidate, today: date) -> str:
    """`3 d`, `7 mo`, `1.4 y!` (stale); `?` without a date."""
    if candidate.offer.market == "local":
        return "own"
    days = price_age_days(candidate.offer, today=today)
    if days is None:
        return "?"
    return f"{_age(days)}{'!' if is_stale(candidate.offer, today) else ''}"


def market_words(candidate: Candidate) -> str:
    """`spot`, `on-demand`, `local`."""
    return candidate.offer.market.replace("_", "-")


def place_words(candidate: Candidate) -> str:
    """`aws eu-north-1, spot`."""
    region = "" if candidate.offer.region == "any" else f" {candidate.offer.region}"
    return f"{candidate.offer.provider}{region}, {market_words(candidate)}"


def duration_range(forecast: Estimate[float]) -> str:
    """`1.40-2.90`, in the unit of the value."""
    return format_duration_range(forecast.low, forecast.high, like_s=forecast.value)


def usd_range(forecast: Estimate[Decimal]) -> str:
    """`0.28-0.61`."""
    return f"{format_usd(forecast.low)}-{format_usd(forecast.high)}".replace("$", "")


def _carbon_words(energy: EnergyForecast) -> list[str]:
    """`1.5 kg CO2e (1.1 kg to 2.0 kg) at aws us-east-1 ...`, and the figures counted in other ways, told apart."""
    return [
        f"{'' if index == 0 else 'counted otherwise: '}{format_co2(item.mass_gco2e.value)} CO2e "
        f"({format_co2(item.mass_gco2e.low)} to {format_co2(item.mass_gco2e.high)}) at {item.words}"
        for index, item in enumerate(energy.carbon)
    ]


def _pue_words(candidate: Candidate) -> str:
    carbon = candidate.energy.carbon
    if not carbon or carbon[0].grid.pue_reach == "none":
        return " at the wall"
    grid = carbon[0].grid
    return f" with the building, PUE {grid.pue_ratio:.2f} of the {grid.pue_reach}"


def _grouped(classes: Iterable[Rejected]) -> list[list[Rejected]]:
    """By method for classes of (machine, method), by reason for all others; the first of a group speaks for it."""
    groups: dict[str, list[Rejected]] = {}
    for item in classes:
        groups.setdefault(_method_of(item) if item.kind in _BY_METHOD else item.reason, []).append(item)
    return list(groups.values())


def _class_words(group: Sequence[Rejected]) -> str:
    """`full on 6 machines; the nearest, 1x A100: needs 94.7 GiB of 80.0 GiB ...`, or the one class as it is."""
    first = group[0]
    relief = best_relief_words(first.relief)
    reason = f"{first.reason}; {relief}" if relief else first.reason
    if len(group) == 1:
        return f"{first.subject}: {reason}"
    if first.kind in _BY_METHOD:
        machine = first.subject.rpartition(", ")[0]
        return f"{_method_of(first)} on {len(group)} machines; the nearest, {machine}: {reason}"
    return f"{first.subject} and {len(group) - 1} more: {reason}"


def _method_of(item: Rejected) -> str:
    return item.subject.rpartition(", ")[2]


def _chance_line(words: str, forecast: Estimate[float] | Estimate[Decimal], limit: float | Decimal) -> list[str]:
    chance = chance_over(forecast, limit)
    return [words.format(f"about 1 chance in {round(1 / chance)}")] if chance > _NEGLIGIBLE_CHANCE else []


def _of(part_bytes: float, whole_bytes: float) -> str:
    """`17.2 of 24.0 GiB`, or with both units where they differ."""
    part, whole = format_bytes(part_bytes), format_bytes(whole_bytes)
    number, unit = part.split(" ")
    return f"{number if whole.endswith(unit) else part} of {whole}"


def _parts(parts: Iterable[tuple[str, Quantity]], in_words: Callable[[Quantity], str]) -> str:
    """The largest parts first, as many as say something."""
    ordered = sorted(parts, key=lambda part: -part[1])
    return ", ".join(f"{name} {in_words(size)}" for name, size in ordered[:_MOST_PARTS] if size > 0)


def _option(value: object) -> str:
    return "+".join(str(item) for item in value) if isinstance(value, tuple) else str(value)


def _age(days: int) -> str:
    if days < 60:
        return f"{days} d"
    return f"{days / _DAYS_A_MONTH:.0f} mo" if days <= 540 else f"{days / _DAYS_A_YEAR:.1f} y"
