"""What a probe makes of a plan: its candidate with corrected forecasts, beside the plan and never in its place."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from scrimp.core.plan import Plan
from scrimp.core.probe import PROBED, Probed, ProbeReading
from scrimp.core.run import EventValue, Graded
from scrimp.estimate.probing import probed_memory, probed_time
from scrimp.ledger.grade import grade
from scrimp.ledger.history import RunHistory
from scrimp.planner.question import machine_of
from scrimp.workflows.formulas import forecaster_of


def probed(plan: Plan, values: Mapping[str, EventValue], *, replanned: tuple[str, ...] = ()) -> Probed | None:
    """The plan beside what the values of a `probed` event make of it; None when they are no reading."""
    reading = ProbeReading.of(values)
    if reading is None:
        return None
    chosen, forecaster = plan.chosen, forecaster_of(plan)
    time = probed_time(chosen.time, reading, chosen.recipe)
    corrected = replace(
        chosen,
        memory=probed_memory(chosen.memory, reading, chosen.recipe, steps=time.steps),
        time=time,
        money=forecaster.money(time, chosen.recipe, chosen.offer),
        energy=forecaster.energy(time, chosen.recipe, machine_of(chosen), chosen.offer),
    )
    return Probed(plan=plan, reading=reading, corrected=corrected, replanned=replanned)


def grade_probe(plan: Plan, history: RunHistory, *, spent_usd: Decimal) -> tuple[Graded, ...]:
    """Graded lines of the corrected forecasts, named `probed_...`; none where no probe was made."""
    found = probed(plan, history.probed)
    if found is None:
        return ()
    lines = grade(found.corrected_plan, history, spent_usd=spent_usd)
    return tuple(replace(line, quantity=f"{PROBED}{line.quantity}") for line in lines)
