"""The only module that prints. Results go to stdout, progress and errors to stderr."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scrimp.core.errors import ScrimpError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


def stdout_console(*, piped_width: int | None = None) -> "Console":
    """A rich console on stdout; honours NO_COLOR, COLUMNS and the terminal's width.

    `piped_width` is the width where there is neither: wide enough to keep a row of a table on one line for grep.
    """
    from rich.console import Console

    console = Console(highlight=False)
    if piped_width is not None and not console.is_terminal and not os.environ.get("COLUMNS"):
        console.width = piped_width
    return console


def stderr_console() -> "Console":
    """A rich console on stderr, for progress and notes."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def print_json(document: Mapping[str, Any] | Sequence[Any]) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def print_renderables(*items: "RenderableType", console: "Console | None" = None) -> None:
    """Tables, panels and lines on stdout."""
    console = console or stdout_console()
    for item in items:
        console.print(item)


def print_note(text: str) -> None:
    """A line for people on stderr."""
    sys.stderr.write(text + "\n")


def print_error(error: ScrimpError, *, as_json: bool = False) -> None:
    """The three parts of an error on stderr; under --json also as one JSON document on stdout."""
    if as_json:
        document = {
            "error": type(error).__name__,
            "what": error.what,
            "expected": error.expected,
            "next": error.next_step,
            "exit_code": error.exit_code,
        }
        print_json(document)
        return
    console = stderr_console()
    console.print(f"[bold red]error[/]: {_escape(error.what)}", soft_wrap=True)
    if error.expected:
        console.print(f"  [bold]expected[/]: {_escape(error.expected)}", soft_wrap=True)
    if error.next_step:
        console.print(f"  [bold]next[/]: {_escape(error.next_step)}", soft_wrap=True)


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)
