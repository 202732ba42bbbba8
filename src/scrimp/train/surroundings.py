"""What training takes from the outside, as one argument."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scrimp.core.run import RunEvent
from scrimp.train.clock import Clock
from scrimp.train.power.watch import OFF, PowerSources
from scrimp.train.stop import StopSignals


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Environment, clock, who asks to stop, who looks on. `base` is where relative paths of the job start from.

    `power` is where energy meters are looked for.
    """

    env: Mapping[str, str]
    clock: Clock
    base: Path
    stop: StopSignals
    on_event: Callable[[RunEvent], None]
    power: PowerSources = OFF
