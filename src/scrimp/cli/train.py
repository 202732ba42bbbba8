"""Train a resolved job on this machine."""

from pathlib import Path

import click

from scrimp.cli.options import json_option


@click.command("train")
@click.argument("resolved", type=click.Path(path_type=Path), metavar="RESOLVED_JSON")
@json_option
def command(resolved: Path, as_json: bool) -> None:
    """Train the job in RESOLVED_JSON, in the folder that it lies in; what `scrimp run` starts, here or elsewhere.

    Started again it goes on from the newest whole checkpoint. SIGINT and SIGTERM save a checkpoint at the next step.
    Prices, planner and ledger play no part: the hourly price and the caps stand in the file.

    \b
    scrimp train runs/20260401-101530-quickstart/resolved.json
    """
    import os

    from scrimp.cli.live import RunDisplay
    from scrimp.cli.output import print_json, print_note, print_renderables
    from scrimp.core.units import plural
    from scrimp.spec.codec import dump
    from scrimp.workflows.job_file import read_job
    from scrimp.workflows.train import train_resolved
    from scrimp.workflows.world import real_world

    job = read_job(resolved)
    with RunDisplay(steps=job.steps.steps, quiet=as_json) as display:
        outcome = train_resolved(job, environ=os.environ, world=real_world(note=print_note), on_event=display)
    if as_json:
        print_json(dump(outcome))
    elif outcome.probed_only:
        print_renderables(f"{outcome.run_id}: probed, nothing trained")
    elif outcome.already_finished:
        print_renderables(f"{outcome.run_id} has finished: nothing left to do; its result is in {outcome.adapter}")
    else:
        steps = f"{outcome.steps} {plural(outcome.steps, 'step')}"
        print_renderables(f"{outcome.run_id}: {steps}, result in {outcome.adapter}")
