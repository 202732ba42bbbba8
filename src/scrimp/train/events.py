"""The writer of events.jsonl: append-only, flushed at every event, on the disk at every one that matters."""

import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from scrimp.core.run import EventKind, EventValue, RunEvent
from scrimp.spec.events import EVENTS_FILE, event_line, read_events
from scrimp.train.clock import Clock

# What must survive a power cut at once. Others are flushed to the system, which keeps them through a killed process.
_SYNCED: frozenset[EventKind] = frozenset(
    {"started", "resumed", "checkpointed", "interrupted", "stopped_at_cap", "finished", "failed"}
)
# An event of any kind is on the disk after this long.
_SYNC_EVERY_S = 10.0


class EventLog:
    """Events of one attempt. `step` is the last finished step, written with every event."""

    def __init__(self, folder: Path, *, clock: Clock, on_event: Callable[[RunEvent], None]) -> None:
        """Read what earlier attempts wrote and open the file behind it."""
        path = folder / EVENTS_FILE
        self.earlier = read_events(path)
        self.attempt = max((event.attempt for event in self.earlier), default=0) + 1
        self.step = 0
        self._clock = clock
        self._on_event = on_event
        self._opened_at_s = clock.now_s()
        self._synced_at_s = clock.wall_s()
        torn = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
        self._file = path.open("a", encoding="utf-8")
        if torn:
            # A killed attempt left half a line: start on a fresh one.
            self._file.write("\n")

    def __enter__(self) -> "EventLog":
        """The log itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Bring the last events to the disk."""
        self._sync()
        self._file.close()

    def emit(self, kind: EventKind, **values: EventValue) -> RunEvent:
        """Write one event and hand it on."""
        # An attempt began when its log was opened: the imports before it can say where it runs are paid for too.
        at_s = self._opened_at_s if kind == "started" else self._clock.now_s()
        event = RunEvent(at_s=at_s, attempt=self.attempt, kind=kind, step=self.step, values=values)
        self._file.write(event_line(event))
        self._file.flush()
        if kind in _SYNCED or self._clock.wall_s() - self._synced_at_s >= _SYNC_EVERY_S:
            self._sync()
        self._on_event(event)
        return event

    def note(self, text: str) -> None:
        """A line for people."""
        self.emit("note", text=text)

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._synced_at_s = self._clock.wall_s()
