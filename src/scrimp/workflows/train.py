"""Train: one attempt at a resolved job, in this process. What an engine starts on the machine that trains."""

from collections.abc import Callable, MutableMapping
from dataclasses import replace
from pathlib import Path

from scrimp.core.errors import ResourceError
from scrimp.core.recipe import ResolvedJob
from scrimp.core.run import RunEvent
from scrimp.launch.lock import hold
from scrimp.spec.codec import load_json
from scrimp.train.clock import real_clock
from scrimp.train.process import settle_process
from scrimp.train.run import TrainOutcome, train
from scrimp.train.stop import StopSignals, listening
from scrimp.train.surroundings import Surroundings
from scrimp.workflows.world import World


def read_resolved(path: Path) -> ResolvedJob:
    """The job in a resolved.json. The folder that it lies in is the run folder, wherever it was moved to.

    Raises:
        ResourceError: no such file.
        SpecError: it is damaged.
    """
    if not path.is_file():
        raise ResourceError(
            what=f"there is no file {path}",
            expected="the resolved.json of a run folder",
            next_step="scrimp run SPEC    # makes one and trains it",
        )
    job = load_json(ResolvedJob, path.read_bytes(), where=str(path))
    return replace(job, run_folder=str(path.resolve().parent))


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
        around = Surroundings(env=dict(environ), clock=real_clock(), base=world.cwd, stop=stop, on_event=on_event)
        return train(job, around=around)
