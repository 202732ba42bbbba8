"""Show one run in full: forecast against measured, attempts, answers, entries, files."""

from typing import TYPE_CHECKING, Any

import click

from scrimp.cli.options import json_option

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from scrimp.workflows.runs import ShownRun


PIPED_WIDTH = 160


@click.command()
@click.argument("run", default="last")
@json_option
def command(run: str, as_json: bool) -> None:
    """Show all about RUN: its id, the beginning of its id, its folder, or last (the default).

    \b
    scrimp show                    the newest run
    scrimp show 20250601-12        the run whose id begins so
    scrimp show runs/quickstart --json
    """
    from scrimp.cli.output import print_json, print_note, print_renderables, stdout_console
    from scrimp.workflows.runs import show_run
    from scrimp.workflows.world import real_world

    shown = show_run(run, world=real_world(note=print_note))
    if as_json:
        print_json(document(shown))
    else:
        console = stdout_console(piped_width=PIPED_WIDTH)
        print_renderables(*screen(shown, width=console.width), console=console)


def document(shown: "ShownRun") -> dict[str, Any]:
    """The run as plain JSON values."""
    from scrimp.cli.runs import document as run_document
    from scrimp.spec.codec import dump

    history, holder = shown.history, shown.trained_by
    return {
        **run_document(shown.line),
        "forecasts": {name: dump(forecast) for name, forecast in shown.forecasts.items()},
        "attempts_in_full": [{**dump(attempt), "duration_s": attempt.duration_s} for attempt in history.attempts],
        "evaluations": [dump(item) for item in history.evaluations],
        "samples": [dump(item) for item in history.samples],
        "entries": [dump(entry) for entry in shown.entries],
        "carbon": None if shown.carbon is None else dump(shown.carbon),
        "files": [dump(item) for item in shown.files],
        "failure": history.failure,
        "trained_by": None if holder is None else dump(holder),
        "ledger": shown.summary.ledger_url,
        "next": shown.summary.next_step,
    }


def screen(shown: "ShownRun", *, width: int) -> "list[RenderableType]":
    """Everything for people, the outcome first."""
    from rich.text import Text

    from scrimp.cli.summary import summary_renderables

    *outcome, files = summary_renderables(shown.summary)
    parts: list[RenderableType] = [outcome[0], _facts(shown), "", *_apart(outcome[1:])]
    if shown.forecasts and not shown.line.record.graded:
        parts += [_forecasts(shown), ""]
    if shown.history.attempts:
        parts += [*_attempts(shown, width=width), ""]
    parts += [*_entries(shown, width=width), ""] if shown.entries else [Text("no ledger entries yet"), ""]
    return [*parts, files]


def _apart(items: "list[RenderableType]") -> "list[RenderableType]":
    return [part for item in items for part in (item, "")]


def _facts(shown: "ShownRun") -> "Table":
    from scrimp.cli.runs import state_words
    from scrimp.core.units import format_bytes, format_duration, format_usd, plural

    line, record, history = shown.line, shown.line.record, shown.history
    forecast = "unknown" if record.forecast_usd is None else format_usd(record.forecast_usd)
    steps = f"{record.steps_done} of {record.steps_planned} {plural(record.steps_planned, 'step')}"
    rented = f"{record.provider}, {record.market.replace('_', '-')}"
    place = "this machine" if record.market == "local" else rented
    rows = [
        ("run", f"{record.run_id} ({record.project}), {format_duration(line.age_s)} ago"),
        ("state", state_words(line)),
        ("job", f"{record.model}, {record.method}, {steps}"),
        ("machine", f"{record.device}, {place}"),
        ("spent", f"{format_usd(line.spent_usd)}{_so_far(shown)}, forecast {forecast}"),
        ("time", f"{format_duration(history.total_s)} under way"),
        ("folder", record.folder if line.folder == "here" else f"{record.folder} (not on this machine)"),
    ]
    if shown.carbon is not None:
        rows.insert(-1, ("energy", shown.carbon.words))
    if history.failure:
        rows.insert(2, ("failure", history.failure))
    if shown.trained_by is not None:
        rows.append(("process", f"{shown.trained_by.pid} on {shown.trained_by.host}"))
    kept = [item for item in shown.files if item.note]
    rows += [(item.name, f"{item.note}, {format_bytes(item.size_bytes)}") for item in kept]
    return _pairs(rows)


def _so_far(shown: "ShownRun") -> str:
    return " so far" if shown.line.record.state == "running" else ""


def _forecasts(shown: "ShownRun") -> "Table":
    """The plan's figures, while there is nothing to hold against them."""
    from scrimp.core.units import format_quantity
    from scrimp.report.words import QUANTITY_WORDS

    table = _table("forecast", ("quantity", "forecast", "80% range"))
    for name, forecast in shown.forecasts.items():
        low, high = format_quantity(name, forecast.low), format_quantity(name, forecast.high)
        table.add_row(QUANTITY_WORDS.get(name, name), format_quantity(name, forecast.value), f"{low} - {high}")
    return table


def _attempts(shown: "ShownRun", *, width: int) -> "list[RenderableType]":
    from rich.text import Text

    from scrimp.cli.output import Column, fitted_table
    from scrimp.report.tables import attempt_bars

    bars = attempt_bars(shown.history, is_running=shown.trained_by is not None)
    columns = (
        Column(heading="#", cells=[str(bar.number) for bar in bars]),
        Column(heading="started (UTC)", cells=[bar.started.removesuffix(" UTC") for bar in bars], gives_way=3),
        Column(heading="took", cells=[bar.duration for bar in bars], justify="right"),
        Column(heading="steps", cells=[bar.steps for bar in bars]),
        Column(heading="ended", cells=[bar.ending for bar in bars]),
        Column(heading="host", cells=[bar.host for bar in bars], shrinks_to=8, gives_way=2),
        Column(heading="checkpoints", cells=[bar.checkpoints for bar in bars], shrinks_to=12, gives_way=1),
    )
    return [Text("attempts", style="italic"), fitted_table(columns, width=width)[0]]


def _entries(shown: "ShownRun", *, width: int) -> "list[RenderableType]":
    from rich.text import Text

    from scrimp.cli.ledger import entry_columns
    from scrimp.cli.output import fitted_table

    title = f"ledger: {len(shown.entries)} {'entry' if len(shown.entries) == 1 else 'entries'}"
    table, _ = fitted_table(entry_columns(shown.entries, of_one_run=True), width=width)
    total = f"together, exactly ${shown.line.record.spent_usd:f}"
    return [Text(title, style="italic"), table, Text(total, style="bold")]


def _table(title: str, headings: tuple[str, ...]) -> "Table":
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, justify="right" if heading == "cost" else "left", overflow="fold")
    return table


def _pairs(rows: list[tuple[str, str]]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, words in rows:
        table.add_row(name, Text(words))
    return table
