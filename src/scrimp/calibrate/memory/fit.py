"""Fit how the figures that people measure follow from the count of tensors, and by how much that misses.

What is fitted is little: for each figure a ratio of the allocated peak, a ratio of the logits and a constant, pulled
towards what is known beforehand; one ratio for each method that the formulas do not know; the intervals. Errors are
relative and absolute values (outliers count once), one vote a group, rows of high confidence twice.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from math import exp, log
from statistics import median
from typing import Any

from scrimp._lazy import need
from scrimp.calibrate.conformal import region_intervals
from scrimp.calibrate.crossval import cross_validate
from scrimp.calibrate.memory.rows import MemoryRow
from scrimp.calibrate.outcome import Outcome
from scrimp.calibrate.table import source_of
from scrimp.core.units import GIB
from scrimp.estimate.memory.fitted import SEVERAL_CARDS, FigureRatios, FittedMemory, region_of
from scrimp.estimate.memory.phases import peak_bytes

# What is believed before any row: torch's own peak is what was counted; a cache holds a little more; the driver sees
# context and libraries besides (fms-acceleration gives both figures of one run: 1.06 x + 0.46 logits + 0.9 GiB).
_PRIOR: Mapping[str, FigureRatios] = {
    "allocated": FigureRatios(peak_ratio=1.0, logits_ratio=0.0, constant_bytes=0.0),
    "reserved": FigureRatios(peak_ratio=1.02, logits_ratio=0.0, constant_bytes=0.0),
    "reserved varying": FigureRatios(peak_ratio=1.05, logits_ratio=1.0, constant_bytes=0.5 * GIB),
    "device": FigureRatios(peak_ratio=1.06, logits_ratio=0.46, constant_bytes=0.9 * GIB),
    SEVERAL_CARDS: FigureRatios(peak_ratio=1.06, logits_ratio=0.46, constant_bytes=0.9 * GIB),
    "unstated": FigureRatios(peak_ratio=1.06, logits_ratio=0.2, constant_bytes=0.9 * GIB),
}
# How far each may be from that, as a standard deviation; a group's vote counts as one observation of 10%.
_SPREAD = (0.05, 0.5, 1.0 * GIB)
# Of what torch itself counts there is no context and no library: a constant of a few tensors at most.
_TORCH_SPREAD = (0.05, 0.5, 0.1 * GIB)
_ROW_ERROR = 0.10
_ROUNDS = 40
# Groups that a method needs before its own ratio counts for half.
_METHOD_PRIOR_GROUPS = 1.0
# What must fit: allocated and a little, and the smallest gap seen between driver and allocator.
NEED = FigureRatios(peak_ratio=1.05, logits_ratio=0.0, constant_bytes=0.9 * GIB)


@dataclass(frozen=True, slots=True)
class _Counted:
    """A row with what the formulas count for it, in bytes."""

    row: MemoryRow
    figure: str
    peak_bytes: float
    logits_bytes: float
    measured_bytes: float


def fit_memory(rows: Sequence[MemoryRow]) -> FittedMemory:
    """Figures and methods out of rows, without intervals (`intervals` is empty)."""
    counted = [_counted(row) for row in rows if usable(row)]
    figures = {name: _figure([one for one in counted if one.figure == name], prior) for name, prior in _PRIOR.items()}
    methods = _methods([one for one in counted if not one.row.modelled], figures)
    return FittedMemory(figures=figures, need=NEED, methods=methods, intervals={})


def fit_document(rows: Sequence[MemoryRow], *, today: date) -> dict[str, Any]:
    """What `fitted.json` holds: the fit on all rows, intervals from forecasts of rows not seen, its source."""
    kept = [row for row in rows if usable(row)]
    fitted = fit_memory(kept)
    intervals = region_intervals(unseen_outcomes(kept))
    return {
        "source": source_of([row.group for row in kept], table="measured_memory.csv", today=today),
        "figures": {name: _figures(ratios) for name, ratios in fitted.figures.items()},
        "need": _figures(fitted.need),
        "methods": {name: round(ratio, 4) for name, ratio in fitted.methods.items()},
        "intervals": {
            region: {
                "low": round(found.low, 4),
                "high": round(found.high, 4),
                "rows": found.rows,
                "groups": found.groups,
            }
            for region, found in intervals.items()
        },
    }


def _figures(ratios: FigureRatios) -> dict[str, float]:
    return {name: round(value, 4) for name, value in asdict(ratios).items()}


def unseen_outcomes(rows: Sequence[MemoryRow]) -> list[Outcome]:
    """Every usable row under a fit that saw no row of its group."""
    kept = [row for row in rows if usable(row)]
    return cross_validate(kept, group_of=lambda row: row.group, fit=_outcome_under)


def usable(row: MemoryRow) -> bool:
    """Whether the row answers a question: it ran, it is no card's size, and somebody trusts it."""
    return row.ran and bool(row.measured_gib) and row.row["confidence"] != "low" and not row.fills_card


def with_driver_figures(rows: Sequence[MemoryRow]) -> list[MemoryRow]:
    """The rows, and once more those that give the driver's figure of the same run besides."""
    seen = [replace(row, figure="device", measured_gib=row.smi_gib) for row in rows if row.smi_gib and row.ran]
    return [*rows, *seen]


def figure_name(row: MemoryRow) -> str:
    """The figure of the fit that answers the row."""
    if row.figure == "reserved" and row.lengths_vary:
        return "reserved varying"
    return SEVERAL_CARDS if row.figure == "device" and row.case.gpus > 1 else row.figure


def figure_bytes(row: MemoryRow, fitted: FittedMemory) -> float:
    """What the row's own metric would show, in bytes."""
    counted = _counted(row)
    ratio = _method_ratio(row, fitted)
    return ratio * fitted.figures[counted.figure].of(peak_bytes=counted.peak_bytes, logits_bytes=counted.logits_bytes)


def need_bytes(row: MemoryRow, fitted: FittedMemory) -> float:
    """What a card must have for the row's run, in bytes."""
    need = fitted.need.of(peak_bytes=peak_bytes(row.case), logits_bytes=row.case.logits_bytes)
    return need * _method_ratio(row, fitted)


def _method_ratio(row: MemoryRow, fitted: FittedMemory) -> float:
    """Measured over counted for a method that the formulas take for its nearest kin."""
    return 1.0 if row.modelled else fitted.methods.get(row.method, 1.0)


def row_region(row: MemoryRow) -> str:
    """How errors are grouped; methods that the formulas do not know stand apart."""
    return region_of(row.case, figure_name(row)) + ("" if row.modelled else ", other methods")


def outcome_of(row: MemoryRow, fitted: FittedMemory) -> Outcome:
    """The row's figure against its measurement, in GiB."""
    forecast = figure_bytes(row, fitted) / GIB
    low, high = fitted.interval(row_region(row)) if fitted.intervals else (1.0, 1.0)
    cells = row.row
    return Outcome(
        group=row.group,
        label=f"{cells['model']} {cells['method']} {cells['micro_batch']} x {cells['seq_len']}",
        forecast=forecast,
        low=forecast * low,
        high=forecast * high,
        measured=row.measured_gib or 0.0,
        region=row_region(row),
    )


def _outcome_under(rows: Sequence[MemoryRow]) -> Callable[[MemoryRow], Outcome]:
    fitted = fit_memory(rows)
    return lambda row: outcome_of(row, fitted)


def _counted(row: MemoryRow) -> _Counted:
    peak = peak_bytes(row.case)
    return _Counted(row, figure_name(row), peak, row.case.logits_bytes, (row.measured_gib or 0.0) * GIB)


def _votes(counted: Sequence[_Counted]) -> list[float]:
    """Weights of rows: a group has one vote, rows of high confidence count twice within it."""
    trust = [2.0 if one.row.row["confidence"] == "high" else 1.0 for one in counted]
    totals: dict[str, float] = defaultdict(float)
    for one, weight in zip(counted, trust, strict=True):
        totals[one.row.group] += weight
    return [weight / totals[one.row.group] for one, weight in zip(counted, trust, strict=True)]


def _figure(counted: Sequence[_Counted], prior: FigureRatios) -> FigureRatios:
    """Least absolute relative errors, by repeated weighted least squares, with the prior as three more equations."""
    modelled = [one for one in counted if one.row.modelled]
    if not modelled:
        return prior
    np = need("numpy", extra="train", why="to fit the forecasts")
    measured = np.array([one.measured_bytes for one in modelled])
    inputs = np.array([[one.peak_bytes, one.logits_bytes, 1.0] for one in modelled]) / measured[:, None]
    votes = np.array(_votes(modelled))
    start = np.array([prior.peak_ratio, prior.logits_ratio, prior.constant_bytes])
    spread = np.array(_TORCH_SPREAD if modelled[0].figure in {"allocated", "reserved"} else _SPREAD)
    found = start
    for _ in range(_ROUNDS):
        errors = np.maximum(np.abs(inputs @ found - 1), 1e-3)
        weights = np.sqrt(votes / errors / _ROW_ERROR)
        # In units of the spread, so that the three unknowns are alike in size.
        left = np.vstack([inputs * spread * weights[:, None], np.eye(3)])
        right = np.concatenate([(1 - inputs @ start) * weights, np.zeros(3)])
        step = np.linalg.lstsq(left, right, rcond=None)[0]
        found = start + step * spread
        found[1:] = np.maximum(found[1:], 0.0)
    return FigureRatios(peak_ratio=float(found[0]), logits_ratio=float(found[1]), constant_bytes=float(found[2]))


def _methods(counted: Sequence[_Counted], figures: Mapping[str, FigureRatios]) -> dict[str, float]:
    """The median of measured over forecast of each method, drawn towards 1 where few groups speak for it."""
    ratios: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in counted:
        forecast = figures[one.figure].of(peak_bytes=one.peak_bytes, logits_bytes=one.logits_bytes)
        ratios[one.row.method][one.row.group].append(log(one.measured_bytes / forecast))
    found: dict[str, float] = {}
    for method, groups in sorted(ratios.items()):
        middle = median(median(logs) for logs in groups.values())
        found[method] = exp(middle * len(groups) / (len(groups) + _METHOD_PRIOR_GROUPS))
    return found
