"""A run in sentences: the headline, the plan, where its facts come from."""

from dataclasses import dataclass

from scrimp.core.plan import Plan
from scrimp.core.probe import PROBED
from scrimp.core.run import Graded, RunRecord
from scrimp.core.units import format_co2, format_count, format_count_of, format_duration, format_energy, format_usd, usd
from scrimp.ledger.carbon import run_carbon
from scrimp.report.source import ReportSource

STATE_WORDS = {
    "planned": "planned",
    "running": "running",
    "interrupted": "interrupted, can be resumed",
    "stopped_at_cap": "stopped at its limit",
    "finished": "finished",
    "failed": "failed",
}
QUANTITY_WORDS = {
    "peak_bytes": "memory at its peak",
    "step_s": "time of a step",
    "train_s": "time in training steps",
    "total_s": "time of the whole job",
    "cost_usd": "money",
    "gpu_kwh": "energy of the GPUs",
    "energy_kwh": "energy of the machine",
}


def quantity_words(quantity: str) -> str:
    """A graded quantity in words: the plan's forecast of it, or what a probe had corrected that to."""
    plain = quantity.removeprefix(PROBED)
    words = QUANTITY_WORDS.get(plain, plain)
    return words if plain == quantity else f"{words}, after the probe"


def replanned_words(source: ReportSource) -> list[tuple[str, str]]:
    """What was changed when memory ran out before the first step, and why."""
    return [
        (f"attempt {event.attempt}", f"memory ran out: {event.values.get('change')} ({event.values.get('reason')})")
        for event in source.history.replanned
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A figure of the headline: what, how much, against what."""

    name: str
    value: str
    against: str = ""


def headline(record: RunRecord) -> str:
    """What was bought, in a sentence."""
    spent = format_usd(record.spent_usd)
    before, after = record.eval_loss_before, record.eval_loss_after
    if before is not None and after is not None:
        way = "fell" if after < before else "rose" if after > before else "stayed"
        return f"For {spent} the held-out loss {way} from {before:.3f} to {after:.3f}."
    done = f"{format_count(record.steps_done)} of {format_count_of(record.steps_planned, 'step')}"
    return f"For {spent} the run took {done}: {STATE_WORDS[record.state]}."


def headline_facts(source: ReportSource) -> list[Fact]:
    """The figures beside the headline."""
    record, history = source.record, source.history
    facts: list[Fact] = []
    if record.eval_loss_before is not None and record.eval_loss_after is not None:
        change = record.eval_loss_after / record.eval_loss_before - 1 if record.eval_loss_before else 0.0
        loss = f"{record.eval_loss_before:.3f} → {record.eval_loss_after:.3f}"
        facts.append(Fact(name="held-out loss", value=loss, against=f"{change:+.1%}"))
    forecast = record.forecast_usd
    against = "price unknown" if forecast is None else f"forecast {format_usd(forecast)}"
    facts.append(Fact(name="spent", value=format_usd(record.spent_usd), against=against))
    if history.attempts:
        planned = source.plan.chosen.time.total_s.value if source.plan is not None else None
        against = "" if planned is None else f"forecast {format_duration(planned)}"
        facts.append(Fact(name="time under way", value=format_duration(history.total_s), against=against))
    steps = f"{format_count(record.steps_done)} of {format_count(record.steps_planned)}"
    facts.append(Fact(name="steps", value=steps, against=STATE_WORDS[record.state]))
    used = run_carbon(source.plan, (*source.entries, *source.running))
    if used is not None:
        carbon = "CO2e unknown" if used.carbon_gco2e is None else f"{format_co2(used.carbon_gco2e)} CO2e"
        facts.append(Fact(name="electricity", value=format_energy(used.energy_kwh), against=carbon))
    tokens = history.finished.get("trained_tokens")
    if isinstance(tokens, int | float) and tokens and record.spent_usd:
        per_million = record.spent_usd * 10**6 / usd(tokens)
        against = f"{format_usd(per_million)} a million"
        facts.append(Fact(name="trained tokens", value=format_count(tokens), against=against))
    return facts


def plan_words(plan: Plan) -> list[tuple[str, str]]:
    """(heading, sentence) of the chosen plan: verdict, recipe, and what dominates each forecast."""
    from scrimp.planner import explain

    chosen = plan.chosen
    return [
        ("plan", explain.verdict(chosen)),
        ("recipe", explain.recipe_words(chosen)),
        *explain.dominant_words(chosen),
    ]


def origins(source: ReportSource) -> list[tuple[str, str]]:
    """Where prices, device figures, carbon and the model's shape come from."""
    if source.plan is None:
        return []
    chosen, offer = source.plan.chosen, source.plan.chosen.offer
    dated = f", {offer.price_date}" if offer.price_date else ""
    found = [
        ("price", f"{offer.provider} {offer.instance_type}: {offer.price_source}{dated}"),
        ("device", f"{chosen.device.name}: {chosen.device.source}"),
        ("electricity and carbon", _electricity(source)),
        ("model", f"{source.plan.model_shape.name}: {source.plan.model_shape.source}"),
    ]
    return [(name, words) for name, words in found if words]


def _electricity(source: ReportSource) -> str:
    """How the billed electricity is known and how its grid is counted; the plan's grid before anything was billed."""
    used = run_carbon(source.plan, (*source.entries, *source.running))
    if used is not None:
        return used.words
    return "" if source.plan is None else source.plan.chosen.energy.grid


def error_words(line: Graded) -> str:
    """`+12%`, with `inside` or `outside` the interval."""
    return f"{line.error_ratio:+.0%}, {'inside' if line.inside else 'outside'} the interval"
