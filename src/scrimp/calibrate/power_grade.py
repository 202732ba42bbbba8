"""Forecasts of power held against measured nodes."""

from collections.abc import Iterable

from scrimp.calibrate.outcome import Outcome
from scrimp.calibrate.table import Row
from scrimp.estimate.energy import CONSTANTS as ENERGY


def power_outcomes(rows: Iterable[Row]) -> list[Outcome]:
    """Mean power of whole nodes while training; rows that hold a maximum are left out."""
    found: list[Outcome] = []
    for row in rows:
        if "MAXIMUM" in row["source"] or not row["run_minutes"]:
            continue
        load = ENERGY.compute_load if row["nodes"] == "1" else ENERGY.waiting_load
        watts = float(row["gpu_tdp_w"]) * int(row["n_gpus_per_node"]) * (load + ENERGY.rest_of_node)
        found.append(
            Outcome(
                group=row["system"],
                label=row["system"],
                forecast=watts,
                low=watts * ENERGY.low,
                high=watts * ENERGY.high,
                measured=float(row["mean_node_power_w"]),
            )
        )
    return found
