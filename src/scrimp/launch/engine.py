"""What every engine answers: start a job on a machine, watch it, stop it, say what the machine is and costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from scrimp.core.recipe import ResolvedJob
from scrimp.ledger.bill import MachineRate

RESOLVED_FILE = "resolved.json"
LOG_FILE = "log.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineIdentity:
    """Which machine a job runs on, for the record of the run."""

    engine: str
    provider: str
    market: str
    host: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """A started job. `events_start_bytes` is where its events begin in an events.jsonl that was there before."""

    engine: str
    run_id: str
    folder: Path
    pid: int
    events_start_bytes: int


class Engine(Protocol):
    """One way to get a job onto a machine. A handle belongs to the engine object that gave it."""

    name: str

    @property
    def rate(self) -> MachineRate:
        """What an hour of the machine costs."""
        ...

    def machine(self) -> MachineIdentity:
        """The machine that jobs of this engine run on."""
        ...

    def start(self, job: ResolvedJob, *, folder: Path, env: Mapping[str, str]) -> Handle:
        """Start `scrimp train` on the run folder, which holds resolved.json already.

        `env` is the environment to begin from. The job ends with the process that started it: should that die, the
        job gets SIGTERM, writes a checkpoint and stops.

        Raises:
            ResourceError: somebody trains this folder already, or the job cannot be started.
        """
        ...

    def wait(self, handle: Handle, *, timeout_s: float | None = None) -> int | None:
        """Block until the job ends, at most `timeout_s`. Its exit code, negative for a signal; None: still running."""
        ...

    def poll(self, handle: Handle) -> int | None:
        """The exit code without waiting, None while the job runs."""
        ...

    def signal(self, handle: Handle, number: int) -> None:
        """Pass a signal on to the job; nothing happens when it has ended."""
        ...

    def stop(self, handle: Handle, *, grace_s: float) -> int:
        """Ask the job to checkpoint and end, kill what is left after `grace_s`; its exit code."""
        ...

    def kill(self, handle: Handle) -> None:
        """End the job and all that it started, at once."""
        ...
