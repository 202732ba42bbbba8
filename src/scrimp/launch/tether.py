"""Ties a job to the process that started it. Runs as a script of its own, with the standard library alone.

    python tether.py GRACE_S COMMAND...

Its standard input is a pipe whose other end the starter holds and never writes to: when it closes, the starter is
gone, however it died. The job then gets SIGTERM, writes a checkpoint and ends; what is left after GRACE_S seconds is
killed. (The kernel's parent-death signal would do the same on Linux alone, and fires already when the starting thread
ends.) Signals sent to this process go on to the job. It ends as the job ends: same exit code, same signal.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(arguments: list[str]) -> int:
    """Run the command to its end; its exit code, negative for a signal."""
    grace_s, command = float(arguments[0]), arguments[1:]
    early: list[int] = []
    job: list[subprocess.Popen[bytes]] = []

    def forward(number: int, _frame: object) -> None:
        # A closed terminal is a reason to save and stop, not to die on the spot.
        number = signal.SIGTERM if number == signal.SIGHUP else number
        if job:
            job[0].send_signal(number)
        else:
            early.append(number)

    for known in _FORWARDED:
        signal.signal(known, forward)
    # Inheritable files go on to the job: that is how it keeps the lock of its run folder.
    job.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, close_fds=False))
    for number in early:
        job[0].send_signal(number)
    ended = threading.Event()
    threading.Thread(target=_watch_starter, args=(job[0], ended, grace_s), daemon=True).start()
    code = job[0].wait()
    ended.set()
    _end_leftovers()
    return code


def _watch_starter(job: "subprocess.Popen[bytes]", ended: threading.Event, grace_s: float) -> None:
    while os.read(0, 64):
        pass
    job.send_signal(signal.SIGTERM)
    if not ended.wait(grace_s):
        os.killpg(0, signal.SIGKILL)


def _end_leftovers() -> None:
    """Ask whatever the job started and left behind to end; all of it is in this process's group."""
    for number in _FORWARDED:
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(0, signal.SIGTERM)


if __name__ == "__main__":
    exit_code = main(sys.argv[1:])
    if exit_code < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler to take back
            signal.signal(-exit_code, signal.SIG_DFL)
        os.kill(os.getpid(), -exit_code)
    sys.exit(exit_code)
