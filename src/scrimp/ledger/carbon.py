"""CO2e of a run: the electricity in its bill, at the grid figure of its plan."""

from collections.abc import Sequence
from dataclasses import dataclass

from scrimp.core.market import GridMethod
from scrimp.core.plan import Plan
from scrimp.core.run import LedgerEntry
from scrimp.core.units import format_co2, format_energy
from scrimp.ledger.bill import billed_kwh


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCarbon:
    """What a run used and emitted so far. `energy_source` says how the energy is known, `method` how the grid counts.

    Runs counted by different methods are not added up: `method` is there to tell them apart.
    """

    energy_kwh: float
    energy_source: str
    carbon_gco2e: float | None
    method: GridMethod | None
    grid: str

    @property
    def words(self) -> str:
        """`12.3 Wh, measured by ...; 5.84 g CO2e at this machine: 475 g/kWh, as the spec states it`."""
        carbon = "CO2e unknown" if self.carbon_gco2e is None else f"{format_co2(self.carbon_gco2e)} CO2e at {self.grid}"
        return f"{format_energy(self.energy_kwh)}, {self.energy_source}; {carbon}"


def run_carbon(plan: Plan | None, entries: Sequence[LedgerEntry]) -> RunCarbon | None:
    """Of all the attempts that were billed; None where no electricity was: a rented machine's is its owner's."""
    energy_kwh = billed_kwh(entries)
    if energy_kwh is None:
        return None
    sources = dict.fromkeys(entry.source for entry in entries if entry.kind == "electricity")
    figures = () if plan is None else plan.chosen.energy.carbon
    grid = figures[0].grid if figures else None
    return RunCarbon(
        energy_kwh=energy_kwh,
        energy_source="; ".join(sources),
        carbon_gco2e=None if grid is None else energy_kwh * grid.pue_ratio * grid.carbon_gco2e_per_kwh,
        method=None if grid is None else grid.method,
        grid=figures[0].words if figures else "an unknown grid",
    )
