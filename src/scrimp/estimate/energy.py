"""Electricity at the wall and its carbon.

    kWh = (busy hours x busy power + idle hours x busy power x idle share) / 1000 x PUE
    busy power of a node = cards x TDP x (load + rest)

`load` is the cards' own draw over their TDP: 0.85 when arithmetic sets the pace, 0.6 when traffic or launches do.
`rest` is everything else in the node (CPUs, memory, fans, network, conversion) over the cards' TDP: 0.40. Together 1.25
x TDP for one busy node and 1.0 for one that waits.

Measured (MLPerf power logs, Llama-2-70B LoRA): one 8x H100 node 1.28 x TDP, one 8x B200 node 1.20; nodes of an 8-node
run 1.04 and 1.27, of a 64-node run 0.91. The same logs' minima put an idle node at 0.31-0.35 of its busy power.
"""

from dataclasses import dataclass

from scrimp.core.estimate import Estimate
from scrimp.core.forecast import EnergyForecast, TimeForecast
from scrimp.core.job import LocalMachineSpec
from scrimp.core.market import Device, GridFactor
from scrimp.core.units import HOUR_S

_BUSY_PARTS = {"rehearsal", "training steps", "evaluations", "samples"}
_WATTS_PER_KW = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyConstants:
    """Ratios to TDP, and stand-ins for a power that is not established.

    idle_share         draw of a node that waits, loads or saves, over its busy draw
    low, high          80% interval of node power around the formula (measured nodes lie within 0.73-1.03 of it)
    unknown_*          a card or CPU machine without an established power: a middling one, with a wide interval
    place_ratios       grid factors of one place differ by 23% between methods (AWS 396, Google 323 g for one grid)
    world_ratios       the world average says little about one place
    """

    compute_load: float = 0.85
    waiting_load: float = 0.60
    rest_of_node: float = 0.40
    idle_share: float = 0.33
    low: float = 0.75
    high: float = 1.15
    unknown_gpu_w: float = 350.0
    unknown_cpu_w: float = 150.0
    unknown_ratios: tuple[float, float] = (0.3, 2.0)
    place_ratios: tuple[float, float] = (0.75, 1.25)
    world_ratios: tuple[float, float] = (0.1, 1.7)


CONSTANTS = EnergyConstants()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePower:
    """Busy draw of the whole machine at the wall, before the building's overhead."""

    power_w: float
    low: float
    high: float
    basis: str


def forecast_energy(
    time: TimeForecast,
    device: Device,
    *,
    gpus: int,
    grid: GridFactor | None,
    local: LocalMachineSpec | None = None,
) -> EnergyForecast:
    """Energy and carbon of the whole job on one machine.

    `local` is given for this machine alone: its `power_w` is the draw under load and its grid figure goes first.
    Without any grid figure the carbon is unknown (None), never zero.
    """
    node = node_power(device, gpus=gpus, local=local)
    busy_s = sum(part.duration_s for part in time.parts if part.name in _BUSY_PARTS)
    idle_share = 1.0 if local is not None else CONSTANTS.idle_share
    effective_s = busy_s + idle_share * (time.total_s.value - busy_s)
    pue = 1.0 if local is not None or grid is None else grid.pue_ratio
    value = effective_s / HOUR_S * node.power_w / _WATTS_PER_KW * pue
    span = time.total_s
    below, above = _ratio(span.low, span.value), _ratio(span.high, span.value)
    energy = Estimate(value=value, low=value * node.low * below, high=value * node.high * above, basis=node.basis)
    return EnergyForecast(energy_kwh=energy, carbon_gco2e=_carbon(energy, grid, local), grid=_grid_words(grid, local))


def node_power(
    device: Device,
    *,
    gpus: int,
    local: LocalMachineSpec | None = None,
    waiting: bool = False,
    constants: EnergyConstants = CONSTANTS,
) -> NodePower:
    """Draw of a machine with that many cards; `waiting` when traffic and not arithmetic sets the pace."""
    if local is not None and device.kind == "cpu":
        return NodePower(power_w=local.power_w, low=1.0, high=1.0, basis="the spec's power of this machine x time")
    cards = gpus if device.kind == "gpu" else 1
    ratio = (constants.waiting_load if waiting else constants.compute_load) + constants.rest_of_node
    if device.power_w is None:
        watts = constants.unknown_gpu_w if device.kind == "gpu" else constants.unknown_cpu_w
        low, high = constants.unknown_ratios
        return NodePower(
            power_w=cards * watts * ratio, low=low, high=high, basis="power not established: a middling one"
        )
    return NodePower(
        power_w=cards * device.power_w * ratio,
        low=constants.low,
        high=constants.high,
        basis=f"{ratio:.2f} x rated power of the cards, as measured on whole nodes",
    )


def _carbon(
    energy: Estimate[float],
    grid: GridFactor | None,
    local: LocalMachineSpec | None,
    constants: EnergyConstants = CONSTANTS,
) -> Estimate[float] | None:
    if local is not None:
        return energy.scaled(local.grid_gco2e_per_kwh)
    if grid is None:
        return None
    low, high = constants.world_ratios if "world" in grid.place.lower() else constants.place_ratios
    factor = grid.carbon_gco2e_per_kwh
    return Estimate(
        value=energy.value * factor,
        low=energy.low * factor * low,
        high=energy.high * factor * high,
        basis=f"{energy.basis}; {factor:g} g/kWh, {grid.method}",
    )


def _grid_words(grid: GridFactor | None, local: LocalMachineSpec | None) -> str:
    if local is not None:
        return f"the spec's grid, {local.grid_gco2e_per_kwh:g} g/kWh"
    if grid is None:
        return "unknown"
    year = f", {grid.year}" if grid.year else ""
    return f"{grid.place}{year}, {grid.carbon_gco2e_per_kwh:g} g/kWh, {grid.method}"


def _ratio(end: float, value: float) -> float:
    return end / value if value else 1.0
