"""A forecaster that has learnt from the user's own runs: any other one, with its figures multiplied."""

from dataclasses import dataclass, replace

from scrimp.core.correction import Corrected, Correction, Corrections
from scrimp.core.estimate import Estimate
from scrimp.core.forecast import EnergyForecast, MemoryForecast, MoneyForecast, TimeForecast
from scrimp.core.market import Offer
from scrimp.core.recipe import Recipe
from scrimp.planner.question import Forecaster, Machine

# The part of a job's time that is steps; everything else is around them.
STEPS_PART = "training steps"


@dataclass(frozen=True, slots=True)
class CorrectedForecaster:
    """See `Forecaster`. Money follows from the corrected time; what no run corrects passes through as it is."""

    inner: Forecaster
    corrections: Corrections

    def memory(self, recipe: Recipe, machine: Machine) -> MemoryForecast:
        """Memory of one card; its terms grow and shrink together, because a run measures only their sum."""
        memory, found = self.inner.memory(recipe, machine), self._find("peak_bytes", recipe, machine)
        if found is None:
            return memory
        phases = tuple(
            replace(
                phase,
                terms=tuple(replace(term, size_bytes=term.size_bytes * found.value) for term in phase.terms),
            )
            for phase in memory.phases
        )
        return replace(
            memory,
            phases=phases,
            peak_bytes=corrected(memory.peak_bytes, found),
            device_bytes=corrected(memory.device_bytes, found),
            need_bytes=corrected(memory.need_bytes, found),
        )

    def tokens_per_s(self, recipe: Recipe, machine: Machine) -> float:
        """Rate of training."""
        rate, found = self.inner.tokens_per_s(recipe, machine), self._find("train_s", recipe, machine)
        return rate if found is None else rate / found.value

    def time(self, recipe: Recipe, machine: Machine, offer: Offer) -> TimeForecast:
        """Wall-clock time. What is around the steps was learnt on this machine and is corrected for it alone."""
        time = self.inner.time(recipe, machine, offer)
        steps = self._find("train_s", recipe, machine)
        around = self._find("around_s", recipe, machine) if offer.market == "local" else None
        return time if steps is None and around is None else corrected_time(time, steps=steps, around=around)

    def money(self, time: TimeForecast, recipe: Recipe, offer: Offer) -> MoneyForecast | None:
        """The bill of that time."""
        return self.inner.money(time, recipe, offer)

    def energy(self, time: TimeForecast, recipe: Recipe, machine: Machine, offer: Offer) -> EnergyForecast:
        """Electricity and carbon of that time, at the power that was measured."""
        energy = self.inner.energy(time, recipe, machine, offer)
        found = self.corrections.find("power_w", device=machine.device.name)
        if found is None:
            return energy
        return replace(
            energy,
            energy_kwh=corrected(energy.energy_kwh, found),
            gpu_kwh=None if energy.gpu_kwh is None else corrected(energy.gpu_kwh, found),
            carbon=tuple(replace(item, mass_gco2e=item.mass_gco2e.scaled(found.value)) for item in energy.carbon),
        )

    def _find(self, quantity: Corrected, recipe: Recipe, machine: Machine) -> Correction | None:
        return self.corrections.find(
            quantity, device=machine.device.name, method=recipe.method.name, model=recipe.model
        )


def with_corrections(forecaster: Forecaster, corrections: Corrections | None) -> Forecaster:
    """The forecaster itself where nothing was learnt."""
    return CorrectedForecaster(forecaster, corrections) if corrections and corrections.corrections else forecaster


def corrected(forecast: Estimate[float], correction: Correction) -> Estimate[float]:
    """Value and interval after a correction; the basis says how many runs it stands on."""
    low = forecast.low * correction.value if correction.low is None else forecast.value * correction.low
    high = forecast.high * correction.value if correction.high is None else forecast.value * correction.high
    runs = f"{correction.runs} of your runs"
    return Estimate(
        value=forecast.value * correction.value, low=low, high=high, basis=f"{forecast.basis}; corrected by {runs}"
    )


def corrected_time(time: TimeForecast, *, steps: Correction | None, around: Correction | None) -> TimeForecast:
    """The steps and what is around them, each by its own correction, and their sum."""
    rest = Estimate(
        value=max(0.0, time.total_s.value - time.train_s.value),
        low=max(0.0, time.total_s.low - time.train_s.low),
        high=max(0.0, time.total_s.high - time.train_s.high, time.total_s.value - time.train_s.value),
        basis=time.total_s.basis,
    )
    rest = replace(rest, low=min(rest.low, rest.value))
    train_s = time.train_s if steps is None else corrected(time.train_s, steps)
    around_s = rest if around is None else corrected(rest, around)
    ratios = {True: 1.0 if steps is None else steps.value, False: 1.0 if around is None else around.value}
    return replace(
        time,
        total_s=train_s.plus(around_s),
        train_s=train_s,
        step_s=time.step_s if steps is None else corrected(time.step_s, steps),
        tokens_per_s=time.tokens_per_s if steps is None else _inverse(time.tokens_per_s, steps),
        parts=tuple(replace(part, duration_s=part.duration_s * ratios[part.name == STEPS_PART]) for part in time.parts),
    )


def _inverse(rate: Estimate[float], correction: Correction) -> Estimate[float]:
    """A rate where times are what is corrected."""
    return Estimate(
        value=rate.value / correction.value,
        low=rate.low / correction.value if correction.high is None else rate.value / correction.high,
        high=rate.high / correction.value if correction.low is None else rate.value / correction.low,
        basis=f"{rate.basis}; corrected by {correction.runs} of your runs",
    )
