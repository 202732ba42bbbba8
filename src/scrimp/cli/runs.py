"""List the runs: state, loss before and after, spent against forecast."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

import click

from scrimp.cli.options import json_option
from scrimp.core.run import RunState

if TYPE_CHECKING:
    from rich.console import RenderableType

    from scrimp.cli.output import Column
    from scrimp.workflows.runs import RunLine, RunList

PIPED_WIDTH = 160


@click.command()
@click.option("--state", type=click.Choice(get_args(RunState)), help="Only runs in this state.")
@click.option("--project", help="Only runs of this project.")
@click.option("--name", help="Only runs of this name.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many, the newest first.")
@json_option
def command(state: RunState | None, project: str | None, name: str | None, limit: int, as_json: bool) -> None:
    """List the runs, the newest first.

    \b
    scrimp runs                          the last 20
    scrimp runs --state interrupted      those that scrimp resume can go on with
    scrimp runs --project support --json

    Spent is the sum of a run's ledger entries; while it runs, what its meter shows.
    """
    from scrimp.cli.output import print_json, print_note, print_renderables, stdout_console
    from scrimp.ledger.queries import RunQuery
    from scrimp.workflows.runs import list_runs
    from scrimp.workflows.world import real_world

    query = RunQuery(state=state, project=project, name=name, limit=limit)
    found = list_runs(query, world=real_world(note=print_note))
    if as_json:
        print_json({"runs": [document(line) for line in found.lines], "ledger": found.ledger_url})
        return
    console = stdout_console(piped_width=PIPED_WIDTH)
    print_renderables(*screen(found, width=console.width), console=console)


def document(line: "RunLine") -> dict[str, Any]:
    """One run as plain JSON values."""
    from scrimp.spec.codec import dump

    return {
        **dump(line.record),
        "spent_usd": format(line.spent_usd, "f"),
        "age_s": round(line.age_s, 3),
        "folder_is_here": line.folder == "here",
    }


def screen(found: "RunList", *, width: int) -> "list[RenderableType]":
    """The table, or a line that says why there is none and what to type."""
    from rich.text import Text

    from scrimp.cli.output import fitted_table

    if not found.lines:
        if found.ledger_is_empty:
            return [Text("no runs yet"), Text("next: scrimp run examples/quickstart.yaml")]
        return [Text("no run meets these filters"), Text("next: scrimp runs")]
    table, hidden = fitted_table(columns(found.lines), width=width)
    below = ["scrimp show RUN tells all about one; last is the newest"]
    if hidden:
        below.append(f"not shown at this width: {', '.join(hidden)} (a wider terminal or --json has them)")
    resumable = [line for line in found.lines if line.record.state == "interrupted" and line.folder == "here"]
    if resumable:
        below.append(f"next: scrimp resume {resumable[0].record.run_id}")
    return [table, "", *(Text(text, style="dim") for text in below)]


def columns(lines: "Sequence[RunLine]") -> "Sequence[Column]":
    """All columns of the table, with the order in which they give way on narrow terminals."""
    from scrimp.cli.output import Column
    from scrimp.core.units import format_duration, format_usd

    records = [line.record for line in lines]
    return (
        Column(heading="run", cells=[record.run_id for record in records]),
        Column(heading="name", cells=[record.name for record in records], shrinks_to=12, gives_way=8),
        Column(heading="project", cells=[record.project for record in records], shrinks_to=10, gives_way=7),
        Column(heading="state", cells=[state_words(line) for line in lines]),
        Column(heading="model", cells=[record.model for record in records], shrinks_to=16, gives_way=5),
        Column(heading="method", cells=[record.method for record in records], gives_way=4),
        Column(heading="machine", cells=[_machine(line) for line in lines], shrinks_to=14, gives_way=6),
        Column(heading="loss", cells=[loss_words(line) for line in lines]),
        Column(heading="spent", cells=[format_usd(line.spent_usd) for line in lines], justify="right"),
        Column(
            heading="forecast",
            cells=["unknown" if x.forecast_usd is None else format_usd(x.forecast_usd) for x in records],
            justify="right",
            gives_way=3,
        ),
        Column(heading="age", cells=[format_duration(line.age_s) for line in lines], justify="right", gives_way=2),
    )


def state_words(line: "RunLine") -> str:
    """`finished`, `stopped at cap`, `running 40/120`."""
    record = line.record
    words = record.state.replace("_", " ")
    return f"{words} {record.steps_done}/{record.steps_planned}" if record.state == "running" else words


def loss_words(line: "RunLine") -> str:
    """`4.012 -> 3.461`, with what is known."""
    before, after = line.record.eval_loss_before, line.record.eval_loss_after
    if before is None and after is None:
        return "-"
    return f"{'?' if before is None else f'{before:.3f}'} -> {'?' if after is None else f'{after:.3f}'}"


def _machine(line: "RunLine") -> str:
    record = line.record
    return record.device if record.market == "local" else f"{record.device} {record.provider} {record.market}"
