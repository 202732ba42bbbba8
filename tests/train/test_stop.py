"""Asking a run to stop."""

import os
import signal
import threading
from contextlib import suppress

import pytest

from scrimp.core.errors import InterruptedRunError
from scrimp.train.stop import StopSignals, listening


def test_real_signals_are_taken_and_given_back():
    before = signal.getsignal(signal.SIGTERM)
    stop = StopSignals()
    with listening(stop):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
    assert stop.asked_by == "SIGTERM", "the first one counts, the second changes nothing"
    assert signal.getsignal(signal.SIGTERM) is before


def test_at_once_ends_the_work_on_the_spot():
    stop = StopSignals()
    reached = []

    def work():
        with listening(stop), stop.at_once():
            reached.append("begun")
            os.kill(os.getpid(), signal.SIGTERM)
            reached.append("not this")

    with pytest.raises(InterruptedRunError, match="before this attempt took a step"):
        work()
    assert reached == ["begun"]
    assert stop.asked_by == "SIGTERM"


def test_after_at_once_a_signal_only_leaves_a_mark():
    stop = StopSignals()
    with stop.at_once():
        pass
    stop.ask("SIGINT")
    assert stop.asked_by == "SIGINT"


def test_a_request_that_python_swallowed_is_not_lost():
    stop = StopSignals()

    def swallowing():
        with stop.at_once(), suppress(InterruptedRunError):  # what an exception in a destructor amounts to
            stop.ask("SIGTERM")

    with pytest.raises(InterruptedRunError):
        swallowing()


def test_a_request_from_before_is_seen_at_once():
    stop = StopSignals()
    stop.ask("SIGTERM")
    with pytest.raises(InterruptedRunError), stop.at_once():
        pytest.fail("the work must not begin")


def test_elsewhere_than_in_the_main_thread_nothing_happens():
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def work():
        with listening(StopSignals()):
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
