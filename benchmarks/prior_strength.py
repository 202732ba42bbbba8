"""How strongly a user's own runs are drawn towards no correction: k of n / (n + k), judged on published runs.

    python benchmarks/prior_strength.py

Every published (source, GPU) with at least four runs stands for a user, and is forecast by a fit that saw nothing of
its source, as a user's own machine is. Errors are means of |log(measured / corrected forecast)|: of a run that was left
out alone, and of a run whose whole (method, model) was left out. The last column is how often the corrected 80%
interval held the first.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import exp, log
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parent))

from grade_forecasts import table

from scrimp.calibrate.crossval import cross_validate
from scrimp.calibrate.memory.fit import fit_memory, outcome_of
from scrimp.calibrate.memory.grade import measured_rows
from scrimp.calibrate.memory.rows import MemoryRow, memory_rows
from scrimp.calibrate.outcome import Outcome
from scrimp.calibrate.own_runs import OwnRun, Strength, best_correction, holds
from scrimp.calibrate.time.fit import unseen_sources
from scrimp.calibrate.time.rows import time_rows
from scrimp.core.correction import Corrected, Correction
from scrimp.estimate.memory.fitted import fitted_memory
from scrimp.estimate.time.fitted import fitted_time

# Fewer runs of a user say nothing about leaving one out.
_FEWEST = 4
STRENGTHS = [Strength(runs=runs, above=above) for above in (1.0, 2.0, 4.0, 8.0, 16.0) for runs in (0.25, 1.0, 2.0)]


def main() -> None:
    """Print a table for memory and one for time."""
    for name, runs in (("memory", list(memory_runs())), ("seconds a token", list(time_runs()))):
        users = _users(runs)
        print(f"\n{name}: {sum(map(len, users))} runs of {len(users)} users")
        print(f"  {'k above':>8}{'k of runs':>11}{'a run left out':>16}{'a model left out':>18}{'interval held':>15}")
        print(f"  {'no correction':>19}{_cells(users, None)}")
        for strength in STRENGTHS:
            print(f"  {strength.above:8g}{strength.runs:11g}{_cells(users, strength)}")


def memory_runs() -> Iterable[OwnRun]:
    """Published peaks as if a user had measured them, forecast by a fit that saw nothing of that user."""

    def fit(kept: Sequence[MemoryRow]) -> Callable[[MemoryRow], Outcome]:
        fitted = fit_memory(kept)
        ends = fitted_memory().intervals
        return lambda row: outcome_of(row, replace(fitted, intervals=ends))

    rows = measured_rows(list(memory_rows(table("measured_memory.csv"))))
    for row, outcome in zip(rows, cross_validate(rows, group_of=lambda row: row.row["source"], fit=fit), strict=True):
        cells = row.row
        user = f"{cells['source']}, {cells['gpu']}, {cells['metric']}"
        yield _own(outcome, "peak_bytes", user, cells["method"], cells["model"])


def time_runs() -> Iterable[OwnRun]:
    """Published speeds as times, likewise."""
    rows = list(time_rows(table("measured_time.csv")))
    ends = fitted_time().interval(card=True, software=False, mixture=False, cards=1)
    for row, rate in zip(rows, unseen_sources(rows, start=fitted_time()), strict=True):
        seconds = Outcome(
            group=rate.group, label=rate.label, forecast=1 / rate.forecast, low=ends.low / rate.forecast,
            high=ends.high / rate.forecast, measured=1 / rate.measured,
        )  # fmt: skip
        cells = row.row
        yield _own(seconds, "train_s", f"{cells['source']}, {cells['gpu']}", cells["method"], cells["model"])


def _own(outcome: Outcome, quantity: Corrected, user: str, method: str, model: str) -> OwnRun:
    return OwnRun(
        run_id=outcome.label, quantity=quantity, device=user, method=method, model=model, forecast=outcome.forecast,
        low=outcome.low, high=outcome.high, measured=outcome.measured,
    )  # fmt: skip


def _users(runs: Iterable[OwnRun]) -> list[list[OwnRun]]:
    found: dict[str, list[OwnRun]] = defaultdict(list)
    for run in runs:
        if run.is_usable:
            found[run.device].append(run)
    return [mine for mine in found.values() if len(mine) >= _FEWEST]


def _cells(users: Sequence[Sequence[OwnRun]], strength: Strength | None) -> str:
    runs: list[float] = []
    models: list[float] = []
    held: list[bool] = []
    for mine in users:
        for run in mine:
            found = _learnt([other for other in mine if other is not run], run, strength)
            runs.append(_error(run, found))
            held.append(holds(run, found))
            elsewhere = [other for other in mine if other.path != run.path]
            if len(elsewhere) >= _FEWEST - 1:
                models.append(_error(run, _learnt(elsewhere, run, strength)))
    return f"{exp(fmean(runs)) - 1:16.2%}{exp(fmean(models)) - 1:18.2%}{fmean(held):15.1%}"


def _learnt(runs: Sequence[OwnRun], run: OwnRun, strength: Strength | None) -> Correction | None:
    return None if strength is None else best_correction(runs, run.path, strength=strength)


def _error(run: OwnRun, found: Correction | None) -> float:
    return abs(run.log_ratio - (0.0 if found is None else log(found.value)))


if __name__ == "__main__":
    main()
