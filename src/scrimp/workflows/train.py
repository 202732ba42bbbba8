"""Train: one attempt at a resolved job, in this process. What an engine starts on the machine that trains."""

from collections.abc import Callable, MutableMapping
from pathlib import Path

from scrimp.core.recipe import ResolvedJob
from scrimp.core.run import RunEvent
from scrimp.launch.lock import hold
from scrimp.train.clock import real_clock
from scrimp.train.power.watch import PowerSources
from scrimp.train.process import settle_process
from scrimp.train.run import TrainOutcome, train
from scrimp.train.stop import StopSignals, listening
from scrimp.train.surroundings import Surroundings
from scrimp.workflows.world import World


def train_resolved(
    job: ResolvedJob, *, environ: MutableMapping[str, str], world: World, on_event: Callable[[RunEvent], None]
) -> TrainOutcome:
    """Train in this process, holding the run folder's lock. `environ` is the process's own: torch reads it on import.

    Raises:
        ResourceError: somebody trains this folder already.
        ScrimpError: see `scrimp.train.run.train`.
    """
    settle_process(job, environ)
    stop = StopSignals()
    with listening(stop), hold(Path(job.run_folder), env=world.env):
        around = Surroundings(
            env=dict(environ),
            clock=real_clock(),
            base=world.cwd,
            stop=stop,
            on_event=on_event,
            power=PowerSources.of(environ),
        )
        return train(job, around=around)
