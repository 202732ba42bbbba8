"""Other estimators on exactly the rows that grade ours, with our figure on the same rows beside each.

    python benchmarks/grade_peers.py

Errors are |forecast / measured - 1|. "Fits" is held against the memory that the card's driver reports: a peer by its
one figure, ours by what it says a card must have.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

sys.path.insert(0, str(Path(__file__).parent))

from peers import memory_peers, time_peers
from peers.peer import GIB, MemoryPeer, TimePeer

from scrimp.calibrate.memory_grade import memory_outcome, need_bytes
from scrimp.calibrate.memory_rows import MemoryRow, memory_rows
from scrimp.calibrate.outcome import share
from scrimp.calibrate.table import read_table
from scrimp.calibrate.time_grade import time_outcome
from scrimp.calibrate.time_rows import TimeRow, time_rows

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
    print_peers()


def print_peers() -> None:
    """Three tables, and what does not run here, quoted."""
    print("\nothers on our rows; OOM, ran: share of such runs that are called fitting")
    rows = list(memory_rows(read_table(CALIBRATION / "measured_memory.csv")))
    _print("memory of one card", [grade_memory(peer, one_card(rows)) for peer in memory_peers()])
    _print("memory of each of several cards", [grade_memory(peer, sharded(rows)) for peer in memory_peers()])
    speed = measured_speed()
    _print("tokens a second", [grade_time(peer, speed) for peer in time_peers()])
    print("\nquoted from calibration/peers.csv: not run here, on rows of the same kind")
    for row in read_table(CALIBRATION / "peers.csv"):
        print(f"  {row['estimator']:32}{row['rows']:>4}{float(row['mape']):7.1%}")


def one_card(rows: Iterable[MemoryRow]) -> list[MemoryRow]:
    """Runs on one card with a fully stated configuration: the rows of our figure for memory."""
    return [row for row in rows if row.case.gpus == 1 and row.row["confidence"] == "high"]


def sharded(rows: Iterable[MemoryRow]) -> list[MemoryRow]:
    """Runs that share out weights and states: the rows of our figure for several cards."""
    return [row for row in rows if row.case.shards > 1 and row.row["confidence"] != "low"]


def measured_speed() -> list[TimeRow]:
    """The rows of our figure for time."""
    bandwidths = {
        row["gpu"]: float(row["bandwidth_gb_s"]) * 1e9 for row in read_table(CALIBRATION / "gpu_bandwidth.csv")
    }
    return list(time_rows(read_table(CALIBRATION / "measured_time.csv"), bandwidths=bandwidths))


def grade_memory(peer: MemoryPeer, rows: Sequence[MemoryRow]) -> Beside | None:
    """On the rows that the peer covers; None when it covers none that ran."""
    covered = [(row, found) for row in rows if (found := peer.gib(row)) is not None]
    if not any(row.ran for row, _ in covered):
        return None
    ours = [(row, memory_outcome(row).forecast, need_bytes(row) / GIB) for row, _ in covered]
    return Beside(
        name=peer.name,
        source=peer.source,
        peer=_memory_grade([(row, found, found) for row, found in covered]),
        ours=_memory_grade(ours),
    )


def grade_time(peer: TimePeer, rows: Sequence[TimeRow]) -> Beside | None:
    """On the rows that the peer covers."""
    covered = [(row, found) for row in rows if (found := peer.tokens_per_s(row, rows)) is not None]
    if not covered:
        return None
    return Beside(
        name=peer.name,
        source=peer.source,
        peer=_grade([found / row.tokens_per_s_per_gpu - 1 for row, found in covered]),
        ours=_grade([time_outcome(row).error for row, _ in covered]),
    )


def _memory_grade(found: Sequence[tuple[MemoryRow, float, float]]) -> PeerGrade:
    """(row, peak, what a card must have), in GiB."""
    errors = [peak / row.measured_gib - 1 for row, peak, _ in found if row.ran and row.measured_gib]

    def called_fits(ran: bool) -> float | None:
        verdicts = [
            need <= row.capacity_gib for row, _, need in found if row.ran == ran and row.capacity_gib is not None
        ]
        return share(verdicts) if verdicts else None

    return _grade(errors, oom_called_fits=called_fits(False), ran_called_fits=called_fits(True))


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
