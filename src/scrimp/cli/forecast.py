"""Forecast whole tables of runs: memory or speed, row by row, into a CSV."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from scrimp.cli.options import json_option

if TYPE_CHECKING:
    from scrimp.workflows.forecast import TableForecast


@click.command()
@click.option("--memory", type=click.Path(path_type=Path), metavar="ROWS.csv", help="Forecast the memory of all rows.")
@click.option("--time", "speed", type=click.Path(path_type=Path), metavar="ROWS.csv", help="Forecast their speed.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="OUT.csv", help="Where to; else stdout.")
@json_option
def command(memory: Path | None, speed: Path | None, output: Path | None, as_json: bool) -> None:
    """Forecast every row of a table of runs, whoever's software they were made with.

    \b
    scrimp forecast --memory rows.csv -o out.csv   GiB per GPU, of the figure that the column `metric` names
    scrimp forecast --time rows.csv -o out.csv     tokens a second per GPU

    Columns are those of the measured tables in calibration/; blanks are allowed and answers are not read. The output
    has the row's key, the forecast, its 80% interval, for memory what a card must have and whether the card of the row
    has it, and what the forecast rests on. A row that cannot be forecast is told and stops nothing.
    """
    from dataclasses import asdict

    from scrimp.cli.output import print_json, print_note, progress
    from scrimp.workflows.forecast import as_csv, forecast_table
    from scrimp.workflows.world import real_world

    if (memory is None) == (speed is None):
        raise click.UsageError("say one of --memory ROWS.csv and --time ROWS.csv")
    world = real_world(note=print_note)
    path = memory or speed or Path()
    with progress("forecasting") as on_row:
        table = forecast_table(path, kind="memory" if memory else "time", world=world, on_row=on_row)
    for bad in table.bad:
        print_note(f"line {bad.line} ({bad.key or 'no key'}): {bad.reason}")
    if output is not None:
        _write(output, as_csv(table))
    if as_json:
        print_json({"rows": [asdict(row) for row in table.rows], "bad": [asdict(row) for row in table.bad]})
    elif output is None:
        click.echo(as_csv(table), nl=False)
    else:
        print_note(summary(table, output))


def summary(table: "TableForecast", output: Path) -> str:
    """One line on what was written."""
    left = f", {len(table.bad)} rows could not be forecast" if table.bad else ""
    return f"{len(table.rows)} rows written to {output}{left}"


def _write(path: Path, text: str) -> None:
    from scrimp.core.errors import ResourceError

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ResourceError(
            what=f"{path} cannot be written: {error.strerror}",
            expected="a folder that can be written to",
            next_step="scrimp forecast ... -o out.csv",
        ) from error
