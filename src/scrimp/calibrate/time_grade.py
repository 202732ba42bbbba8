"""Time forecasts held against measured speed."""

from scrimp.calibrate.outcome import Outcome
from scrimp.calibrate.time_rows import TimeRow
from scrimp.estimate.time.roofline import micro_step_s
from scrimp.estimate.time.speed import MEASURED_CLASS, UNMEASURED_CLASS


def time_outcome(row: TimeRow) -> Outcome:
    """Tokens a second of one GPU."""
    rate = row.step.tokens / micro_step_s(row.work, row.step, row.chip, stack=row.stack)
    interval = MEASURED_CLASS if row.chip.measured else UNMEASURED_CLASS
    return Outcome(
        group=row.group,
        label=f"{row.row['model']} {row.row['method']} {row.row['gpu']} x {row.row['n_gpus']}",
        forecast=rate,
        low=rate / interval.high,
        high=rate / interval.low,
        measured=row.tokens_per_s_per_gpu,
    )
