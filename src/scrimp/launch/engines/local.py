"""This machine: training runs as a process beside the command that started it."""

import contextlib
import os
import platform
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from scrimp.core.errors import ResourceError
from scrimp.core.recipe import ResolvedJob
from scrimp.launch import lock, tether
from scrimp.launch.engine import LOG_FILE, RESOLVED_FILE, Handle, MachineIdentity
from scrimp.launch.environment import training_environment
from scrimp.ledger.bill import MachineRate
from scrimp.spec.events import EVENTS_FILE

TRAIN_COMMAND = (sys.executable, "-m", "scrimp", "train")
# How long a job whose starter died may take for its last checkpoint.
ORPHAN_GRACE_S = 120.0


class LocalEngine:
    """Starts `scrimp train` in a session of its own, tied to this process by a pipe (see `tether.py`).

    A session of its own: ^C in the terminal reaches this process alone, which passes it on once. Output goes to
    log.txt in the run folder.
    """

    name = "local"

    def __init__(
        self,
        *,
        rate: MachineRate,
        command: Sequence[str] = TRAIN_COMMAND,
        offline: bool = False,
        orphan_grace_s: float = ORPHAN_GRACE_S,
    ) -> None:
        """`command` is run with the path of resolved.json; `offline` keeps the model hub's client off the network."""
        self._rate = rate
        self._command = tuple(command)
        self._offline = offline
        self._orphan_grace_s = orphan_grace_s
        self._jobs: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def rate(self) -> MachineRate:
        """What an hour of this machine costs."""
        return self._rate

    def machine(self) -> MachineIdentity:
        """This machine."""
        description = f"{platform.system()} {platform.machine()}, {_cores()} cores"
        return MachineIdentity(
            engine=self.name, provider="local", market="local", host=socket.gethostname(), description=description
        )

    def start(self, job: ResolvedJob, *, folder: Path, env: Mapping[str, str]) -> Handle:
        """See `Engine.start`."""
        resolved = folder / RESOLVED_FILE
        if not resolved.is_file():
            raise ResourceError(
                what=f"there is no {RESOLVED_FILE} in {folder}",
                expected="a run folder that scrimp run has prepared",
                next_step="scrimp run SPEC",
            )
        tied = [sys.executable, "-I", "-S", str(Path(tether.__file__)), str(self._orphan_grace_s)]
        settings = training_environment(env, threads=job.threads, offline=self._offline)
        with lock.take(folder) as held, (folder / LOG_FILE).open("ab") as log:
            events = folder / EVENTS_FILE
            start_bytes = events.stat().st_size if events.exists() else 0
            process = subprocess.Popen(
                [*tied, *self._command, str(resolved)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=settings | {lock.LOCK_VARIABLE: str(held.fileno())},
                start_new_session=True,
                pass_fds=(held.fileno(),),
            )
            held.name_holder(process.pid)
        self._jobs[process.pid] = process
        return Handle(
            engine=self.name, run_id=job.run_id, folder=folder, pid=process.pid, events_start_bytes=start_bytes
        )

    def wait(self, handle: Handle, *, timeout_s: float | None = None) -> int | None:
        """See `Engine.wait`."""
        process = self._jobs[handle.pid]
        if process.returncode is None:
            _sleep_until_end(process, timeout_s=timeout_s)
        return self.poll(handle)

    def poll(self, handle: Handle) -> int | None:
        """See `Engine.poll`."""
        process = self._jobs[handle.pid]
        was_running = process.returncode is None
        code = process.poll()
        if code is not None and was_running:
            self._clean_up(process)
        return code

    def signal(self, handle: Handle, number: int) -> None:
        """See `Engine.signal`."""
        self._jobs[handle.pid].send_signal(number)

    def stop(self, handle: Handle, *, grace_s: float) -> int:
        """See `Engine.stop`."""
        self.signal(handle, signal.SIGTERM)
        code = self.wait(handle, timeout_s=grace_s)
        if code is None:
            self.kill(handle)
            code = self.wait(handle)
        return 0 if code is None else code

    def kill(self, handle: Handle) -> None:
        """See `Engine.kill`."""
        if self._jobs[handle.pid].poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(handle.pid, signal.SIGKILL)

    @staticmethod
    def _clean_up(process: "subprocess.Popen[bytes]") -> None:
        if process.stdin is not None:
            process.stdin.close()
        if process.returncode == -signal.SIGKILL:
            # Killed before it could pass anything on: what it kept alive is asked to end.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)


def _sleep_until_end(process: "subprocess.Popen[bytes]", *, timeout_s: float | None) -> None:
    """Asleep in the kernel where it can wait for a process with a time-out (Linux), else Python's own waiting."""
    if not hasattr(os, "pidfd_open"):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout_s)
        return
    # The process is our child and not reaped, so its number cannot have passed to another one.
    watched = os.pidfd_open(process.pid)
    try:
        select.select([watched], [], [], timeout_s)
    finally:
        os.close(watched)


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


ENGINE = LocalEngine
