"""Forecasts of power held against measured nodes, and the ratios that the measured nodes themselves give.

A *system* is one maker's machine in one place: rows of one system resemble each other, so a forecast is judged on the
system that its ratio was not taken from (leave one system out), beside the usual estimate: cards x rated power.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean
from typing import cast

from scrimp.calibrate.outcome import Outcome
from scrimp.calibrate.table import Row
from scrimp.estimate.energy.power import CONSTANTS, MEASURED_CARDS, Load


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerRow:
    """Mean power of a whole node under one load. `rated_w` is that of all its cards together."""

    system: str
    node: str
    workload: str
    load: Load
    rated_w: float
    measured_w: float

    @property
    def ratio(self) -> float:
        """Node power over the rated power of its cards."""
        return self.measured_w / self.rated_w


def power_rows(rows: Iterable[Row]) -> list[PowerRow]:
    """The rows that are means of servers: maxima and readings at home are in the table, and not graded."""
    return [
        PowerRow(
            system=row["system"],
            node=row["node"],
            workload=row["workload"],
            load=cast("Load", row["load"]),
            rated_w=float(row["gpu_tdp_w"]) * int(row["n_gpus_per_node"]),
            measured_w=float(row["mean_node_power_w"]),
        )
        for row in rows
        if row["graded"] == "y" and int(row["n_gpus_per_node"]) == MEASURED_CARDS
    ]


def fit_ratios(rows: Iterable[PowerRow]) -> Mapping[Load, float]:
    """Ratio by load: geometric mean over the systems' own, so that many rows of one system count once."""
    found: dict[Load, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row.load][row.system].append(log(row.ratio))
    return {load: exp(fmean(fmean(logs) for logs in systems.values())) for load, systems in found.items()}


def power_outcomes(rows: Iterable[Row]) -> list[Outcome]:
    """The product's own forecast of every graded row."""
    return [_outcome(row, CONSTANTS.server[row.load]) for row in power_rows(rows)]


def left_out_outcomes(rows: Iterable[Row]) -> list[Outcome]:
    """Every row by the ratio of the other systems alone; a load that no other system was seen under drops out."""
    known = power_rows(rows)
    found: list[Outcome] = []
    for row in known:
        ratio = fit_ratios(other for other in known if other.system != row.system).get(row.load)
        if ratio is not None:
            found.append(_outcome(row, ratio))
    return found


def rated_power_outcomes(rows: Iterable[Row]) -> list[Outcome]:
    """The usual estimate of the same rows: cards x rated power, whatever they do (ML CO2 Impact and many others)."""
    return [_outcome(row, 1.0) for row in power_rows(rows)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerErrors:
    """Mean absolute error of one estimator on the rows that all can judge: on one node at work, and by load."""

    estimator: str
    rows: int
    by_load: Mapping[Load, float]
    overall: float


def power_errors(rows: Sequence[Row]) -> list[PowerErrors]:
    """The ratios of other systems, the product as shipped, and the usual estimate, on the same rows."""
    judged = {outcome.label for outcome in left_out_outcomes(rows)}
    estimators = {
        "scrimp, each system by the others": left_out_outcomes(rows),
        "scrimp, as shipped": power_outcomes(rows),
        "cards x rated power": rated_power_outcomes(rows),
    }
    found: list[PowerErrors] = []
    for name, outcomes in estimators.items():
        common = [outcome for outcome in outcomes if outcome.label in judged]
        loads: dict[Load, list[float]] = defaultdict(list)
        for outcome in common:
            loads[cast("Load", outcome.label.partition(":")[0])].append(abs(outcome.error))
        by_load: dict[Load, float] = {load: fmean(errors) for load, errors in loads.items()}
        overall = fmean(abs(outcome.error) for outcome in common)
        found.append(PowerErrors(estimator=name, rows=len(common), by_load=by_load, overall=overall))
    return found


def power_lines(rows: Sequence[Row]) -> list[str]:
    """`power_errors` as a table for a terminal."""
    loads: tuple[Load, ...] = ("compute", "communication", "idle")
    lines = [
        "power of nodes: mean error when one node trains, in clusters, idle, and of all",
        f"  {'':36}{'rows':>5}{'one node':>10}{'clusters':>10}{'idle':>8}{'all':>8}",
    ]
    for line in power_errors(rows):
        cells = "".join(f"{line.by_load[load]:>{width}.1%}" for load, width in zip(loads, (10, 10, 8), strict=True))
        lines.append(f"  {line.estimator:36}{line.rows:5d}{cells}{line.overall:>8.1%}")
    return lines


def _outcome(row: PowerRow, ratio: float) -> Outcome:
    watts = ratio * row.rated_w
    low, high = CONSTANTS.measured[row.load]
    return Outcome(
        group=row.system,
        label=f"{row.load}: {row.node}, {row.workload}",
        forecast=watts,
        low=watts * low,
        high=watts * high,
        measured=row.measured_w,
    )
