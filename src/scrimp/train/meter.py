"""The money and time meter: what was spent, and whether the next step would pass a limit."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from scrimp.core.recipe import ResolvedJob
from scrimp.core.run import RunEvent
from scrimp.core.units import HOUR_S, usd
from scrimp.train.clock import Clock
from scrimp.train.power.watch import OFF, EnergyWatch

# Steps whose slowest rate the next one is expected at: a limit that must hold is not compared with a mean.
_RECENT_STEPS = 8
# What a save is reckoned at before the first one was timed: a slow disk, and the time to hash and flush.
_SAVE_BYTES_PER_S = 100e6
_SAVE_LEAST_S = 1.0
# What is ahead is reckoned a quarter longer than seen so far: a limit is to be held, not hit.
_MARGIN_RATIO = 1.25
# Rounded to where an hour of the cheapest machine is still exact to the microsecond.
_USD_STEP = Decimal("0.00000001")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit that the next step would pass: `budget` or `deadline`, and what it would come to."""

    name: str
    spent_usd: Decimal | None
    budget_usd: Decimal | None


class Meter:
    """Wall-clock seconds and dollars of one run, earlier attempts included.

    An attempt costs its wall-clock time at the hourly price. The deadline counts from the first attempt's start.
    `energy` is what the hardware's own meters say of this attempt.
    """

    def __init__(
        self, job: ResolvedJob, *, earlier: Iterable[RunEvent], clock: Clock, energy: EnergyWatch | None = None
    ) -> None:
        """Start counting now, on top of what `earlier` events and the job say was spent before."""
        self.energy = energy or EnergyWatch(sources=OFF, clock_s=clock.wall_s)
        self._clock = clock
        self._price_usd_per_hour = job.price_usd_per_hour
        self._budget_usd = job.budget_usd
        self._began_s = clock.wall_s()
        events = tuple(earlier)
        # The starter's ledger knows of time between last sign of life and end; the events know of attempts that
        # nobody billed. Neither may be forgotten, and both count the same seconds, so the larger one is right.
        self._before_usd = max(job.spent_before_usd, _last_spent_usd(events))
        first_at_s = next((event.at_s for event in events if event.kind == "started"), clock.now_s())
        self._deadline_at_s = None if job.deadline_s is None else first_at_s + job.deadline_s
        self._rates: deque[float] = deque(maxlen=_RECENT_STEPS)
        self._save_s: float | None = None
        self.train_s = 0.0
        self.duties_s = 0.0

    @property
    def total_s(self) -> float:
        """Wall-clock seconds of this attempt."""
        return self._clock.wall_s() - self._began_s

    @property
    def spent_usd(self) -> Decimal | None:
        """Dollars of all attempts up to now; None when the machine's price is unknown."""
        return self._spent_after(0.0)

    def took_step(self, *, tokens: int, step_s: float) -> None:
        """Learn the speed of a finished step."""
        self.train_s += step_s
        self.saw_rate(tokens / max(step_s, 1e-9))

    def saw_rate(self, tokens_per_s: float) -> None:
        """Learn a speed."""
        self._rates.append(tokens_per_s)

    def took_save(self, save_s: float) -> None:
        """Learn what a save takes; the slowest counts."""
        self._save_s = max(save_s, self._save_s or 0.0)

    def took_duties(self, duties_s: float) -> None:
        """Learn what evaluating and sampling at a step boundary takes; the slowest counts."""
        self.duties_s = max(duties_s, self.duties_s)

    def passed_limit(self, *, next_tokens: int, checkpoint_bytes: int, duties_due: bool) -> Limit | None:
        """The limit that one more step, what is due after it, and a save would pass; None when there is room."""
        step_s = next_tokens / min(self._rates) if self._rates else 0.0
        save_s = self._save_s or max(_SAVE_LEAST_S, checkpoint_bytes / _SAVE_BYTES_PER_S)
        ahead_s = _MARGIN_RATIO * (step_s + save_s + (self.duties_s if duties_due else 0.0))
        projected_usd = self._spent_after(ahead_s)
        spent_usd = self.spent_usd
        if self._budget_usd is not None and projected_usd is not None and projected_usd > self._budget_usd:
            return Limit(name="budget", spent_usd=spent_usd, budget_usd=self._budget_usd)
        if self._deadline_at_s is not None and self._clock.now_s() + ahead_s > self._deadline_at_s:
            return Limit(name="deadline", spent_usd=spent_usd, budget_usd=None)
        return None

    def projected_usd(self, *, tokens_left: int) -> Decimal | None:
        """Dollars at the end of training at the mean of recent speeds; None when the price is unknown."""
        if not self._rates:
            return self.spent_usd
        mean = sum(self._rates) / len(self._rates)
        return self._spent_after(tokens_left / mean)

    def _spent_after(self, ahead_s: float) -> Decimal | None:
        if self._price_usd_per_hour is None:
            return None
        spent = self._price_usd_per_hour * Decimal(self.total_s + ahead_s) / HOUR_S
        return (self._before_usd + spent).quantize(_USD_STEP)


def _last_spent_usd(events: tuple[RunEvent, ...]) -> Decimal:
    said = (event.values.get("spent_usd") for event in reversed(events))
    return next((usd(str(value)) for value in said if value is not None), Decimal(0))
