"""The only module that prints. Results go to stdout, progress and errors to stderr."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from scrimp.core.errors import ScrimpError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

# Blanks between two columns of a table.
COLUMN_GAP = 2


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
    with console.capture() as captured:
        for item in items:
            console.print(item)
    # Not printed by rich itself: it turns a closed pipe (`scrimp offers | head`) into exit code 1.
    console.file.write(captured.get())
    console.file.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a fitted table: its heading, its cells, and the order in which it gives way (0: never).

    `shrinks_to` is how many characters a cell may be cut down to before the column gives way altogether.
    """

    heading: str
    cells: Sequence[str]
    justify: Literal["left", "right"] = "left"
    gives_way: int = 0
    shrinks_to: int | None = None

    @property
    def natural_width(self) -> int:
        """The longest cell, heading included."""
        from rich.cells import cell_len

        return max(cell_len(text) for text in (self.heading, *self.cells))


def fitted_table(columns: Sequence[Column], *, width: int) -> "tuple[Table, tuple[str, ...]]":
    """One line a row in `width` characters, and the headings of the columns that had to go for it.

    Cells are cut first, where a column allows it; then whole columns go, the highest `gives_way` first.
    """
    from rich.table import Table

    shown = list(columns)
    while _least_width(shown) > width and any(column.gives_way for column in shown):
        shown.remove(max(shown, key=lambda column: column.gives_way))
    spare = width - _least_width(shown)
    table = Table(box=None, pad_edge=False, padding=(0, COLUMN_GAP, 0, 0), header_style="bold")
    for column in shown:
        grown = min(column.natural_width, _least(column) + max(0, spare))
        spare -= grown - _least(column)
        table.add_column(column.heading, justify=column.justify, no_wrap=True, overflow="ellipsis", width=grown)
    for cells in zip(*(column.cells for column in shown), strict=True):
        table.add_row(*(_escape(cell) for cell in cells))
    return table, tuple(column.heading for column in columns if column not in shown)


def _least(column: Column) -> int:
    return column.natural_width if column.shrinks_to is None else min(column.natural_width, column.shrinks_to)


def _least_width(columns: Sequence[Column]) -> int:
    return sum(_least(column) for column in columns) + COLUMN_GAP * (len(columns) - 1)


@contextmanager
def progress(title: str) -> "Iterator[Callable[[int, int], None]]":
    """A bar on stderr, fed with (done, of how many); on a terminal only, and gone when it is full."""
    from rich.progress import Progress

    with Progress(console=stderr_console(), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


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
