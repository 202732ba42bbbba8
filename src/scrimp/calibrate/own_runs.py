"""What a user's own finished runs teach about their hardware: a shrunken correction, and whether it would have helped.

Errors are logarithms of measured over what the formulas said. They are averaged in a tree of device, method and model,
from the runs upwards, by medians, so that a run on a busy machine counts for little. Downwards each node takes
n / (n + k) of the way from what its parent says to its own median, where n counts its runs (of a model), models (of a
method) or methods (of a device); the device starts at no correction at all.

k is 1 for runs and 4 above. With every published (source, GPU) in the place of a user whose source no fit has seen,
these k are within a hundredth of the best of 15 pairs: a run left out alone is forecast with 8.8% error in place of
10.5% in memory and 9.7% in place of 11.5% in time, one of a model left out whole with 9.5% in place of 10.2% and 11.9%
in place of 12.1% (benchmarks/prior_strength.py, docs/explanation/calibration.md).

The interval is Student's t of the next run, its variance the runs' own (from their median deviation) pooled with that
of the forecast's interval, which counts like four runs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, isfinite, log, sqrt
from statistics import NormalDist, median

from scrimp.core.correction import Corrected, Correction

# Fewer runs correct nothing: the median of three bears one that went astray.
FEWEST_RUNS = 3
# The forecast's own interval weighs as much as that many runs.
_PRIOR_RUNS = 4
# Half a percent of error.
_WORTH_IT = 0.005
_Z90 = NormalDist().inv_cdf(0.9)
_MAD_TO_SIGMA = 1 / NormalDist().inv_cdf(0.75)
_DEPTH = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Strength:
    """k of n / (n + k): `runs` at the bottom of the tree, `above` for what counts models and methods."""

    runs: float = 1.0
    above: float = 4.0

    def at(self, depth: int) -> float:
        """That of nodes of a depth."""
        return self.runs if depth == _DEPTH else self.above


STRENGTH = Strength()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRun:
    """One quantity of one finished run: what the formulas alone said, with their interval, and what was measured."""

    run_id: str
    quantity: Corrected
    device: str
    method: str
    model: str
    forecast: float
    low: float
    high: float
    measured: float

    @property
    def path(self) -> tuple[str, str, str]:
        """Where it stands in the tree."""
        return self.device, self.method, self.model

    @property
    def log_ratio(self) -> float:
        """Logarithm of measured over forecast."""
        return log(self.measured / self.forecast)

    @property
    def is_usable(self) -> bool:
        """Whether a ratio can be formed: finite and positive figures, an interval that has a width."""
        figures = (self.forecast, self.low, self.high, self.measured)
        return all(isfinite(figure) and figure > 0 for figure in figures) and self.low <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One quantity on one device, before and after: every run forecast without itself.

    Errors are medians of |measured / forecast - 1|; `held_*` how often the interval held. `value` is what the model
    with the most runs would be corrected by. With too few runs to tell, `value` and `after` are None.
    """

    quantity: Corrected
    device: str
    runs: int
    value: float | None
    before: float
    after: float | None
    held_before: float
    held_after: float | None

    @property
    def helps(self) -> bool:
        """Whether the correction made the error smaller by more than nothing worth a changed plan, and so is used."""
        return self.after is not None and self.before - self.after > _WORTH_IT


def learn(runs: Iterable[OwnRun]) -> tuple[tuple[Correction, ...], tuple[Judged, ...]]:
    """The corrections that are worth using, and the judgement on every quantity of every device."""
    found: list[Correction] = []
    judgements: list[Judged] = []
    for some in _by_quantity_and_device(runs):
        judged = judge(some)
        judgements.append(judged)
        if judged.helps:
            found += corrections(some)
    return tuple(found), tuple(judgements)


def corrections(runs: Sequence[OwnRun], *, fewest: int = FEWEST_RUNS) -> tuple[Correction, ...]:
    """Corrections of one quantity on one device: of it, of its methods, of their models, where runs are enough."""
    paths = sorted({run.path[:depth] for run in runs for depth in range(1, _DEPTH + 1)})
    found = [correction_at(path, runs, fewest=fewest) for path in paths]
    # What depends on the device alone has no method or model: of its three nodes of one name the deepest counts.
    named = {(item.device, item.method, item.model): item for item in found if item is not None}
    return tuple(named.values())


def correction_at(
    path: tuple[str, ...], runs: Sequence[OwnRun], *, fewest: int = FEWEST_RUNS, strength: Strength = STRENGTH
) -> Correction | None:
    """The correction of one node of the tree, None with too few runs below it."""
    below = [run for run in runs if run.path[: len(path)] == path]
    if len(below) < fewest:
        return None
    centre = 0.0
    votes: list[float] = []
    for depth in range(1, len(path) + 1):
        votes = _votes([run for run in runs if run.path[:depth] == path[:depth]], depth)
        centre += len(votes) / (len(votes) + strength.at(depth)) * (median(votes) - centre)
    spread = _spread(votes, below, strength=strength.at(len(path)))
    device, method, model = (*path, "", "")[:_DEPTH]
    return Correction(
        quantity=below[0].quantity,
        device=device,
        method=method,
        model=model,
        value=exp(centre),
        low=None if spread is None else exp(centre - spread),
        high=None if spread is None else exp(centre + spread),
        runs=len(below),
        models=len({run.model for run in below}),
    )


def judge(runs: Sequence[OwnRun]) -> Judged:
    """Before and after, each run forecast by what the others teach (with one run fewer than is asked for in use)."""
    left_out = [(run, best_correction([other for other in runs if other is not run], run.path)) for run in runs]
    can_tell = len(runs) >= FEWEST_RUNS
    (usual, _), *_ = Counter(run.path for run in runs).most_common(1)
    whole = best_correction(runs, usual, fewest=FEWEST_RUNS)
    return Judged(
        quantity=runs[0].quantity,
        device=runs[0].device,
        runs=len(runs),
        value=None if whole is None else whole.value,
        before=median(abs(run.measured / run.forecast - 1) for run in runs),
        after=median(_error(run, found) for run, found in left_out) if can_tell else None,
        held_before=_share(run.low <= run.measured <= run.high for run in runs),
        held_after=_share(holds(run, found) for run, found in left_out) if can_tell else None,
    )


def best_correction(
    runs: Sequence[OwnRun], path: tuple[str, ...], *, fewest: int = FEWEST_RUNS - 1, strength: Strength = STRENGTH
) -> Correction | None:
    """The most particular correction on the way to a node: what a run there would be corrected by."""
    for depth in range(len(path), 0, -1):
        found = correction_at(path[:depth], runs, fewest=fewest, strength=strength)
        if found is not None:
            return found
    return None


def _votes(runs: Sequence[OwnRun], depth: int) -> list[float]:
    """One figure for each child of a node: the median of what is below it; at the bottom every run."""
    if depth == _DEPTH:
        return [run.log_ratio for run in runs]
    children: dict[str, list[OwnRun]] = defaultdict(list)
    for run in runs:
        children[run.path[depth]].append(run)
    return [median(_votes(below, depth + 1)) for below in children.values()]


def _spread(votes: Sequence[float], runs: Sequence[OwnRun], *, strength: float) -> float | None:
    """Half the width of the interval in logarithms; None with fewer votes than say anything about their scatter."""
    if len(votes) < FEWEST_RUNS:
        return None
    centre = median(votes)
    own = _MAD_TO_SIGMA * median(abs(vote - centre) for vote in votes)
    prior = median(log(run.high / run.low) for run in runs) / (2 * _Z90)
    degrees = _PRIOR_RUNS + len(votes) - 1
    variance = (_PRIOR_RUNS * prior**2 + (len(votes) - 1) * own**2) / degrees
    return student_t90(degrees) * sqrt(variance * (1 + 1 / (len(votes) + strength)))


def student_t90(degrees: int) -> float:
    """The 90% point of Student's t: Fisher and Cornish's expansion, within 1% from 4 degrees of freedom on.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5.
    """
    z = _Z90
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return sum(term / degrees**power for power, term in enumerate(terms))


def _error(run: OwnRun, found: Correction | None) -> float:
    """|measured / corrected forecast - 1|."""
    return abs(run.measured / (run.forecast * (1.0 if found is None else found.value)) - 1)


def holds(run: OwnRun, found: Correction | None) -> bool:
    """Whether the corrected interval held the run."""
    factor = 1.0 if found is None else found.value
    low = run.low * factor if found is None or found.low is None else run.forecast * found.low
    high = run.high * factor if found is None or found.high is None else run.forecast * found.high
    return low <= run.measured <= high


def _share(flags: Iterable[bool]) -> float:
    found = list(flags)
    return sum(found) / len(found)


def _by_quantity_and_device(runs: Iterable[OwnRun]) -> list[list[OwnRun]]:
    """Usable runs that correct one thing together, in the order of their names."""
    groups: dict[tuple[str, str], list[OwnRun]] = defaultdict(list)
    for run in runs:
        if run.is_usable:
            groups[run.device, run.quantity].append(run)
    return [groups[key] for key in sorted(groups)]
