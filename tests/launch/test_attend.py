"""Signals on their way from the terminal to the job, with real processes."""

import os
import signal
import subprocess
import sys
from itertools import count

import pytest

from scrimp.launch.attend import attend

ENV = dict(os.environ)


def _send_when_hanging(*signals):
    """An `on_event` that signals this very process once the job waits, the next after each time the job notes one."""
    left = list(signals)

    def on_event(event):
        if event.kind == "note" and left:
            os.kill(os.getpid(), left.pop(0))

    return on_event


@pytest.fixture(autouse=True)
def taken():
    """All three signals as a terminal's shell leaves them: under nohup SIGHUP is ignored, in the background SIGINT."""
    before = {
        number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("sent", "received"),
    [(signal.SIGINT, "SIGINT"), (signal.SIGTERM, "SIGTERM"), (signal.SIGHUP, "SIGTERM")],
)
def test_a_signal_goes_on_to_the_job(make_engine, job, order, sent, received):
    engine, folder = make_engine(), order(steps=1, hang=True)
    seen, on_event = [], _send_when_hanging(sent)
    handle = engine.start(job, folder=folder, env=ENV)
    before = signal.getsignal(sent)
    outcome = attend(engine, handle, on_event=lambda event: (seen.append(event), on_event(event)))
    assert outcome.exit_code == 130
    assert (outcome.signals, outcome.killed) == (1, False)
    assert [event.values["signal"] for event in seen if event.kind == "interrupted"] == [received]
    assert signal.getsignal(sent) is before


def test_the_second_signal_goes_on_too_and_the_third_kills(make_engine, job, order):
    engine, folder = make_engine(), order(stubborn=True)
    handle = engine.start(job, folder=folder, env=ENV)
    on_event = _send_when_hanging(signal.SIGINT, signal.SIGINT, signal.SIGINT)
    outcome = attend(engine, handle, on_event=on_event)
    assert (outcome.exit_code, outcome.signals, outcome.killed) == (-signal.SIGKILL, 3, True)
    assert (folder / "events.jsonl").read_text().count('"SIGINT"') == 2


def test_a_job_that_outlives_the_grace_is_killed(make_engine, job, order):
    engine = make_engine()
    handle = engine.start(job, folder=order(stubborn=True), env=ENV)
    clock = count(step=50)
    outcome = attend(
        engine, handle, on_event=_send_when_hanging(signal.SIGTERM), grace_s=120.0, clock=lambda: float(next(clock))
    )
    assert (outcome.exit_code, outcome.signals, outcome.killed) == (-signal.SIGKILL, 1, True)


def test_what_was_ignored_stays_ignored(make_engine, job, order):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def on_event(event):
        if event.kind == "note":
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGINT)

    try:
        engine = make_engine()
        outcome = attend(engine, engine.start(job, folder=order(hang=True), env=ENV), on_event=on_event)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (outcome.exit_code, outcome.signals) == (130, 1)


def test_without_signals_in_a_thread_the_job_is_still_followed(make_engine, job, order):
    import threading

    engine, outcomes = make_engine(), []
    handle = engine.start(job, folder=order(steps=2), env=ENV)
    thread = threading.Thread(target=lambda: outcomes.append(attend(engine, handle, on_event=lambda event: None)))
    thread.start()
    thread.join(60)
    assert outcomes[0].exit_code == 0


TERMINAL = """
import os, sys
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from scrimp.launch.attend import attend
from scrimp.launch.engines.local import LocalEngine
from scrimp.ledger.bill import MachineRate

engine = LocalEngine(rate=MachineRate(price_usd_per_hour=None, source=""), command=(sys.executable, sys.argv[1]))
job = SimpleNamespace(run_id="run-1", threads=1)
handle = engine.start(job, folder=Path(sys.argv[2]), env=dict(os.environ))
outcome = attend(engine, handle, on_event=lambda event: print(event.kind, event.values.get("text", ""), flush=True))
print("outcome", outcome.exit_code, outcome.signals, flush=True)
"""


@pytest.fixture
def terminal(request):
    """A process group of its own, as a shell makes it, that runs a job and attends to it."""
    trainer = str(request.path.parent / "fake_trainer.py")
    started = []

    def start(folder):
        process = subprocess.Popen(
            [sys.executable, "-c", TERMINAL, trainer, str(folder)],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def _read_until(process, text):
    for line in process.stdout:
        if line.strip() == text:
            return
    raise AssertionError(f"the process ended before it said {text}")


def test_ctrl_c_reaches_the_job_once(terminal, order):
    folder = order(steps=1, hang=True)
    process = terminal(folder)
    _read_until(process, "note hanging")
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert "outcome 130 1" in output
    assert (folder / "events.jsonl").read_text().count("SIGINT") == 1


def test_when_the_starter_is_killed_the_job_checkpoints_and_ends(terminal, order):
    import fcntl

    folder = order(steps=1, hang=True)
    process = terminal(folder)
    _read_until(process, "note hanging")
    process.kill()
    process.wait()
    with (folder / "run.lock").open() as file:
        # The lock is free when the last process of the job has ended, so waiting for it needs no clock.
        fcntl.flock(file, fcntl.LOCK_EX)
    assert '"interrupted"' in (folder / "events.jsonl").read_text()
