"""One attempt at an open run: start it on a machine, follow it, and plan again while memory runs out before a step."""

from collections.abc import Callable

from scrimp.core.run import RunEvent
from scrimp.launch.attend import Outcome, attend
from scrimp.launch.engine import Engine
from scrimp.spec.events import EVENTS_FILE, read_events
from scrimp.workflows.corrected import probed
from scrimp.workflows.open_run import OpenRun, Watch
from scrimp.workflows.replan import changes_of, next_try
from scrimp.workflows.world import World


def attempt(run: OpenRun, *, engine: Engine, world: World, watch: Watch, target: str) -> tuple[OpenRun, Outcome]:
    """Work on the run until its job ends in any way but for lack of memory. Returns the run as it is planned by then.

    Raises:
        NoPlanError: memory ran out with the smallest recipe there is.
        ResourceError: somebody trains this folder already.
    """
    while True:
        handle = engine.start(run.job, folder=run.folder, env=world.env)
        outcome = attend(engine, handle, on_event=_onlooker(run, watch))
        smaller = next_try(run, outcome, target=target, on_event=watch.on_event)
        if smaller is None:
            return run, outcome
        run = smaller


def _onlooker(run: OpenRun, watch: Watch) -> Callable[[RunEvent], None]:
    """Hands events on, and says what a probe makes of the plan's forecasts."""

    def on_event(event: RunEvent) -> None:
        watch.on_event(event)
        if event.kind == "probed":
            changes = changes_of(read_events(run.folder / EVENTS_FILE))
            found = probed(run.plan, event.values, replanned=changes)
            if found is not None:
                watch.on_probe(found)

    return on_event
