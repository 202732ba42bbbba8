"""Events while a job runs: the end of events.jsonl, read as it grows."""

from collections.abc import Callable, Iterator
from pathlib import Path

from scrimp.core.run import RunEvent
from scrimp.spec.events import parse_event

# How stale a display may be. Between looks the caller sleeps in `wait`, which returns at once when the job ends.
LOOK_EVERY_S = 0.25


def follow(path: Path, *, wait: Callable[[float], bool], start_bytes: int = 0) -> Iterator[RunEvent]:
    """Whole events of `path` from `start_bytes` on, until the job has ended and all that it wrote was given out.

    `wait(seconds)` sleeps until the job ends, at most that long, and says whether it has ended. A line that is still
    being written is given out when it is whole; one that was torn by a kill, never.
    """
    tail = _Tail(path, start_bytes)
    ended = False
    while not ended:
        yield from tail.new_events()
        ended = wait(LOOK_EVERY_S)
    yield from tail.new_events()


def log_tail(path: Path, *, lines: int = 20, at_most_bytes: int = 8192) -> str:
    """The last lines of a log: what a job that died without a word said last."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - at_most_bytes))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


class _Tail:
    """Remembers how far a growing file was read, and the beginning of a line that is not whole yet."""

    def __init__(self, path: Path, start_bytes: int) -> None:
        self._path = path
        self._read_bytes = start_bytes
        self._unfinished = b""

    def new_events(self) -> list[RunEvent]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._read_bytes)
                chunk = file.read()
        except FileNotFoundError:
            return []
        self._read_bytes += len(chunk)
        *whole, self._unfinished = (self._unfinished + chunk).split(b"\n")
        return [event for event in map(parse_event, whole) if event is not None]
