"""Write a commented spec to start from, out of a question or two or from flags."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from scrimp.cli.options import json_option
from scrimp.core.job import Where

if TYPE_CHECKING:
    from rich.console import RenderableType

    from scrimp.workflows.init import Initialised, Question


@click.command()
@click.argument("path", type=click.Path(path_type=Path), default="job.yaml", required=False)
@click.option("--model", metavar="NAME", help="Hub id, local folder or known name.")
@click.option("--data", metavar="PATH", help="File, folder or hub id of the rows to learn from.")
@click.option("--where", type=click.Choice(get_args(Where)), help="Train on this machine, in the cloud, or wherever.")
@click.option("--method", metavar="NAME", help="Tuning method; without it the planner compares all.")
@click.option("--budget", metavar="MONEY", help="Most to spend, such as 5 USD.")
@click.option("--deadline", metavar="TIME", help="Longest time to wait, such as 12h.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a spec instead, for other editors and tools.")
@json_option
def command(path: Path, force: bool, schema: bool, as_json: bool, **flags: str | None) -> None:
    """Write a spec with every option explained to PATH (job.yaml).

    On a terminal it asks for what the flags leave open: the model, the data, where to train.

    \b
    scrimp init
    scrimp init jobs/support.yaml --model Qwen/Qwen3-8B --data data/support.jsonl --budget "5 USD"
    """
    from scrimp.cli.output import print_json, print_note, print_renderables
    from scrimp.workflows.init import InitRequest, init
    from scrimp.workflows.world import real_world

    if schema:
        from scrimp.spec.schema import job_schema

        print_json(job_schema())
        return
    world = real_world(note=print_note)
    request = InitRequest(path=path, answers={name: text for name, text in flags.items() if text}, force=force)
    made = init(request, world=world, ask=_ask if sys.stdin.isatty() and not as_json else None)
    if as_json:
        for note in (*made.notes, *made.doubts):
            print_note(note)
        print_json({"path": str(made.path), "next": made.next_step})
        return
    print_renderables(*_lines(made))


def _ask(question: "Question") -> str:
    kind = click.Choice(question.choices) if question.choices else str
    return str(click.prompt(question.text, default=question.default, type=kind, err=True, prompt_suffix=" "))


def _lines(made: "Initialised") -> "list[RenderableType]":
    """What was written, what to know, what to type."""
    from rich.text import Text

    rows = [
        ("wrote", str(made.path)),
        ("", f"{made.schema_path} (for editors; may be deleted)"),
        *(("data", note) for note in made.notes),
        *(("note", doubt) for doubt in made.doubts),
        ("next", made.next_step),
    ]
    return [Text.assemble((f"{name:<7}", "bold"), text) for name, text in rows]
