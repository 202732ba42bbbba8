"""Every forecaster on the measured runs that grade it: as shipped, and fitted without the group it is asked about.

`shipped` says how good the numbers are that users get, on rows that helped to fit them; `unseen` what they are worth on
the next one. Money has no entry: on published runs it is their time at a list price, so its error is that of the time;
what was really billed is graded in each user's own ledger.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from scrimp.calibrate.crossval import with_unseen_intervals
from scrimp.calibrate.memory.fit import unseen_outcomes as unseen_memory_rows
from scrimp.calibrate.memory.grade import graded_memory, measured_rows, unseen_memory, verdict_figures
from scrimp.calibrate.memory.rows import memory_rows
from scrimp.calibrate.outcome import Outcome, error_figures
from scrimp.calibrate.power.grade import left_out_outcomes, power_outcomes
from scrimp.calibrate.process.grade import cpu_outcomes, process_outcome
from scrimp.calibrate.process.rows import process_rows
from scrimp.calibrate.table import Row
from scrimp.calibrate.time.grade import time_outcome, unseen_time
from scrimp.calibrate.time.rows import time_rows

Tables = Callable[[str], Sequence[Row]]
Figures = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One forecaster's rows. `unit` is that of its figures; `verdicts` are shares that no outcome can express.

    `unseen` holds the rows under constants and intervals that saw nothing of their group, where anything is fitted.
    """

    name: str
    unit: str
    shipped: Sequence[Outcome]
    unseen: Sequence[Outcome] = ()
    verdicts: tuple[tuple[str, float], ...] = ()

    @property
    def figures(self) -> Figures:
        """Errors as shipped, and the verdicts."""
        return error_figures(self.shipped) | dict(self.verdicts)

    @property
    def unseen_figures(self) -> Figures:
        """Errors on unseen rows, and how often intervals made from the other groups held."""
        return error_figures(self.unseen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradebook:
    """All entries; and by quantity every unseen row with its unseen interval, for coverage by region."""

    entries: tuple[Entry, ...]
    regions: dict[str, Sequence[Outcome]]

    def entry(self, name: str) -> Entry:
        """One of them by name.

        Raises:
            KeyError: there is none of that name.
        """
        return {entry.name: entry for entry in self.entries}[name]


def gradebook(tables: Tables, *, refit: bool = True) -> Gradebook:
    """All forecasters on the tables in calibration/. Without `refit` nothing is unseen: that is the fast half."""
    memory, memory_regions = _memory(tables, refit=refit)
    time, time_regions = _time(tables, refit=refit)
    power = _power(tables, refit=refit)
    return Gradebook(
        entries=(*memory, *time, power, *_processes(tables)),
        regions={"memory": memory_regions, "time": time_regions} if refit else {},
    )


def _memory(tables: Tables, *, refit: bool) -> tuple[list[Entry], Sequence[Outcome]]:
    rows = list(memory_rows(tables("measured_memory.csv")))
    measured = measured_rows(rows)
    unseen = unseen_memory(measured) if refit else {}
    verdicts = verdict_figures(row for row in rows if row.case.gpus == 1 and row.row["confidence"] == "high")
    entries = [
        Entry(
            name=name,
            unit="GiB",
            shipped=shipped,
            unseen=unseen.get(name, ()),
            verdicts=tuple(verdicts.items()) if name == "memory" else (),
        )
        for name, shipped in graded_memory(measured).items()
    ]
    return entries, with_unseen_intervals(unseen_memory_rows(measured)) if refit else ()


def _time(tables: Tables, *, refit: bool) -> tuple[list[Entry], Sequence[Outcome]]:
    """As shipped and without the group; then without the whole source, and without every GPU of the class.

    The last two have no shipped half of their own: what they leave out is in the constants that are shipped.
    """
    rows = list(time_rows(tables("measured_time.csv")))
    shipped = [time_outcome(row) for row in rows]
    unseen = unseen_time(rows) if refit else {}
    entries = [
        Entry(
            name=name, unit="tokens/s per GPU", shipped=shipped if name == "time" else (), unseen=unseen.get(name, ())
        )
        for name in (unseen or ("time",))
    ]
    everything = [outcome for outcomes in unseen.values() for outcome in outcomes]
    return entries, with_unseen_intervals(everything) if everything else ()


def _power(tables: Tables, *, refit: bool) -> Entry:
    """A system is forecast by the ratios of the others; a load that one system alone was seen under drops out."""
    rows = tables("measured_power.csv")
    unseen = with_unseen_intervals(left_out_outcomes(rows)) if refit else ()
    return Entry(name="power", unit="W", shipped=power_outcomes(rows), unseen=unseen)


def _processes(tables: Tables) -> Iterable[Entry]:
    """This project's own runs on one CPU: nothing is fitted again, three shapes are too few to leave one out."""
    rows = list(process_rows(tables("measured_process.csv")))
    return (
        Entry(
            name="process_memory", unit="GiB", shipped=[process_outcome(row) for row in rows if row.is_of_this_trainer]
        ),
        Entry(name="cpu_time", unit="s", shipped=[outcome for row in rows for outcome in cpu_outcomes(row)]),
    )
