"""Memory forecasts held against measured peaks, and the verdict "fits" against runs that ran or did not."""

from collections.abc import Iterable, Sequence

from scrimp.calibrate.crossval import with_unseen_intervals
from scrimp.calibrate.memory.fit import need_bytes, outcome_of, unseen_outcomes, usable, with_driver_figures
from scrimp.calibrate.memory.rows import MemoryRow
from scrimp.calibrate.outcome import Outcome, rounded, share
from scrimp.core.units import GIB
from scrimp.estimate.memory.fitted import fitted_memory


def graded_memory(rows: Sequence[MemoryRow]) -> dict[str, list[Outcome]]:
    """What the shipped fit says of the rows: `memory` (one card, fully stated), `memory_sharded`, `memory_device`."""
    return _sets(rows, [memory_outcome(row) for row in rows])


def unseen_memory(rows: Sequence[MemoryRow]) -> dict[str, list[Outcome]]:
    """The same sets, each row under a fit and an interval that saw no row of its group."""
    return _sets(rows, with_unseen_intervals(unseen_outcomes(rows)))


def measured_rows(rows: Sequence[MemoryRow]) -> list[MemoryRow]:
    """The rows that have an answer, with the driver's figures as rows of their own."""
    return [row for row in with_driver_figures(rows) if usable(row)]


def _sets(rows: Sequence[MemoryRow], outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {"memory": [], "memory_sharded": [], "memory_device": []}
    for row, outcome in zip(rows, outcomes, strict=True):
        if row.measured_gib == row.smi_gib:
            found["memory_device"].append(outcome)
        elif row.case.shards > 1:
            found["memory_sharded"].append(outcome)
        elif row.case.gpus == 1 and row.row["confidence"] == "high":
            found["memory"].append(outcome)
    return found


def memory_outcome(row: MemoryRow) -> Outcome:
    """The figure that the row's metric names, in GiB, under the shipped fit."""
    return outcome_of(row, fitted_memory())


def verdict_figures(rows: Iterable[MemoryRow]) -> dict[str, float]:
    """ "Fits" for runs that failed and for runs that ran on a known card; how often the need fell short."""
    failed: list[bool] = []
    ran: list[bool] = []
    short: list[bool] = []
    for row in rows:
        need = need_bytes(row, fitted_memory())
        if row.ran and row.measured_gib:
            short.append(need < 0.9 * row.measured_gib * GIB)
        if row.capacity_gib is not None:
            (ran if row.ran else failed).append(need <= row.capacity_gib * GIB)
    return rounded(
        {
            "oom_rows": len(failed),
            "oom_called_fits": share(failed),
            "ran_called_fits": share(ran),
            "need_under_by_10": share(short),
        }
    )
