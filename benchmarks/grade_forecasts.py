"""Grade the forecasts of memory, time and power on published measurements.

    python benchmarks/grade_forecasts.py            print the grades beside those recorded
    python benchmarks/grade_forecasts.py --write    record them in calibration/grades.json and redraw the charts

Errors are |forecast / measured - 1|. Within a group (source and model) they are averaged first.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from error_chart import Point, write_chart
from grade_peers import print_peers

from scrimp.calibrate.memory_grade import graded_memory, measured_rows, unseen_memory, verdict_figures
from scrimp.calibrate.memory_rows import memory_rows
from scrimp.calibrate.outcome import Outcome, error_figures
from scrimp.calibrate.power_grade import power_lines, power_outcomes
from scrimp.calibrate.process_grade import cpu_outcomes, process_outcome
from scrimp.calibrate.process_rows import process_rows
from scrimp.calibrate.table import Row, read_table
from scrimp.calibrate.time_grade import time_outcome
from scrimp.calibrate.time_rows import time_rows

CALIBRATION = Path(__file__).parents[1] / "calibration"
GRADES = CALIBRATION / "grades.json"
CHARTS = Path(__file__).parents[1] / "docs" / "explanation"
Grades = dict[str, dict[str, float]]


def main() -> None:
    """Print, and with --write record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help="record the grades and redraw the charts")
    write = parser.parse_args().write
    grades, outcomes = grade()
    recorded = json.loads(GRADES.read_text(encoding="utf-8")) if GRADES.exists() else {}
    print_grades(grades, recorded)
    print_peers()
    print("", *power_lines(table("measured_power.csv")), sep="\n")
    if write:
        GRADES.write_text(json.dumps(grades, indent=2) + "\n", encoding="utf-8")
        for name, unit in (("memory", "GiB"), ("time", "tokens/s per GPU")):
            points = [Point(measured=o.measured, forecast=o.forecast, label=o.label) for o in outcomes[name]]
            write_chart(CHARTS / f"{name}_error.svg", points, title=f"{name}: forecast against measured", unit=unit)


def grade() -> tuple[Grades, dict[str, list[Outcome]]]:
    """All grades by formula, and the outcomes behind the charts."""
    rows = list(memory_rows(table("measured_memory.csv")))
    single = [row for row in rows if row.case.gpus == 1 and row.row["confidence"] == "high"]
    measured = measured_rows(rows)
    bandwidths = {row["gpu"]: float(row["bandwidth_gb_s"]) * 1e9 for row in table("gpu_bandwidth.csv")}
    processes = list(process_rows(table("measured_process.csv")))
    outcomes = {
        **graded_memory(measured),
        **{f"{name}_unseen": found for name, found in unseen_memory(measured).items()},
        "time": [time_outcome(row) for row in time_rows(table("measured_time.csv"), bandwidths=bandwidths)],
        "power": power_outcomes(table("measured_power.csv")),
        "process_memory": [process_outcome(row) for row in processes],
        "cpu_time": [outcome for row in processes for outcome in cpu_outcomes(row)],
    }
    grades = {name: error_figures(found) for name, found in outcomes.items()}
    grades["memory"] |= verdict_figures(single)
    return grades, outcomes


def table(name: str) -> list[Row]:
    """Rows of a table in calibration/."""
    return read_table(CALIBRATION / name)


def print_grades(grades: Grades, recorded: Grades) -> None:
    """One block a formula; the recorded figure stands in brackets where it differs."""
    for formula, figures in grades.items():
        print(f"\n{formula}")
        for name, value in figures.items():
            before = recorded.get(formula, {}).get(name)
            note = "" if before is None or before == value else f"   (recorded {_figure(name, before)})"
            print(f"  {name:24}{_figure(name, value):>8}{note}")


def _figure(name: str, value: float) -> str:
    return f"{value:.0f}" if name in {"rows", "groups", "oom_rows"} else f"{value:.1%}"


if __name__ == "__main__":
    main()
