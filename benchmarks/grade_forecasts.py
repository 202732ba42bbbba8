"""Grade the forecasts of memory, time and power on published measurements.

    python benchmarks/grade_forecasts.py            print the grades beside those recorded
    python benchmarks/grade_forecasts.py --write    record them in calibration/grades.json and redraw the charts

Errors are |forecast / measured - 1|. Within a group (source and model) they are averaged first.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

sys.path.insert(0, str(Path(__file__).parent))

from error_chart import Point, write_chart
from published_rows import (
    CALIBRATION,
    MemoryRow,
    ProcessRow,
    TimeRow,
    memory_rows,
    process_rows,
    read,
    time_rows,
)

from scrimp.core.estimate import Estimate
from scrimp.core.forecast import MemoryForecast
from scrimp.core.units import GIB
from scrimp.estimate.arithmetic import EVALUATION, arithmetic_of, training_passes
from scrimp.estimate.cpu_speed import CONSTANTS as CPU
from scrimp.estimate.cpu_speed import cpu_chip_of, cpu_micro_step_s
from scrimp.estimate.energy import CONSTANTS as ENERGY
from scrimp.estimate.memory import card_forecast
from scrimp.estimate.process_memory import process_forecast
from scrimp.estimate.roofline import MicroStep, micro_step_s
from scrimp.estimate.speed import MEASURED_CLASS, UNMEASURED_CLASS

GRADES = CALIBRATION / "grades.json"
CHARTS = Path(__file__).parents[1] / "docs" / "explanation"
Grades = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One forecast against its measurement, in any unit."""

    group: str
    label: str
    forecast: float
    low: float
    high: float
    measured: float

    @property
    def error(self) -> float:
        """forecast / measured - 1: negative when the forecast was too low."""
        return self.forecast / self.measured - 1


def main() -> None:
    """Print, and with --write record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help="record the grades and redraw the charts")
    write = parser.parse_args().write
    grades, outcomes = grade()
    recorded = json.loads(GRADES.read_text(encoding="utf-8")) if GRADES.exists() else {}
    print_grades(grades, recorded)
    print_peers(grades)
    if write:
        GRADES.write_text(json.dumps(grades, indent=2) + "\n", encoding="utf-8")
        for name, unit in (("memory", "GiB"), ("time", "tokens/s per GPU")):
            points = [Point(measured=o.measured, forecast=o.forecast, label=o.label) for o in outcomes[name]]
            write_chart(CHARTS / f"{name}_error.svg", points, title=f"{name}: forecast against measured", unit=unit)


def grade() -> tuple[Grades, dict[str, list[Outcome]]]:
    """All grades by formula, and the outcomes behind the charts."""
    rows = list(memory_rows())
    single = [row for row in rows if row.case.gpus == 1 and row.row["confidence"] == "high"]
    sharded = [row for row in rows if row.case.shards > 1 and row.row["confidence"] != "low"]
    memory = [peak_outcome(row) for row in single if row.ran]
    times = [time_outcome(row) for row in time_rows()]
    outcomes = {
        "memory": memory,
        "memory_sharded": [peak_outcome(row) for row in sharded if row.ran],
        "memory_device": [device_outcome(row) for row in single if row.ran and row.smi_gib],
        "time": times,
        "power": power_outcomes(),
        "process_memory": [process_outcome(row) for row in process_rows()],
        "cpu_time": [outcome for row in process_rows() for outcome in cpu_outcomes(row)],
    }
    grades = {name: error_figures(found) for name, found in outcomes.items()}
    grades["memory"] |= verdict_figures(single)
    return grades, outcomes


def peak_outcome(row: MemoryRow) -> Outcome:
    """Allocated peak; reserved figures of fixed lengths and figures of unstated kind are held against it too."""
    return _memory_outcome(row, row.measured_gib, lambda forecast: forecast.peak_bytes)


def device_outcome(row: MemoryRow) -> Outcome:
    """What nvidia-smi showed, less an idle card."""
    return _memory_outcome(row, row.smi_gib or 0.0, lambda forecast: forecast.device_bytes)


def _memory_outcome(
    row: MemoryRow, measured_gib: float, figure: Callable[[MemoryForecast], Estimate[float]]
) -> Outcome:
    estimate = figure(card_forecast(row.case))
    return Outcome(
        group=row.group,
        label=f"{row.row['model']} {row.row['method']} {row.row['micro_batch']} x {row.row['seq_len']}",
        forecast=estimate.value / GIB,
        low=estimate.low / GIB,
        high=estimate.high / GIB,
        measured=measured_gib,
    )


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


def power_outcomes() -> list[Outcome]:
    """Mean power of whole nodes while training; rows that hold a maximum are left out."""
    found: list[Outcome] = []
    for row in read("measured_power.csv"):
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


def process_outcome(row: ProcessRow) -> Outcome:
    """Peak resident memory of this project's trainer on a CPU."""
    estimate = process_forecast(row.case).peak_bytes
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
    training = training_passes(frozen_base=tuning.frozen_base, checkpointing=recipe.gradient_checkpointing)
    measured = (
        {"step_s": training} if row.row["step_s"] else {"cpu_s_per_step": training, "cpu_s_per_evaluation": EVALUATION}
    )
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


def error_figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Count, errors, bias and how often the interval held."""
    errors = [outcome.error for outcome in outcomes]
    groups: dict[str, list[float]] = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.group].append(abs(outcome.error))
    return _rounded(
        {
            "rows": len(outcomes),
            "groups": len(groups),
            "mape_of_groups": fmean(fmean(found) for found in groups.values()),
            "mape": fmean(map(abs, errors)),
            "median": median(map(abs, errors)),
            "within_25": share(abs(error) <= 0.25 for error in errors),
            "under": share(error < 0 for error in errors),
            "under_by_10": share(error < -0.10 for error in errors),
            "interval_holds": share(outcome.low <= outcome.measured <= outcome.high for outcome in outcomes),
        }
    )


def verdict_figures(rows: Iterable[MemoryRow]) -> dict[str, float]:
    """ "Fits" by the need's value, and by its high end, for runs that failed and runs that ran on a known card."""
    failed: list[tuple[bool, bool]] = []
    ran: list[tuple[bool, bool]] = []
    short: list[bool] = []
    for row in rows:
        need = card_forecast(row.case).need_bytes
        if row.ran:
            short.append(need.value < 0.9 * row.measured_gib * GIB)
        if row.capacity_gib is None:
            continue
        fits = (need.value <= row.capacity_gib * GIB, need.high <= row.capacity_gib * GIB)
        (ran if row.ran else failed).append(fits)
    return _rounded(
        {
            "oom_rows": len(failed),
            "oom_called_fits": share(fits for fits, _ in failed),
            "oom_called_comfortable": share(comfortable for _, comfortable in failed),
            "ran_called_fits": share(fits for fits, _ in ran),
            "need_under_by_10": share(short),
        }
    )


def share(flags: Iterable[bool]) -> float:
    """How many of them, 0 to 1."""
    found = list(flags)
    return sum(found) / len(found) if found else 0.0


def _rounded(figures: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in figures.items()}


def print_grades(grades: Grades, recorded: Grades) -> None:
    """One block a formula; the recorded figure stands in brackets where it differs."""
    for formula, figures in grades.items():
        print(f"\n{formula}")
        for name, value in figures.items():
            before = recorded.get(formula, {}).get(name)
            note = "" if before is None or before == value else f"   (recorded {_figure(name, before)})"
            print(f"  {name:24}{_figure(name, value):>8}{note}")


def print_peers(grades: Grades) -> None:
    """Other estimators beside ours. Their figures are quoted: this script did not run them."""
    print("\nothers, quoted from calibration/peers.csv (same kind of rows, not run here)")
    print(f"  {'':36}{'rows':>5}{'mape':>8}{'median':>8}{'under':>8}{'OOM called fits':>17}")
    for kind in ("memory", "time"):
        own = grades[kind]
        cells = (own["rows"], own["mape"], own["median"], own["under"], own.get("oom_called_fits"))
        print(f"  {f'scrimp, {kind}':36}{_cells(cells)}")
        for row in read("peers.csv"):
            if row["kind"] == kind:
                names = ("rows", "mape", "median", "under_share", "oom_called_fits")
                print(f"  {row['estimator']:36}{_cells([float(row[name]) if row[name] else None for name in names])}")


def _cells(values: Sequence[float | None]) -> str:
    rows, *shares = values
    widths = (8, 8, 8, 17)
    return f"{rows or 0:5.0f}" + "".join(
        f"{'' if value is None else f'{value:.1%}':>{width}}" for value, width in zip(shares, widths, strict=True)
    )


def _figure(name: str, value: float) -> str:
    return f"{value:.0f}" if name in {"rows", "groups", "oom_rows"} else f"{value:.1%}"


if __name__ == "__main__":
    main()
