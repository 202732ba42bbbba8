"""The clocks of a run, handed in so that tests can turn them."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """`now_s` is Unix time, for what others read; `wall_s` never jumps, for durations; `cpu_s` is CPU time used."""

    now_s: Callable[[], float]
    wall_s: Callable[[], float]
    cpu_s: Callable[[], float]


def real_clock() -> Clock:
    """This machine's and this process's clocks."""
    return Clock(now_s=time.time, wall_s=time.monotonic, cpu_s=time.process_time)
