"""Watch a started job to its end: hand out its events, pass signals on, leave nothing running."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from scrimp.core.run import RunEvent
from scrimp.launch.engine import Engine, Handle
from scrimp.launch.follow import follow
from scrimp.spec.events import EVENTS_FILE

# Long enough for a checkpoint of a large model to reach a slow disk.
GRACE_S = 120.0
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# The first signal asks for a checkpoint at the next step, the second says that it is meant, the third ends it.
_PATIENCE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a job ended. A negative `exit_code` is the signal that killed it; `killed`: it was us, after the grace."""

    exit_code: int
    signals: int
    killed: bool


class _Stopping:
    """Signals that came in while a job runs, and what became of them."""

    def __init__(self, engine: Engine, handle: Handle, *, grace_s: float, clock: Callable[[], float]) -> None:
        self._engine = engine
        self._handle = handle
        self._grace_s = grace_s
        self._clock = clock
        self._kill_at_s: float | None = None
        self.signals = 0
        self.killed = False

    def on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.signals += 1
        if self.signals > _PATIENCE:
            self.kill()
            return
        # A closed terminal is a reason to save and stop, not to die on the spot.
        self._engine.signal(self._handle, signal.SIGTERM if number == signal.SIGHUP else number)
        if self._kill_at_s is None:
            self._kill_at_s = self._clock() + self._grace_s

    def kill_when_overdue(self) -> None:
        if self._kill_at_s is not None and self._clock() >= self._kill_at_s and not self.killed:
            self.kill()

    def kill(self) -> None:
        self.killed = True
        self._engine.kill(self._handle)


def attend(
    engine: Engine,
    handle: Handle,
    *,
    on_event: Callable[[RunEvent], None],
    grace_s: float = GRACE_S,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Hand every event to `on_event` until the job ends.

    SIGINT, SIGTERM and SIGHUP go on to the job instead of ending this process (from the main thread; elsewhere
    Python takes no signals). A job that has not ended `grace_s` after the first of them is killed, as it is at the
    third. Whatever goes wrong here, the job is stopped before this function is left.
    """
    stopping = _Stopping(engine, handle, grace_s=grace_s, clock=clock)

    def wait(timeout_s: float) -> bool:
        code = engine.wait(handle, timeout_s=timeout_s)
        stopping.kill_when_overdue()
        return code is not None

    with _signals_to(stopping.on_signal):
        try:
            path = handle.folder / EVENTS_FILE
            for event in follow(path, wait=wait, start_bytes=handle.events_start_bytes):
                on_event(event)
        except BaseException:
            engine.stop(handle, grace_s=grace_s)
            raise
    code = engine.poll(handle)
    return Outcome(exit_code=0 if code is None else code, signals=stopping.signals, killed=stopping.killed)


@contextmanager
def _signals_to(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # What is ignored stays ignored: nohup does that to SIGHUP.
    taken = [number for number in _FORWARDED if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in taken}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
