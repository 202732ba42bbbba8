"""One process trains a run folder at a time: a lock that the kernel gives back when its holder dies.

The lock (flock) belongs to an open file that the training processes inherit, so it lasts exactly as long as any of
them, and kill -9 leaves nothing stale. What stands in the file says who it is. File systems without locks (some
cluster and bucket mounts) fall back on that: the pid with the moment it was started, so that a later process with the
same number is not taken for the holder.
"""

import contextlib
import errno
import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from scrimp.core.errors import ResourceError

LOCK_FILE = "run.lock"
# Tells a started job the number of the open lock file that it inherits.
LOCK_VARIABLE = "SCRIMP_LOCK_FILE_NUMBER"
_NO_LOCKS = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK}
# Somebody who only looks holds the lock for microseconds; a trainer holds it for longer than all tries together.
_TRIES = 10
_RETRY_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who trains a folder. `mark` tells the process from a later one of the same number; pid 0: not known."""

    pid: int
    mark: str
    host: str


class RunLock:
    """A lock that was taken. Leaving the context closes this process's hold; inheritors keep theirs."""

    def __init__(self, file: IO[str]) -> None:
        """See `take`."""
        self._file = file

    def __enter__(self) -> "RunLock":
        """The lock itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go."""
        self._file.close()

    def fileno(self) -> int:
        """The open file to pass on to the processes that train."""
        return self._file.fileno()

    def name_holder(self, pid: int) -> None:
        """Write down who trains."""
        holder = {"pid": pid, "mark": process_mark(pid), "host": socket.gethostname()}
        self._file.seek(0)
        self._file.truncate()
        self._file.write(json.dumps(holder) + "\n")
        self._file.flush()


Flock = Callable[[int, int], None]


def take(folder: Path, *, flock: Flock | None = None) -> RunLock:
    """Take the lock of a run folder; `flock` stands in for the system call.

    Raises:
        ResourceError: another process trains this folder.
    """
    import fcntl

    flock = flock or fcntl.flock
    with contextlib.ExitStack() as undo:
        file = undo.enter_context((folder / LOCK_FILE).open("a+", encoding="utf-8"))
        for _ in range(_TRIES):
            try:
                flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_RETRY_S)
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
                if not _is_alive(_read(folder)):
                    undo.pop_all()
                    return RunLock(file)
                break
            else:
                undo.pop_all()
                return RunLock(file)
    raise _in_use(folder)


def holder(folder: Path, *, flock: Flock | None = None) -> Holder | None:
    """Who trains this folder now; None: nobody."""
    import fcntl

    flock = flock or fcntl.flock
    written = _read(folder)
    try:
        with (folder / LOCK_FILE).open(encoding="utf-8") as file:
            flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
    except FileNotFoundError:
        return None
    except BlockingIOError:
        return written or Holder(pid=0, mark="", host="")
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return written if _is_alive(written) else None


def hold(folder: Path, *, env: Mapping[str, str]) -> "contextlib.AbstractContextManager[object]":
    """For the process that trains: the lock for as long as it works, unless it was started by an engine that has it.

    Raises:
        ResourceError: see `take`.
    """
    if _is_inherited(folder, env):
        return contextlib.nullcontext()
    taken = take(folder)
    taken.name_holder(os.getpid())
    return taken


def _is_inherited(folder: Path, env: Mapping[str, str]) -> bool:
    try:
        open_file = os.fstat(int(env.get(LOCK_VARIABLE, "")))
        return os.path.samestat(open_file, (folder / LOCK_FILE).stat())
    except (OSError, ValueError):
        return False


def process_mark(pid: int) -> str:
    """Boot and start time of a process; empty where the system does not tell or there is no such process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # The command's name stands in brackets and may hold anything; fields are counted from its end.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    state, start_ticks = fields[0], fields[19]
    return "" if state in "ZX" else f"{boot}/{start_ticks}"


def _is_alive(found: Holder | None) -> bool:
    if found is None:
        return False
    if found.host != socket.gethostname():
        return True  # another machine's process cannot be asked
    if found.mark:
        return process_mark(found.pid) == found.mark
    try:
        os.kill(found.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _read(folder: Path) -> Holder | None:
    try:
        fields = json.loads((folder / LOCK_FILE).read_text(encoding="utf-8"))
        return Holder(pid=int(fields["pid"]), mark=str(fields["mark"]), host=str(fields["host"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _in_use(folder: Path) -> ResourceError:
    found = _read(folder)
    who = f" (process {found.pid} on {found.host})" if found else ""
    stop = f", or stop it: kill {found.pid}" if found and found.host == socket.gethostname() else ""
    return ResourceError(
        what=f"the run folder {folder} is being trained already{who}",
        expected="one process for each run folder",
        next_step=f"wait for it to end{stop}",
    )
