"""Other estimators on exactly the rows that grade ours, with our figure on the same rows beside each.

    python benchmarks/grade_peers.py

Errors are |forecast / measured - 1|. Ours are of rows whose group the fit had not seen; the others' rules are as
published. "Fits" is held against the memory that the card's driver reports: a peer by its one figure, ours by what it
says a card must have.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

sys.path.insert(0, str(Path(__file__).parent))

from peers import memory_peers, time_peers
from peers.peer import GIB, MemoryPeer, TimePeer, speaks_of

from scrimp.calibrate.gradebook import Gradebook, gradebook
from scrimp.calibrate.memory.fit import need_bytes
from scrimp.calibrate.memory.grade import measured_rows
from scrimp.calibrate.memory.rows import MemoryRow, memory_rows
from scrimp.calibrate.outcome import Outcome, share
from scrimp.calibrate.table import Row, read_table
from scrimp.calibrate.time.rows import TimeRow, time_rows
from scrimp.estimate.memory.fitted import fitted_memory

CALIBRATION = Path(__file__).parents[1] / "calibration"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerGrade:
    """How one estimator did on the rows that it covers. None: nothing to say (no such rows)."""

    rows: int
    mape: float
    median: float
    under: float
    under_by_10: float
    oom_called_fits: float | None = None
    ran_called_fits: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A peer's grade, and ours on the same rows."""

    name: str
    source: str
    peer: PeerGrade
    ours: PeerGrade


def main() -> None:
    """Print all tables."""
    print_peers(gradebook(table))


def print_peers(book: Gradebook) -> None:
    """Three tables, and what does not run here, quoted."""
    print("\nothers on our rows; OOM, ran: share of such runs that are called fitting")
    rows = list(memory_rows(table("measured_memory.csv")))
    for name, title, chosen in (
        ("memory", "memory of one card", is_one_card),
        ("memory_sharded", "memory of each of several cards", is_sharded),
    ):
        graded = list(zip(filter(chosen, peaks(rows)), book.entry(name).unseen, strict=True))
        failed = [row for row in rows if chosen(row) and not row.ran]
        _print(title, [grade_memory(peer, graded, failed) for peer in memory_peers()])
    speed = list(zip(measured_speed(), book.entry("time").unseen, strict=True))
    _print("tokens a second", [grade_time(peer, speed) for peer in time_peers()])
    print("\nquoted from calibration/peers.csv: not run here, on rows of the same kind")
    for row in table("peers.csv"):
        print(f"  {row['estimator']:32}{row['rows']:>4}{float(row['mape']):7.1%}")


def table(name: str) -> list[Row]:
    """Rows of a table in calibration/."""
    return read_table(CALIBRATION / name)


def peaks(rows: Iterable[MemoryRow]) -> list[MemoryRow]:
    """The runs that grade our peaks, in the order in which they do; the driver's figures are rows of another kind."""
    return [row for row in measured_rows(rows) if row.measured_gib != row.smi_gib]


def is_one_card(row: MemoryRow) -> bool:
    """A run on one card whose configuration is stated in full."""
    return row.case.gpus == 1 and row.row["confidence"] == "high"


def is_sharded(row: MemoryRow) -> bool:
    """A run that shares out weights and states."""
    return row.case.shards > 1


def measured_speed() -> list[TimeRow]:
    """The rows of our figure for time."""
    return list(time_rows(table("measured_time.csv")))


def grade_memory(
    peer: MemoryPeer, graded: Sequence[tuple[MemoryRow, Outcome]], failed: Sequence[MemoryRow]
) -> Beside | None:
    """On the rows that the peer covers; None when it covers none. `failed` are runs that ended out of memory."""
    ran = [(row, ours, found) for row, ours in graded if (found := _answer(peer, row)) is not None]
    if not ran:
        return None
    oom = [(row, found) for row in failed if (found := _answer(peer, row)) is not None]
    return Beside(
        name=peer.name,
        source=peer.source,
        peer=_grade(
            [found / ours.measured - 1 for _, ours, found in ran],
            oom_called_fits=_called_fits((row, found) for row, found in oom),
            ran_called_fits=_called_fits((row, found) for row, _, found in ran),
        ),
        ours=_grade(
            [ours.error for _, ours, _ in ran],
            oom_called_fits=_called_fits((row, need_bytes(row, fitted_memory()) / GIB) for row, _ in oom),
            ran_called_fits=_called_fits((row, need_bytes(row, fitted_memory()) / GIB) for row, _, _ in ran),
        ),
    )


def grade_time(peer: TimePeer, graded: Sequence[tuple[TimeRow, Outcome]]) -> Beside | None:
    """On the rows that the peer covers; None when it covers none."""
    rows = [row for row, _ in graded]
    covered = [(ours, found) for row, ours in graded if (found := peer.tokens_per_s(row, rows)) is not None]
    if not covered:
        return None
    return Beside(
        name=peer.name,
        source=peer.source,
        peer=_grade([found / ours.measured - 1 for ours, found in covered]),
        ours=_grade([ours.error for ours, _ in covered]),
    )


def _answer(peer: MemoryPeer, row: MemoryRow) -> float | None:
    return peer.gib(row) if speaks_of(row) else None


def _called_fits(needs: Iterable[tuple[MemoryRow, float]]) -> float | None:
    """Share of runs on cards of known size whose need, in GiB, is at most what the card has; None without any."""
    verdicts = [need <= row.capacity_gib for row, need in needs if row.capacity_gib is not None]
    return share(verdicts) if verdicts else None


def _grade(
    errors: Sequence[float], *, oom_called_fits: float | None = None, ran_called_fits: float | None = None
) -> PeerGrade:
    return PeerGrade(
        rows=len(errors),
        mape=fmean(map(abs, errors)),
        median=median(map(abs, errors)),
        under=share(error < 0 for error in errors),
        under_by_10=share(error < -0.10 for error in errors),
        oom_called_fits=oom_called_fits,
        ran_called_fits=ran_called_fits,
    )


_CELLS: tuple[tuple[str, Callable[[PeerGrade], float | None]], ...] = (
    ("mean", lambda grade: grade.mape),
    ("median", lambda grade: grade.median),
    ("under", lambda grade: grade.under),
    ("by 10%", lambda grade: grade.under_by_10),
    ("OOM", lambda grade: grade.oom_called_fits),
    ("ran", lambda grade: grade.ran_called_fits),
)


def _print(title: str, found: Sequence[Beside | None]) -> None:
    """A line for each peer, and a line for ours on the same rows under it."""
    print(f"\n{title}: others, and scrimp on the same rows")
    print(f"  {'':32}{'rows':>4}" + "".join(f"{name:>7}" for name, _ in _CELLS))
    for beside in found:
        if beside:
            print(f"  {beside.name:32}{beside.peer.rows:4}{_cells(beside.peer)}")
            print(f"  {'  scrimp':32}{beside.ours.rows:4}{_cells(beside.ours)}")


def _cells(grade: PeerGrade) -> str:
    values = [cell(grade) for _, cell in _CELLS]
    return "".join(f"{'' if value is None else f'{value:.1%}':>7}" for value in values)


if __name__ == "__main__":
    main()
