"""Show what was spent: entries, and their sums by day, project, provider or kind."""

from typing import TYPE_CHECKING, Any, get_args

import click

from scrimp.cli.options import json_option
from scrimp.core.run import EntryKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from scrimp.cli.output import Column
    from scrimp.core.run import LedgerEntry
    from scrimp.workflows.ledger import By, LedgerView

BY = ("day", "month", "project", "provider", "kind", "run", "model")
PIPED_WIDTH = 160


@click.command()
@click.option("--by", type=click.Choice(BY), help="Add the entries up by this.")
@click.option("--since", metavar="WHEN", help="From then on: 2025-06-01, or how long ago: 7d, 12h.")
@click.option("--until", metavar="WHEN", help="Before then.")
@click.option("--run", "run_name", metavar="RUN", help="Only of this run (id, beginning of it, last, folder).")
@click.option("--project", help="Only of this project.")
@click.option("--kind", type=click.Choice(get_args(EntryKind)), help="Only entries of this kind.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the entries as CSV on stdout, all digits.")
@json_option
def command(
    by: "By | None",
    since: str | None,
    until: str | None,
    run_name: str | None,
    project: str | None,
    kind: EntryKind | None,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Show the ledger: every entry, what it was for, and the exact sum.

    \b
    scrimp ledger                       all entries
    scrimp ledger --by day --since 30d  what each day cost
    scrimp ledger --by project          what each project cost
    scrimp ledger --run last --csv      for a spreadsheet

    Entries are never changed or removed; what was spent is their sum and nothing else. Days are days of UTC.
    """
    from scrimp.cli.output import print_json, print_note, print_renderables, stdout_console
    from scrimp.workflows.ledger import LedgerRequest, view_ledger
    from scrimp.workflows.world import real_world

    request = LedgerRequest(by=by, since=since, until=until, run=run_name, project=project, kind=kind)
    view = view_ledger(request, world=real_world(note=print_note))
    if as_json:
        print_json(document(view, by=by))
    elif as_csv:
        click.echo(csv_text(view.entries), nl=False)
    else:
        console = stdout_console(piped_width=PIPED_WIDTH)
        print_renderables(*screen(view, by=by, width=console.width), console=console)


def document(view: "LedgerView", *, by: "By | None") -> dict[str, Any]:
    """Entries, sums and total as plain JSON values; amounts are decimal text with all digits."""
    sums = [
        {"label": item.label, "entries": item.entries, "amount_usd": format(item.amount_usd, "f")} for item in view.sums
    ]
    return {
        "total_usd": format(view.total_usd, "f"),
        "by": by,
        "sums": sums,
        "entries": [_entry_document(entry) for entry in view.entries],
        "ledger": view.ledger_url,
    }


def csv_text(entries: "Sequence[LedgerEntry]") -> str:
    """The entries as CSV with a heading line; amounts with all digits, times in ISO 8601."""
    import csv
    from io import StringIO

    from scrimp.ledger.tables import ENTRY_COLUMNS

    text = StringIO()
    writer = csv.DictWriter(text, list[str](ENTRY_COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(_entry_document(entry) for entry in entries)
    return text.getvalue()


def _entry_document(entry: "LedgerEntry") -> dict[str, Any]:
    from scrimp.ledger.tables import entry_row

    return entry_row(entry)


def screen(view: "LedgerView", *, by: "By | None", width: int) -> "list[RenderableType]":
    """The table and the total, or a line that says why there is none and what to type."""
    from rich.text import Text

    from scrimp.cli.output import fitted_table
    from scrimp.core.units import format_usd

    if not view.entries:
        if view.ledger_is_empty:
            return [Text("nothing was spent yet"), Text("next: scrimp run examples/quickstart.yaml")]
        return [Text("no entry meets these filters"), Text("next: scrimp ledger")]
    table, hidden = fitted_table(_sum_columns(view, by) if by else entry_columns(view.entries), width=width)
    count = f"{len(view.entries)} {'entry' if len(view.entries) == 1 else 'entries'}"
    total = Text(f"total {format_usd(view.total_usd)}", style="bold")
    total.append(f"  (exactly ${view.total_usd:f}, the sum of {count})", style="not bold")
    below = [
        Text(f"not shown at this width: {', '.join(hidden)} (a wider terminal, --csv or --json has them)", style="dim")
    ]
    return [table, "", total, *(below if hidden else [])]


def _sum_columns(view: "LedgerView", by: str) -> "Sequence[Column]":
    from scrimp.cli.output import Column
    from scrimp.core.units import format_usd

    shares = [item.amount_usd / view.total_usd if view.total_usd else 0 for item in view.sums]
    return (
        Column(heading=by, cells=[item.label for item in view.sums], shrinks_to=20),
        Column(heading="cost", cells=[format_usd(item.amount_usd) for item in view.sums], justify="right"),
        Column(heading="share", cells=[f"{share:.0%}" for share in shares], justify="right", gives_way=1),
        Column(heading="entries", cells=[str(item.entries) for item in view.sums], justify="right", gives_way=2),
    )


def entry_columns(entries: "Sequence[LedgerEntry]", *, of_one_run: bool = False) -> "Sequence[Column]":
    """All columns of entries, with the order in which they give way; entries of one run need no names."""
    from scrimp.cli.output import Column
    from scrimp.report.tables import entry_rows

    moments, whats, used, costs, sources = zip(*entry_rows(tuple(entries)), strict=True)
    names = (
        Column(heading="run", cells=[entry.run_id for entry in entries], shrinks_to=26),
        Column(heading="project", cells=[entry.project for entry in entries], shrinks_to=8, gives_way=5),
    )
    return (
        Column(heading="from (UTC)", cells=moments, gives_way=1),
        *(() if of_one_run else names),
        Column(heading="what", cells=whats),
        Column(heading="used", cells=used, gives_way=4),
        Column(heading="cost", cells=costs, justify="right"),
        Column(heading="source", cells=sources, shrinks_to=20, gives_way=3),
    )
