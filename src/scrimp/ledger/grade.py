"""Forecasts of a plan against what its run measured: the lines that calibration learns from."""

from decimal import Decimal

from scrimp.core.estimate import Estimate
from scrimp.core.forecast import MemoryForecast
from scrimp.core.plan import Plan
from scrimp.core.run import Graded
from scrimp.ledger.history import RunHistory

# What `measured.peak_kind` is called when the whole process was measured and not the allocator.
_WHOLE_PROCESS = {"rss", "process", "device"}


def grade(
    plan: Plan, history: RunHistory, *, spent_usd: Decimal, energy_kwh: float | None = None
) -> tuple[Graded, ...]:
    """One line for each quantity that was both forecast and measured.

    Time, money and energy of a run that did not finish say nothing about the forecast of the whole job, so only its
    memory is graded. `energy_kwh` is a measured or billed figure; the run's own meter goes before it.
    """
    chosen = plan.chosen
    lines: list[Graded] = []
    if history.peak_bytes is not None:
        forecast = _memory(chosen.memory, kind=history.peak_kind)
        lines.append(_line("peak_bytes", forecast, measured=history.peak_bytes))
    if history.state(process_ended=True) != "finished":
        return tuple(lines)
    lines.append(_line("train_s", chosen.time.train_s, measured=history.train_s))
    lines.append(_line("total_s", chosen.time.total_s, measured=history.total_s))
    if chosen.money is not None:
        lines.append(_line("cost_usd", chosen.money.total_usd, measured=float(spent_usd)))
    used_kwh = history.energy_kwh if history.energy_kwh is not None else energy_kwh
    if used_kwh is not None:
        lines.append(_line("energy_kwh", chosen.energy.energy_kwh, measured=used_kwh))
    return tuple(lines)


def _memory(memory: MemoryForecast, *, kind: str) -> Estimate[float]:
    """The forecast of the same thing that was measured: what the driver shows, or what the allocator handed out."""
    whole = any(word in kind.lower() for word in _WHOLE_PROCESS)
    return memory.device_bytes if whole else memory.peak_bytes


def _line(quantity: str, forecast: Estimate[float] | Estimate[Decimal], *, measured: float) -> Graded:
    return Graded(
        quantity=quantity,
        forecast=float(forecast.value),
        low=float(forecast.low),
        high=float(forecast.high),
        measured=measured,
        basis=forecast.basis,
    )
