"""Power to energy: readings of watts added up over time, and the thread that takes them."""

import threading
from collections.abc import Callable


class PowerIntegral:
    """Joules out of readings of watts, each pair joined by a straight line.

    A gap of more than `gap_s` between readings (a machine that slept, a command that hung) is not energy that anybody
    saw: when such gaps are more than a tenth of the time, the sum is not known.
    """

    _MOST_UNSEEN = 0.1

    def __init__(self, *, gap_s: float) -> None:
        """Nothing seen yet."""
        self._gap_s = gap_s
        self._joules = 0.0
        self._seen_s = 0.0
        self._unseen_s = 0.0
        self._last: tuple[float, float] | None = None

    def add(self, at_s: float, power_w: float) -> None:
        """A reading at that time of a clock that never jumps."""
        if self._last is not None:
            self._join(self._last, at_s, power_w)
        self._last = (at_s, power_w)

    def joules(self, at_s: float) -> float | None:
        """The sum up to that time, the last reading held until then; None when too little was seen."""
        if self._last is None:
            return None
        tail_s = max(0.0, at_s - self._last[0])
        held_s = tail_s if tail_s <= self._gap_s else 0.0
        unseen_s = self._unseen_s + tail_s - held_s
        total_s = self._seen_s + held_s + unseen_s
        if unseen_s > self._MOST_UNSEEN * total_s:
            return None
        mean_w = (self._joules + held_s * self._last[1]) / max(total_s - unseen_s, 1e-9)
        # What was not seen is taken for the mean of what was.
        return self._joules + held_s * self._last[1] + unseen_s * mean_w

    def _join(self, last: tuple[float, float], at_s: float, power_w: float) -> None:
        span_s = max(0.0, at_s - last[0])
        if span_s > self._gap_s:
            self._unseen_s += span_s
        else:
            self._joules += span_s * (last[1] + power_w) / 2
            self._seen_s += span_s


class Poller:
    """Calls `poll` every `period_s` in a thread of its own, which ends with the process."""

    def __init__(self, poll: Callable[[], None], *, period_s: float) -> None:
        """Start."""
        self._poll = poll
        self._period_s = period_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scrimp energy meter", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait until a poll under way is over."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._period_s):
            self._poll()
