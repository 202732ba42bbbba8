"""Forecasts for CPUs held against this project's own runs."""

from collections.abc import Iterator
from dataclasses import replace

from scrimp.calibrate.outcome import Outcome
from scrimp.calibrate.process.rows import ProcessRow
from scrimp.core.units import GIB
from scrimp.estimate.memory.process import process_forecast
from scrimp.estimate.time.arithmetic import EVALUATION, arithmetic_of, training_passes
from scrimp.estimate.time.cpu_speed import cpu_chip_of, cpu_constants, cpu_micro_step_s
from scrimp.estimate.time.roofline import MicroStep
from scrimp.estimate.time.speed import FILL


def process_outcome(row: ProcessRow) -> Outcome:
    """Peak resident memory of this project's trainer on a CPU."""
    forecast = process_forecast(row.case, device_class=row.device.device_class, steps=row.growing_steps)
    estimate = forecast.peak_bytes
    return Outcome(
        group=row.row["model"],
        label=f"{row.row['model']} {row.row['method']} {row.row['micro_batch_tokens']}",
        forecast=estimate.value / GIB,
        low=estimate.low / GIB,
        high=estimate.high / GIB,
        measured=float(row.row["peak_rss_bytes"]) / GIB,
    )


def cpu_outcomes(row: ProcessRow) -> list[Outcome]:
    """CPU seconds of a step and of a forward pass with one thread; wall seconds of both in whole runs."""
    constants = cpu_constants(row.device.device_class)
    if row.row["threads"] == "1":
        constants = replace(constants, several_cores=1.0)
    chip = cpu_chip_of(row.device, row.case.recipe.compute_dtype, constants=constants)
    widths = row.case.shape.hidden + row.case.shape.intermediate
    found: list[Outcome] = []
    for column, step, count in _timed(row):
        seconds = count * cpu_micro_step_s(arithmetic_of(row.case.shape), step, chip, widths=widths)
        found.append(
            Outcome(
                group=row.row["model"],
                label=f"{row.row['model']} {column}",
                forecast=seconds,
                low=seconds * constants.low,
                high=seconds * constants.high,
                measured=float(row.row[column]),
            )
        )
    return found


def _timed(row: ProcessRow) -> Iterator[tuple[str, MicroStep, float]]:
    """What a row measured: its column, the micro-batch, and how many of them. A mean one has fewer tokens than the
    fullest, fewer of them carry a label, and their rows are shorter.
    """
    cells, tuning = row.row, row.case.tuning
    passes = training_passes(frozen_base=tuning.frozen_base, checkpointing=row.case.recipe.checkpointing)
    fullest = MicroStep(
        tokens=row.case.tokens,
        scored_tokens=row.case.scored_tokens,
        context_tokens=row.case.longest_row_tokens,
        passes=passes,
        frozen_base=tuning.frozen_base,
    )
    if cells["cpu_s_per_step"] and not cells["step_s"]:
        yield "cpu_s_per_step", fullest, 1.0
        yield "cpu_s_per_evaluation", replace(fullest, passes=EVALUATION), 1.0
    for column, total, micro, kind in (
        ("step_s", "step_tokens", None, passes),
        ("evaluation_s", "evaluation_tokens", row.case.tokens * FILL, EVALUATION),
    ):
        if cells[column]:
            tokens = micro or float(cells[total])
            scored, context = tokens * float(cells["mean_scored_share"]), float(cells["mean_context_tokens"])
            mean = replace(fullest, tokens=tokens, scored_tokens=scored, context_tokens=context, passes=kind)
            yield column, mean, float(cells[total]) / tokens
