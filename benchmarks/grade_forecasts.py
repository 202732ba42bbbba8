"""Grade every forecast on measured runs: as shipped, and on groups that neither fit nor interval has seen.

    python benchmarks/grade_forecasts.py            print the grades beside those recorded
    python benchmarks/grade_forecasts.py --fit      first fit constants and intervals anew, into the package
    python benchmarks/grade_forecasts.py --write    record grades and coverage, redraw charts and tables of the docs

`make calibrate` does all three. Errors are |forecast / measured - 1|. A group (source, model and method) has one vote.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from coverage_chart import Bar, write_coverage_chart
from error_chart import Point, write_chart
from grade_peers import print_peers
from grade_tables import blocks, shown_regions, update_pages

from scrimp.calibrate.crossval import coverage
from scrimp.calibrate.fits import FITS, write_fit
from scrimp.calibrate.gradebook import Gradebook, gradebook
from scrimp.calibrate.outcome import rounded
from scrimp.calibrate.power.grade import power_lines
from scrimp.calibrate.table import Row, read_table

CALIBRATION = Path(__file__).parents[1] / "calibration"
GRADES, COVERAGE = CALIBRATION / "grades.json", CALIBRATION / "coverage.json"
DOCS = Path(__file__).parents[1] / "docs" / "explanation"
CHARTS = {"memory": "memory", "time": "time", "power": "power of nodes"}
Grades = dict[str, dict[str, float]]
Coverage = dict[str, dict[str, dict[str, float]]]


def main() -> None:
    """Print; with --fit fit before, with --write record after."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--fit", action="store_true", help="fit constants and intervals anew")
    parser.add_argument("--write", action="store_true", help="record the grades, redraw charts and tables")
    arguments = parser.parse_args()
    if arguments.fit:
        for fit in FITS:
            changed = write_fit(fit, table, today=datetime.now(UTC).date())
            print(f"fit of {fit.name}: {'written' if changed else 'as before'}")
    book = gradebook(table)
    grades, covered = grades_of(book), coverage_of(book)
    print_grades(grades, read_json(GRADES))
    print_coverage(covered)
    print_peers(book)
    print("", *power_lines(table("measured_power.csv")), sep="\n")
    if arguments.write:
        record(book, grades, covered)


def grade(*, refit: bool = False) -> Grades:
    """Grades as shipped; with `refit` those of unseen groups besides."""
    return grades_of(gradebook(table, refit=refit))


def grades_of(book: Gradebook) -> Grades:
    """Figures of every entry, and as `..._unseen` those of groups that nothing was fitted on."""
    found: Grades = {}
    for entry in book.entries:
        if entry.shipped:
            found[entry.name] = entry.figures
        if entry.unseen:
            found[f"{entry.name}_unseen"] = entry.unseen_figures
    return found


def coverage_of(book: Gradebook) -> Coverage:
    """How often intervals held unseen rows, by quantity and region."""
    return {
        quantity: {
            region: rounded({name: value for name, value in asdict(found).items() if name != "region"})
            for region, found in coverage(outcomes).items()
        }
        for quantity, outcomes in book.regions.items()
        if outcomes
    }


def record(book: Gradebook, grades: Grades, covered: Coverage) -> None:
    """grades.json, coverage.json, the charts, and the tables in the pages."""
    for path, found in ((GRADES, grades), (COVERAGE, covered)):
        path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    for name, title in CHARTS.items():
        entry = book.entry(name)
        # All memory in one picture; time once a row, though its regions ask three times.
        outcomes = book.regions["memory"] if name == "memory" else entry.unseen or entry.shipped
        points = [Point(measured=o.measured, forecast=o.forecast, label=o.label) for o in outcomes]
        seen = "" if outcomes is entry.shipped else ", groups not seen by the fit"
        write_chart(
            DOCS / f"{name}_error.svg", points, title=f"{title}: forecast against measured{seen}", unit=entry.unit
        )
    for quantity, regions in covered.items():
        bars = [
            Bar(name=name, groups=int(figures["groups"]), held=figures["by_group"])
            for name, figures in shown_regions(regions).items()
        ]
        title = f"{quantity}: how often the 80% interval held groups that it was not made from"
        write_coverage_chart(DOCS / f"{quantity}_coverage.svg", bars, title=title)
    update_pages(DOCS, blocks(grades, covered))


def table(name: str) -> list[Row]:
    """Rows of a table in calibration/."""
    return read_table(CALIBRATION / name)


def read_json(path: Path) -> Grades:
    """What was recorded; nothing where there is no file yet."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def print_grades(grades: Grades, recorded: Grades) -> None:
    """One block a forecast; the recorded figure stands in brackets where it differs."""
    for formula, figures in grades.items():
        print(f"\n{formula}")
        for name, value in figures.items():
            before = recorded.get(formula, {}).get(name)
            note = "" if before is None or before == value else f"   (recorded {_figure(name, before)})"
            print(f"  {name:24}{_figure(name, value):>8}{note}")


def print_coverage(covered: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """The share of unseen groups and rows that the 80% interval held, by region."""
    for quantity, regions in covered.items():
        print(f"\n{quantity}: 80% intervals on unseen groups {'':16}groups   rows   held (groups)   held (rows)")
        for name, figures in shown_regions(regions).items():
            print(
                f"  {name:52}{figures['groups']:7.0f}{figures['rows']:7.0f}{figures['by_group']:16.1%}"
                f"{figures['by_row']:14.1%}"
            )


def _figure(name: str, value: float) -> str:
    return f"{value:.0f}" if name in {"rows", "groups", "oom_rows"} else f"{value:.1%}"


if __name__ == "__main__":
    main()
