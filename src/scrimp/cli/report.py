"""Write the report of a run: one HTML file that opens without a network."""

from pathlib import Path

import click

from scrimp.cli.options import json_option


@click.command()
@click.argument("run", default="last")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write it here instead.")
@click.option("--open", "open_it", is_flag=True, help="Open it in the browser.")
@json_option
def command(run: str, output: Path | None, open_it: bool, as_json: bool) -> None:
    """Write the report of RUN (its id, the beginning of its id, its folder, or last) into its folder.

    \b
    scrimp report                       of the newest run
    scrimp report last -o /tmp/r.html   somewhere else
    scrimp report last --open
    """
    from scrimp.cli.output import print_json, print_note
    from scrimp.core.units import format_bytes
    from scrimp.workflows.report import report
    from scrimp.workflows.world import real_world

    written = report(run, output=output, world=real_world(note=print_note))
    if as_json:
        print_json({"run_id": written.run_id, "path": str(written.path), "size_bytes": written.size_bytes})
    else:
        click.echo(written.path)
        print_note(f"{format_bytes(written.size_bytes)}, run {written.run_id}")
    if open_it:
        import webbrowser

        webbrowser.open(written.path.resolve().as_uri())
