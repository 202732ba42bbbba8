"""Fit the roofline to measured speed, and its intervals to what it says of runs that it did not see.

Residuals are logarithms of forecast over measured time, soft L1 (outliers count by their size, not its square), rows
weighted by the size of their group to the power -1/4. Every constant is drawn towards what is believed of it before
any row, as a logarithm with a standard deviation; what a class, a card and a program differ from the line of all is
drawn to nothing, so that few rows say little. The minimum is found by Gauss-Newton steps, damped while they overshoot.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from math import exp, log
from typing import Any

from scrimp._lazy import need
from scrimp.calibrate.conformal import RatioInterval, region_intervals
from scrimp.calibrate.crossval import cross_validate
from scrimp.calibrate.outcome import Outcome
from scrimp.calibrate.table import source_of
from scrimp.calibrate.time.rows import TimeRow, under
from scrimp.estimate.time.fitted import (
    BOTH_SEEN,
    CARD_UNSEEN,
    EFFECTS,
    SCALARS,
    SOFTWARE_UNSEEN,
    FittedTime,
    RooflineConstants,
    region_of,
)
from scrimp.estimate.time.roofline import class_key, device_key, micro_step_s, optimizer_step_s, tflops_per_w

# Belief before any row, and how many times off it may be (standard deviation of its logarithm).
_PRIOR: Mapping[str, tuple[float, float]] = {
    "efficiency": (0.5, 0.5),
    "watt_exponent": (0.3, 0.3),
    "attention_efficiency": (0.4, 0.3),
    "small_step_tokens": (400.0, 0.5),
    "again_share": (0.85, 0.15),
    "compiled_multiplier": (1.1, 0.3),
    "fused_multiplier": (1.1, 0.3),
    "megatron_multiplier": (1.3, 0.3),
    "eager_bytes": (80.0, 0.5),
    "fused_bytes": (40.0, 0.5),
    "megatron_bytes": (20.0, 0.5),
    "eager_adapter_bytes": (100.0, 0.7),
    "fused_adapter_bytes": (60.0, 0.7),
    "score_bytes": (24.0, 0.3),
    "trained_floor_s": (0.009, 0.8),
    "frozen_floor_s": (0.0047, 0.5),
    "four_bit_floor_s": (0.009, 0.5),
    "fused_floor_s": (0.002, 0.8),
    "unpack_nf4": (1.5, 0.5),
    "unpack_gptq": (2.5, 0.5),
    "nvlink_bytes_per_s": (170e9, 0.5),
    "pcie_bytes_per_s": (13e9, 0.5),
    "node_loss": (0.045, 0.5),
    "optimizer_ratio": (1.0, 0.2),
}
# How far a class lies from the line of all cards, a card from its class, a program from its kind of software.
_SPREAD = {"device_class": 0.2, "device": 0.15, "software": 0.15}
# Beyond this logarithm an error counts as an outlier.
_SCALE = 0.12
_STEP = 1e-5
_ROUNDS = 40
_ENOUGH = 1e-6
_DIGITS = 5


@dataclass(frozen=True, slots=True)
class _Unknown:
    """One number to be found, as a logarithm: a constant (`effect` empty) or what one level of an effect differs."""

    effect: str
    name: str
    start: float
    spread: float


def row_s(row: TimeRow, constants: RooflineConstants, *, software: bool = True) -> float:
    """Seconds of one micro-step of the row, its share of the optimizer's step in them."""
    name = row.software if software else ""
    body = micro_step_s(row.work, row.step, row.chip, stack=row.stack, software=name, constants=constants)
    if not row.trained_params:
        return body
    update_s = optimizer_step_s(row.trained_params, row.chip, constants=constants) / row.micro_batches
    return body + update_s * constants.software.get(name, 1.0)


def fit_time(rows: Sequence[TimeRow], *, start: FittedTime | None = None) -> FittedTime:
    """Constants out of rows, without intervals (`intervals` is empty). `start` saves steps and changes nothing.

    Raises:
        ValueError: there is no row.
    """
    if not rows:
        raise ValueError("a fit needs at least one row")
    problem = _Problem(rows)
    return problem.fitted(_minimum(problem, problem.place_of(start) if start else None))


def outcome_of(row: TimeRow, fitted: FittedTime, *, card: bool = True, software: bool = True) -> Outcome:
    """Tokens a second of one GPU; without `software` as of a program that was never measured."""
    seen = under(row, fitted)
    rate = row.step.tokens / row_s(seen, fitted.constants, software=software)
    known = software and row.software in fitted.constants.software
    measured_card = card and seen.chip.measured
    low, high = 1.0, 1.0
    if fitted.intervals:
        interval = fitted.interval(card=measured_card, software=known, mixture=row.mixture, spread=row.spread)
        low, high = 1 / interval.high, 1 / interval.low
    return Outcome(
        group=row.group,
        label=f"{row.row['model']} {row.row['method']} {row.row['gpu']} x {row.row['n_gpus']}",
        forecast=rate,
        low=rate * low,
        high=rate * high,
        measured=row.tokens_per_s_per_gpu,
        region=region_of(card=measured_card, software=known, spread=row.spread),
    )


def unseen_groups(rows: Sequence[TimeRow], *, start: FittedTime | None = None) -> list[Outcome]:
    """Every row under a fit that saw no row of its group (source, GPU, model and method)."""
    return _unseen(rows, lambda row: row.group, start=start)


def unseen_sources(rows: Sequence[TimeRow], *, start: FittedTime | None = None) -> list[Outcome]:
    """Every row under a fit that saw nothing of its source and does not know its software."""
    return _unseen(rows, lambda row: row.row["source"], start=start, software=False)


def unseen_classes(rows: Sequence[TimeRow], *, start: FittedTime | None = None) -> list[Outcome]:
    """Every row under a fit that saw no GPU of its class and does not know its software."""
    return _unseen(rows, lambda row: row.device.device_class, start=start, software=False, card=False)


def _unseen(
    rows: Sequence[TimeRow],
    group_of: Callable[[TimeRow], str],
    *,
    start: FittedTime | None,
    card: bool = True,
    software: bool = True,
) -> list[Outcome]:
    def fit(kept: Sequence[TimeRow]) -> Callable[[TimeRow], Outcome]:
        fitted = fit_time(kept, start=start)
        return lambda row: outcome_of(row, fitted, card=card, software=software)

    folds = len({group_of(row) for row in rows})
    return cross_validate(rows, group_of=group_of, fit=fit, folds=min(20, folds))


def fit_document(rows: Sequence[TimeRow], *, today: date) -> dict[str, Any]:
    """What `fitted.json` holds: the fit on all rows, intervals from forecasts of runs not seen, its source."""
    fitted = fit_time(rows)
    unseen = [*unseen_groups(rows, start=fitted), *unseen_sources(rows, start=fitted)]
    unseen += unseen_classes(rows, start=fitted)
    # Of time: the reciprocal of speed.
    intervals = _nested(region_intervals([_as_time(outcome) for outcome in unseen]))
    return {
        "source": source_of([row.group for row in rows], table="measured_time.csv", today=today),
        "constants": {name: _rounded(getattr(fitted.constants, name)) for name in SCALARS},
        "watt_range": [_rounded(end) for end in fitted.watt_range],
        **{
            effect: {name: _rounded(ratio) for name, ratio in sorted(getattr(fitted.constants, effect).items())}
            for effect in EFFECTS
        },
        "intervals": {
            region: {
                "low": _rounded(found.low),
                "high": _rounded(found.high),
                "rows": found.rows,
                "groups": found.groups,
            }
            for region, found in intervals.items()
        },
    }


def _nested(intervals: Mapping[str, RatioInterval]) -> dict[str, RatioInterval]:
    """Where less of a run was measured its interval is never the narrower one: chance alone would have it so."""
    found = dict(intervals)
    for better, worse in pairwise((BOTH_SEEN, SOFTWARE_UNSEEN, CARD_UNSEEN)):
        for region in intervals:
            wider = found.get(worse + region.removeprefix(better)) if region.startswith(better) else None
            if wider:
                low, high = min(found[region].low, wider.low), max(found[region].high, wider.high)
                found[wider.region] = replace(wider, low=low, high=high)
    return found


def _as_time(outcome: Outcome) -> Outcome:
    return replace(
        outcome,
        forecast=1 / outcome.forecast,
        low=1 / outcome.high,
        high=1 / outcome.low,
        measured=1 / outcome.measured,
    )


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _levels(row: TimeRow) -> dict[str, str]:
    """The level of every effect that the row belongs to."""
    return {
        "device_class": class_key(row.device.device_class, fp8=row.fp8),
        "device": device_key(row.device.name, fp8=row.fp8),
        "software": row.software,
    }


class _Problem:
    """Rows, unknowns, and the residuals that one follows from the other."""

    def __init__(self, rows: Sequence[TimeRow]) -> None:
        """Weigh the rows and list the unknowns."""
        self.rows = rows
        sizes: dict[str, int] = {}
        for row in rows:
            sizes[row.group] = sizes.get(row.group, 0) + 1
        self.weights = [sizes[row.group] ** -0.25 / _SCALE for row in rows]
        self.measured = [log(row.step.tokens / row.tokens_per_s_per_gpu) for row in rows]
        self.levels = [_levels(row) for row in rows]
        per_w = [tflops_per_w(row.device, row.peak_flops) for row in rows]
        self.watt_range = (min(per_w), max(per_w))
        scalars = [_Unknown("", name, log(value), spread) for name, (value, spread) in _PRIOR.items()]
        self.unknowns = scalars + [
            _Unknown(effect, level, 0.0, _SPREAD[effect])
            for effect in EFFECTS
            for level in sorted({levels[effect] for levels in self.levels} - {""})
        ]
        self.touched = [
            [n for n, levels in enumerate(self.levels) if not one.effect or levels[one.effect] == one.name]
            for one in self.unknowns
        ]

    def place_of(self, fitted: FittedTime) -> list[float]:
        """Where another fit stands; an unknown that it does not have starts from the belief."""
        constants = fitted.constants
        return [
            log(getattr(constants, one.effect).get(one.name, 1.0) if one.effect else getattr(constants, one.name))
            for one in self.unknowns
        ]

    def fitted(self, place: Sequence[float]) -> FittedTime:
        """The fit at a place."""
        values: dict[str, Any] = {effect: {} for effect in EFFECTS}
        for one, x in zip(self.unknowns, place, strict=True):
            (values[one.effect] if one.effect else values)[one.name] = exp(x)
        return FittedTime(
            constants=RooflineConstants(**values),
            watt_range=self.watt_range,
            intervals={},
            rows=len(self.rows),
            groups=len({row.group for row in self.rows}),
        )

    def residuals(self, place: Sequence[float], only: Sequence[int] | None = None) -> list[float]:
        """Weighted logarithms of forecast over measured, of all rows or of those that are named."""
        fitted = self.fitted(place)
        picked = range(len(self.rows)) if only is None else only
        return [
            self.weights[n] * (log(row_s(under(self.rows[n], fitted), fitted.constants)) - self.measured[n])
            for n in picked
        ]


def _minimum(problem: _Problem, start: Sequence[float] | None) -> list[float]:
    """The place of least soft-L1 residuals and squared distances from what was believed."""
    np = need("numpy", extra="train", why="to fit the forecasts")
    prior = np.array([one.start for one in problem.unknowns])
    precision = np.array([1 / one.spread**2 for one in problem.unknowns])
    place = prior.copy() if start is None else np.array(start)

    def cost_at(at: Any) -> tuple[float, Any]:
        found = np.array(problem.residuals(at.tolist()))
        return float(2 * (np.sqrt(1 + found**2) - 1).sum() + (precision * (at - prior) ** 2).sum()), found

    cost, residuals = cost_at(place)
    damping = 1e-3
    for _ in range(_ROUNDS):
        slopes = _slopes(problem, place, residuals, np)
        robust = 1 / np.sqrt(1 + residuals**2)
        gradient = slopes.T @ (robust * residuals) + precision * (place - prior)
        curvature = slopes.T @ (robust[:, None] * slopes) + np.diag(precision)
        for _ in range(10):
            step = np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), -gradient)
            new_cost, new_residuals = cost_at(place + step)
            if new_cost <= cost:
                break
            damping *= 4
        else:
            break
        gain, place, cost, residuals = cost - new_cost, place + step, new_cost, new_residuals
        damping = max(damping / 4, 1e-9)
        if gain < _ENOUGH * (1 + cost):
            break
    return place.tolist()


def _slopes(problem: _Problem, place: Any, residuals: Any, np: Any) -> Any:
    """Derivatives of the residuals, each unknown moved a little; rows that it does not touch are not asked."""
    found = np.zeros((len(problem.rows), len(problem.unknowns)))
    for column, one in enumerate(problem.unknowns):
        touched = problem.touched[column]
        if one.effect == "software":
            found[touched, column] = [problem.weights[n] for n in touched]
            continue
        moved = place.copy()
        moved[column] += _STEP
        found[touched, column] = (np.array(problem.residuals(moved.tolist(), touched)) - residuals[touched]) / _STEP
    return found
