"""Forecasts of a plan against what its run measured: the lines that calibration learns from."""

from decimal import Decimal

from scrimp.core.estimate import Estimate
from scrimp.core.plan import Plan
from scrimp.core.run import Graded
from scrimp.ledger.history import RunHistory

# What `measured.peak_kind` is called when the whole process was measured and not the allocator.
_WHOLE_PROCESS = {"rss", "process", "device"}


def forecasts(plan: Plan, *, peak_kind: str = "rss") -> dict[str, Estimate[float]]:
    """What a plan foretold, under the names that graded lines carry; a price that is not known is left out.

    `peak_kind` says which memory was measured: what the driver or the system shows, or what the allocator handed out.
    """
    chosen = plan.chosen
    whole = any(word in peak_kind.lower() for word in _WHOLE_PROCESS)
    found = {
        "peak_bytes": chosen.memory.device_bytes if whole else chosen.memory.peak_bytes,
        "step_s": chosen.time.step_s,
        "train_s": chosen.time.train_s,
        "total_s": chosen.time.total_s,
    }
    if chosen.money is not None:
        found["cost_usd"] = _as_floats(chosen.money.total_usd)
    if chosen.energy.gpu_kwh is not None:
        found["gpu_kwh"] = chosen.energy.gpu_kwh
    return found | {"energy_kwh": chosen.energy.energy_kwh}


def grade(
    plan: Plan,
    history: RunHistory,
    *,
    spent_usd: Decimal,
    energy_kwh: float | None = None,
    formulas: Plan | None = None,
) -> tuple[Graded, ...]:
    """One line for each quantity that was both forecast and measured.

    Time, money and energy of a run that did not finish say nothing about the forecast of the whole job, so only its
    memory is graded. A counter of the cards is held against the forecast of the cards (`gpu_kwh`), a meter of the
    machine against that of the machine (`energy_kwh`; the argument is an earlier reading of one): what was counted in
    different ways is not compared, and what was billed by a stated power was not measured. `formulas` is the plan as
    the formulas alone foretell it, without what was learnt from other runs: kept beside what the plan said.
    """
    alone = {} if formulas is None else forecasts(formulas, peak_kind=history.peak_kind)
    measured: dict[str, float | None] = {"peak_bytes": history.peak_bytes}
    if history.state(process_ended=True) == "finished":
        measured |= {
            "step_s": history.train_s / len(history.steps) if history.steps else None,
            "train_s": history.train_s,
            "total_s": history.total_s,
            "cost_usd": float(spent_usd),
            "gpu_kwh": None if history.energy is None else history.energy.gpu_kwh,
            "energy_kwh": history.energy_kwh if history.energy_kwh is not None else energy_kwh,
        }
    return tuple(
        Graded(
            quantity=quantity,
            forecast=forecast.value,
            low=forecast.low,
            high=forecast.high,
            measured=value,
            basis=forecast.basis,
            formula=alone[quantity].value if quantity in alone else None,
        )
        for quantity, forecast in forecasts(plan, peak_kind=history.peak_kind).items()
        if (value := measured.get(quantity)) is not None
    )


def _as_floats(money: Estimate[Decimal]) -> Estimate[float]:
    return Estimate(value=float(money.value), low=float(money.low), high=float(money.high), basis=money.basis)
