"""Forecasts for CPUs held against this project's own runs."""

from dataclasses import replace

from scrimp.calibrate.outcome import Outcome
from scrimp.calibrate.process_rows import ProcessRow
from scrimp.core.units import GIB
from scrimp.estimate.memory.process import process_forecast
from scrimp.estimate.time.arithmetic import EVALUATION, arithmetic_of, training_passes
from scrimp.estimate.time.cpu_speed import CONSTANTS as CPU
from scrimp.estimate.time.cpu_speed import cpu_chip_of, cpu_micro_step_s
from scrimp.estimate.time.roofline import MicroStep


def process_outcome(row: ProcessRow) -> Outcome:
    """Peak resident memory of this project's trainer on a CPU."""
    estimate = process_forecast(row.case, device_class=row.device.device_class).peak_bytes
    return Outcome(
        group=row.row["model"],
        label=f"{row.row['model']} {row.row['method']} {row.row['micro_batch_tokens']}",
        forecast=estimate.value / GIB,
        low=estimate.low / GIB,
        high=estimate.high / GIB,
        measured=float(row.row["peak_rss_bytes"]) / GIB,
    )


def cpu_outcomes(row: ProcessRow) -> list[Outcome]:
    """CPU seconds of a step and of a forward pass with one thread, wall seconds of a step in whole runs."""
    constants = CPU if row.row["threads"] != "1" else replace(CPU, several_cores=1.0)
    recipe, tuning = row.case.recipe, row.case.tuning
    chip = cpu_chip_of(row.device, recipe.compute_dtype, constants=constants)
    training = training_passes(frozen_base=tuning.frozen_base, checkpointing=recipe.checkpointing)
    columns = (
        {"step_s": training} if row.row["step_s"] else {"cpu_s_per_step": training, "cpu_s_per_evaluation": EVALUATION}
    )
    measured = {column: passes for column, passes in columns.items() if row.row[column]}
    found: list[Outcome] = []
    for column, passes in measured.items():
        # A step of the whole runs had 753 tokens, three quarters of the fullest.
        tokens = 753 if column == "step_s" else row.case.tokens
        step = MicroStep(
            tokens=tokens,
            scored_tokens=tokens * row.case.trained_share,
            context_tokens=row.case.longest_row_tokens,
            passes=passes,
            frozen_base=tuning.frozen_base,
        )
        widths = row.case.shape.hidden + row.case.shape.intermediate
        seconds = cpu_micro_step_s(arithmetic_of(row.case.shape), step, chip, widths=widths, constants=constants)
        found.append(
            Outcome(
                group=row.row["model"],
                label=f"{row.row['model']} {column}",
                forecast=seconds,
                low=seconds * CPU.low,
                high=seconds * CPU.high,
                measured=float(row.row[column]),
            )
        )
    return found
