"""Fine-tune on this machine: plan, train, bill and report."""

from pathlib import Path

import click

from scrimp.cli.options import json_option, overrides_argument


@click.command("run")
@click.argument("target", type=click.Path(path_type=Path), metavar="SPEC_OR_PLAN")
@overrides_argument
@json_option
def command(target: Path, overrides: tuple[str, ...], as_json: bool) -> None:
    """Plan SPEC and train by its best plan, or execute a plan file exactly.

    Ctrl-C saves a checkpoint at the next step; `scrimp resume last` goes on from there to the same bytes.

    \b
    scrimp run examples/quickstart.yaml
    scrimp run examples/quickstart.yaml training.max_steps=100 method.rank=8
    scrimp plan spec.yaml -o plan.yaml && scrimp run plan.yaml
    """
    from scrimp.cli.attended import attended
    from scrimp.workflows.run import run

    attended(
        lambda world, watch: run(target, overrides=overrides, world=world, watch=watch),
        as_json=as_json,
    )
