"""Time forecasts held against measured speed."""

from collections.abc import Sequence

from scrimp.calibrate.crossval import with_unseen_intervals
from scrimp.calibrate.outcome import Outcome
from scrimp.calibrate.time.fit import outcome_of, unseen_classes, unseen_groups, unseen_sources
from scrimp.calibrate.time.rows import TimeRow
from scrimp.estimate.time.fitted import fitted_time


def time_outcome(row: TimeRow) -> Outcome:
    """Tokens a second of one GPU, as shipped."""
    return outcome_of(row, fitted_time())


def unseen_time(rows: Sequence[TimeRow]) -> dict[str, list[Outcome]]:
    """Every row under fits that saw nothing of its group, of its source, of its class of GPU, with intervals alike.

    Fitting starts from the shipped constants, which saves steps; where it ends does not depend on it.
    """
    start = fitted_time()
    found = {
        "time": unseen_groups(rows, start=start),
        "time_sources": unseen_sources(rows, start=start),
        "time_classes": unseen_classes(rows, start=start),
    }
    return {name: with_unseen_intervals(outcomes) for name, outcomes in found.items()}
