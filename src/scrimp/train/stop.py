"""Signals that ask a run to stop: at once while there is nothing to lose, else at the next step boundary."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from scrimp.core.errors import InterruptedRunError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """Whether somebody asked the run to stop. Asking twice is asking once: a save under way is never disturbed."""

    def __init__(self) -> None:
        """Nobody has asked yet."""
        self._asked_by: str | None = None
        self._at_once = False

    @property
    def asked_by(self) -> str | None:
        """Name of the first signal; None while nobody asked."""
        return self._asked_by

    def ask(self, name: str) -> None:
        """Ask the run to stop.

        Raises:
            InterruptedRunError: inside `at_once`.
        """
        self._asked_by = self._asked_by or name
        if self._at_once:
            self._at_once = False
            raise interrupted_before_training(self._asked_by)

    @contextmanager
    def at_once(self) -> Generator[None]:
        """While the model and the data are loaded: a signal ends the work on the spot.

        Raises:
            InterruptedRunError: a signal came, before or inside.
        """
        self.check()
        self._at_once = True
        try:
            yield
        finally:
            self._at_once = False
        # A signal can arrive where Python swallows exceptions (a destructor); the request itself is not lost.
        self.check()

    def check(self) -> None:
        """Raise if somebody asked before any step was taken.

        Raises:
            InterruptedRunError: somebody did.
        """
        if self._asked_by is not None:
            raise interrupted_before_training(self._asked_by)


def interrupted_before_training(name: str) -> InterruptedRunError:
    """The error for a run that was stopped while it loaded."""
    return InterruptedRunError(
        what=f"stopped by {name} before this attempt took a step",
        expected="nothing is lost: what was saved before is untouched",
        next_step="scrimp resume last",
    )


@contextmanager
def listening(stop: StopSignals) -> Generator[StopSignals]:
    """SIGINT and SIGTERM go to `stop`. Elsewhere than in the main thread Python takes no signals: nothing happens."""

    def on_signal(number: int, _frame: FrameType | None) -> None:
        stop.ask(signal.Signals(number).name)

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
