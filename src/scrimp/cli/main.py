"""The `scrimp` command: it finds its verbs by listing this folder and imports one only when it is used.

A verb is a file `<verb>.py` with a click command named `command`; the first line of its docstring is the short help.
`plan.py` is `scrimp plan`; names that Python reserves end in an underscore (`import_.py` would be `scrimp import`).
"""

import importlib
import sys
from pathlib import Path

import click

from scrimp import __version__
from scrimp.core.errors import ScrimpError

_NOT_VERBS = {"__init__", "main", "output", "options", "live", "summary", "attended", "traced"}
# The order of a job's life, which is the order people read help in; verbs not named here follow by name.
_ORDER = (
    *("init", "data", "plan", "probe", "run", "resume", "runs", "show", "report", "ledger", "gpus", "offers", "doctor"),
)


def verb_files() -> dict[str, Path]:
    """Verb name to its file, in the order of help."""
    found = {p.stem.rstrip("_"): p for p in sorted(Path(__file__).parent.glob("*.py")) if p.stem not in _NOT_VERBS}
    rank = {name: index for index, name in enumerate(_ORDER)}
    return dict(sorted(found.items(), key=lambda item: (rank.get(item[0], len(rank)), item[0])))


def short_help(path: Path) -> str:
    """First docstring line of a verb's file, read as text: help must not import the verbs."""
    with path.open(encoding="utf-8") as file:
        return file.readline().strip().strip('"').rstrip(".")


class Verbs(click.Group):
    """A group whose commands are the files of this folder."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, none of them imported."""
        return list(verb_files())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one verb."""
        path = verb_files().get(cmd_name)
        if path is None:
            return None
        return importlib.import_module(f"scrimp.cli.{path.stem}").command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, but an unknown verb is answered with the nearest one."""
        from scrimp.core.errors import nearest

        if args and not args[0].startswith("-") and args[0] not in verb_files():
            close = nearest(args[0], verb_files())
            hint = f" Did you mean {' or '.join(close)}?" if close else ""
            ctx.fail(f'No such command "{args[0]}".{hint}')
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs with their first lines, without importing them."""
        rows = [(name, short_help(path)) for name, path in verb_files().items()]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="scrimp")
def cli() -> None:
    """Get an LLM fine-tuned for the least money that does the job, with the working shown.

    Start with `scrimp init`, or `scrimp run examples/quickstart.yaml`.

    Exit codes: 0 done, 1 unexpected, 2 wrong spec or option, 3 data, 4 unknown name, 5 no plan fits, 6 over a
    limit, 7 package missing, 8 disk or memory, 9 checkpoint, 10 training failed, 11 network, 130 interrupted.
    """


def main() -> None:
    """Entry point: errors that scrimp raises on purpose become three lines on stderr and their exit code."""
    try:
        cli(standalone_mode=False)
    except ScrimpError as error:
        from scrimp.cli.output import print_error

        print_error(error, as_json="--json" in sys.argv)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        _show_usage_error(error)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        _show_stopped()
        sys.exit(130)
    except BrokenPipeError:
        # `scrimp offers | head` closes the pipe early; that is no failure. Point stdout elsewhere so that
        # the interpreter's flush at exit stays silent.
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _show_stopped() -> None:
    """A word for people; under --json a document, so that whoever reads stdout is never left with nothing."""
    if "--json" not in sys.argv:
        click.echo("stopped", err=True)
        return
    from scrimp.cli.output import print_error
    from scrimp.core.errors import InterruptedRunError

    print_error(InterruptedRunError(what="stopped", next_step="run the same command again"), as_json=True)


def _show_usage_error(error: click.ClickException) -> None:
    """click's own text for people; under --json the same three parts as every other error."""
    if "--json" not in sys.argv:
        error.show()
        return
    from scrimp.cli.output import print_error
    from scrimp.core.errors import SpecError

    context = error.ctx if isinstance(error, click.UsageError) else None
    usage = SpecError(
        what=error.format_message(),
        expected=" ".join(context.get_usage().split()).removeprefix("Usage: ") if context else "",
        next_step=f"{context.command_path if context else 'scrimp'} --help",
    )
    print_error(usage, as_json=True)
