"""Look over this machine: what scrimp can do here, what is missing, what to type next."""

import sys
from typing import TYPE_CHECKING, Any

import click

from scrimp.cli.options import json_option

if TYPE_CHECKING:
    from rich.console import RenderableType

    from scrimp.workflows.checkup.finding import Check, Status
    from scrimp.workflows.doctor import Diagnosis

PIPED_WIDTH = 160
_STYLES = {"ok": "green", "note": "yellow", "problem": "bold red"}


@click.command()
@click.option("--network", is_flag=True, help="Also ask the Hugging Face hub for one small file.")
@json_option
def command(network: bool, as_json: bool) -> None:
    """Look over this machine: processor, GPU, packages, disks, bundled model, ledger, prices, environment.

    \b
    scrimp doctor              what is here; the network is left alone
    scrimp doctor --network    and whether the hub answers
    scrimp doctor --json       for a bug report; shows no password and no token

    ok needs nothing. note is worth knowing: something cannot be done here, or not as well. problem must be put right.

    Exit codes: 0 no problem, 1 at least one.
    """
    from scrimp.cli.output import print_json, print_note, print_renderables, stdout_console
    from scrimp.workflows.doctor import examine
    from scrimp.workflows.world import real_world

    diagnosis = examine(world=real_world(note=print_note), network=network)
    if as_json:
        print_json(document(diagnosis))
    else:
        print_renderables(*screen(diagnosis), console=stdout_console(piped_width=PIPED_WIDTH))
    if diagnosis.count("problem"):
        sys.exit(1)


def document(diagnosis: "Diagnosis") -> dict[str, Any]:
    """The findings as plain JSON values."""
    from scrimp import __version__

    return {
        "scrimp": __version__,
        "problems": diagnosis.count("problem"),
        "notes": diagnosis.count("note"),
        "hub_asked": diagnosis.hub_asked,
        "checks": [
            {
                "group": check.group,
                "name": check.name,
                "status": check.status,
                "found": check.found,
                "next": check.next_step,
                "values": dict(check.values),
            }
            for check in diagnosis.checks
        ],
    }


def screen(diagnosis: "Diagnosis") -> "list[RenderableType]":
    """One table, a section for each group, and the count of what needs a look."""
    from rich.table import Table
    from rich.text import Text

    from scrimp.cli.output import COLUMN_GAP

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, COLUMN_GAP, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    group = ""
    for check in diagnosis.checks:
        if group and check.group != group:
            table.add_row()
        group = check.group
        table.add_row(Text(check.status, style=_STYLES[check.status]), check.name, _finding(check))
    below = [Text(_verdict(diagnosis), style="bold")]
    if not diagnosis.hub_asked:
        below.append(Text("the hub was not asked: scrimp doctor --network", style="dim"))
    return [table, "", *below]


def _finding(check: "Check") -> "RenderableType":
    from rich.text import Text

    # A line for what was found and one for the command, which can be copied whole.
    return Text(f"{check.found}\nnext: {check.next_step}" if check.next_step else check.found)


def _verdict(diagnosis: "Diagnosis") -> str:
    problems, notes = (_counted(diagnosis, status) for status in ("problem", "note"))
    if diagnosis.count("problem"):
        return f"{problems} to put right, {notes}"
    return f"no problem, {notes}; next: scrimp init"


def _counted(diagnosis: "Diagnosis", status: "Status") -> str:
    count = diagnosis.count(status)
    return f"{count} {status}{'' if count == 1 else 's'}"
