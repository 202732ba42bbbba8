"""Go on with an interrupted run from its newest whole checkpoint."""

import click

from scrimp.cli.options import json_option, overrides_argument


@click.command("resume")
@click.argument("name", metavar="RUN", default="last")
@overrides_argument
@json_option
def command(name: str, overrides: tuple[str, ...], as_json: bool) -> None:
    """Continue RUN: an id, the beginning of one, `last`, or a run folder.

    The result has the same bytes as a run that was never interrupted. Only limits may change between attempts.

    \b
    scrimp resume last
    scrimp resume 20260401-101530-quickstart limits.budget='2 USD'
    """
    from scrimp.cli.attended import attended
    from scrimp.workflows.resume import resume

    attended(
        lambda world, watch: resume(name, overrides=overrides, world=world, watch=watch),
        as_json=as_json,
    )
