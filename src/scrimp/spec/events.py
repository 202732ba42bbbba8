"""events.jsonl: one RunEvent a line, appended by whatever trains, read by whatever looks on.

A process can be killed in the middle of a line. Readers skip what is no whole event; a writer that continues such a
file starts on a fresh line.
"""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast, get_args

from scrimp.core.run import EventKind, EventValue, RunEvent

EVENTS_FILE = "events.jsonl"
_KINDS = frozenset(get_args(EventKind))


def event_line(event: RunEvent) -> str:
    """One event as a line with its newline. NaN and infinity are written as null: not known."""
    values = {name: _storable(value) for name, value in event.values.items()}
    fields = {"at_s": event.at_s, "attempt": event.attempt, "kind": event.kind, "step": event.step, "values": values}
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"


def parse_event(line: str | bytes) -> RunEvent | None:
    """The event on a line; None when the line is torn, damaged, or of a kind that this version does not know."""
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    if not isinstance(fields, dict):
        return None
    found = cast("dict[str, Any]", fields)
    values = found.get("values", {})
    whole = (
        isinstance(found.get("at_s"), int | float)
        and isinstance(found.get("attempt"), int)
        and isinstance(found.get("step"), int)
        and found.get("kind") in _KINDS
        and isinstance(values, dict)
    )
    if not whole:
        return None
    return RunEvent(
        at_s=float(found["at_s"]),
        attempt=found["attempt"],
        kind=found["kind"],
        step=found["step"],
        values=cast("dict[str, EventValue]", values),
    )


def parse_events(lines: Iterable[str | bytes]) -> tuple[RunEvent, ...]:
    """The whole events among the lines, in their order."""
    return tuple(event for event in map(parse_event, lines) if event is not None)


def read_events(path: Path) -> tuple[RunEvent, ...]:
    """All whole events of a file; none when there is no file (yet)."""
    try:
        with path.open("rb") as file:
            return parse_events(file)
    except FileNotFoundError:
        return ()


def _storable(value: EventValue) -> EventValue:
    return None if isinstance(value, float) and not math.isfinite(value) else value
