"""Electricity and carbon of a whole job on one machine.

    kWh  = sum over the parts of its time (seconds x watts of that part's load) / 3.6e6 x PUE
    CO2e = kWh x grams per kWh, once for each way of counting that the place has a figure in

Steps, rehearsal and evaluations run under the load of training; samples are launched token by token; everything else
waits. The doubts of time, node, building and grid are independent, so they combine in quadrature of their logarithms.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import exp, log, sqrt

from scrimp.core.estimate import Estimate
from scrimp.core.forecast import CarbonForecast, EnergyForecast, TimeForecast
from scrimp.core.job import LocalMachineSpec
from scrimp.core.market import Device, GridFactor, GridMethod, GridReach, PueReach
from scrimp.estimate.energy.power import CONSTANTS as POWER
from scrimp.estimate.energy.power import Load, NodePower, Ratios, node_power

JOULES_PER_KWH = 3.6e6
_AS_TRAINING = {"training steps", "rehearsal", "evaluations"}
_SAMPLING = "samples"


def _grid_ratios() -> dict[GridReach, Ratios]:
    return {"region": (0.75, 1.25), "country": (0.62, 1.38), "world": (0.17, 1.46), "stated": (1.0, 1.0)}


def _pue_ratios() -> dict[PueReach, Ratios]:
    return {"region": (0.97, 1.05), "fleet": (0.94, 1.15), "industry": (0.72, 1.22), "none": (1.0, 1.0)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceConstants:
    """80% intervals of what places add, as ratios.

    grid   region: methods differ by 23% for one grid (AWS 396, Google 323 g); country and world: the 10th and 90th
           percentile of 37 grid zones over their country's figure and over the world's
    pue    region: between years; fleet: the regions of AWS and Google around their fleet; industry: 1.1 (the best
           colocation) to 1.9 around 1.56
    """

    grid: Mapping[GridReach, Ratios] = field(default_factory=_grid_ratios)
    pue: Mapping[PueReach, Ratios] = field(default_factory=_pue_ratios)


CONSTANTS = PlaceConstants()


def forecast_energy(
    time: TimeForecast,
    device: Device,
    *,
    gpus: int,
    load: Load = "compute",
    grids: tuple[GridFactor, ...] = (),
    local: LocalMachineSpec | None = None,
) -> EnergyForecast:
    """Energy and carbon of the whole job on one machine.

    `grids` are the figures of its place, the nearest first; without any the carbon is unknown, never zero. `local` is
    given for this machine alone: its grid figure goes first, and a CPU machine draws its `power_w` all the time.
    """
    if local is not None:
        grids = (_stated(local),)
    states = _states(time, device, gpus, load, local)
    joules = sum(seconds * node.power_w for seconds, node in states)
    low = sum(seconds * node.power_w * node.low for seconds, node in states)
    high = sum(seconds * node.power_w * node.high for seconds, node in states)
    pue, pue_ratios = (grids[0].pue_ratio, CONSTANTS.pue[grids[0].pue_reach]) if grids else (1.0, (1.0, 1.0))
    span = (_ratio(time.total_s.low, time.total_s.value), _ratio(time.total_s.high, time.total_s.value))
    doubt = combined((span, (_ratio(low, joules), _ratio(high, joules)), pue_ratios))
    draws = ", ".join(node.draw for _, node in states)
    basis = "; ".join(dict.fromkeys([draws, *(node.basis for _, node in states)]))
    energy = _within(joules / JOULES_PER_KWH * pue, doubt, basis=basis)
    return EnergyForecast(
        energy_kwh=energy,
        carbon=tuple(_carbon(energy.value, doubt, grid) for grid in grids),
        gpu_kwh=_cards_alone(states, span),
    )


def combined(ratios: Iterable[Ratios]) -> Ratios:
    """Independent doubts as one, each side in quadrature of logarithms; a side beyond 1 counts as no doubt."""
    below = above = 0.0
    for low, high in ratios:
        below += log(min(1.0, low)) ** 2
        above += log(max(1.0, high)) ** 2
    return exp(-sqrt(below)), exp(sqrt(above))


def _states(
    time: TimeForecast, device: Device, gpus: int, load: Load, local: LocalMachineSpec | None
) -> list[tuple[float, NodePower]]:
    """Seconds under each load with what the machine then draws; what takes most energy first."""
    if local is not None and device.kind == "cpu":
        draw, basis = f"{local.power_w:g} W", "the spec's power of this machine x time"
        node = NodePower(power_w=local.power_w, card_w=None, low=1.0, high=1.0, draw=draw, basis=basis)
        return [(sum(part.duration_s for part in time.parts), node)]
    spent_s: dict[Load, float] = {}
    for part in time.parts:
        state: Load = "idle"
        if part.name in _AS_TRAINING:
            state = load
        elif part.name == _SAMPLING and device.kind == "gpu":
            state = "launch"
        spent_s[state] = spent_s.get(state, 0.0) + part.duration_s
    states = [(seconds, node_power(device, gpus=gpus, load=state)) for state, seconds in spent_s.items() if seconds > 0]
    return sorted(states, key=lambda item: -item[0] * item[1].power_w)


def _cards_alone(states: list[tuple[float, NodePower]], span: Ratios) -> Estimate[float] | None:
    """What the cards' own counters will show."""
    if not states or any(node.card_w is None for _, node in states):
        return None
    joules = sum(seconds * (node.card_w or 0.0) for seconds, node in states)
    doubt = combined((span, POWER.card_ratios))
    return _within(joules / JOULES_PER_KWH, doubt, basis="share of the cards' rated power x time")


def _carbon(energy_kwh: float, doubt: Ratios, grid: GridFactor) -> CarbonForecast:
    factor = grid.carbon_gco2e_per_kwh
    mass = _within(
        energy_kwh * factor,
        combined((doubt, CONSTANTS.grid[grid.reach])),
        basis=f"energy x {factor:.3g} g/kWh of the {grid.reach}" if grid.reach != "stated" else "energy x stated grid",
    )
    return CarbonForecast(mass_gco2e=mass, grid=grid)


def _stated(local: LocalMachineSpec) -> GridFactor:
    return GridFactor(
        place="this machine",
        carbon_gco2e_per_kwh=local.grid_gco2e_per_kwh,
        pue_ratio=1.0,
        year=None,
        method=GridMethod.STATED,
        source="local.grid of the spec",
        reach="stated",
        pue_reach="none",
    )


def _within(value: float, ratios: Ratios, *, basis: str) -> Estimate[float]:
    low, high = ratios
    return Estimate(value=value, low=value * low, high=value * high, basis=basis)


def _ratio(end: float, value: float) -> float:
    return max(end / value, 1e-6) if value else 1.0
