"""CO2e of many plans beside each other: in one way of counting, or said to be apart.

Sources count the carbon of one grid differently, so the smaller of two figures is the cleaner place only when both
were counted alike. Plans are compared in the way that most of them have a figure in; what has none, and what stands at
a place nobody knows, is shown apart and never counts as the least.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from scrimp.core.forecast import CarbonForecast
from scrimp.core.market import GridMethod
from scrimp.core.plan import Candidate
from scrimp.core.units import format_co2, format_count

# Behind a figure that must not be compared with those of the other rows.
APART = "≠"


@dataclass(frozen=True, slots=True, kw_only=True)
class CarbonComparison:
    """The way of counting that plans are compared in (None: not one has a figure), and who has a place in it.

    `apart` counts plans with a figure of another way or of an unknown place alone. `least` is the rank of the plan that
    emits least among those compared, `years` are those of their grid figures, the first and the last.
    """

    method: GridMethod | None
    compared: int
    apart: int
    least: int | None
    years: tuple[int, int] | None


def compare_carbon(candidates: Sequence[Candidate]) -> CarbonComparison:
    """See `CarbonComparison`; candidates in order of rank. Of ways that serve as many, the nearer to the place."""
    counts = Counter(found.method for item in candidates for found in item.energy.carbon if _is_placed(found))
    method = max(GridMethod, key=lambda way: counts[way]) if counts else None
    found = [(rank, figure) for rank, item in enumerate(candidates, 1) if (figure := comparable_carbon(item, method))]
    years = sorted(figure.grid.year for _, figure in found if figure.grid.year is not None)
    return CarbonComparison(
        method=method,
        compared=len(found),
        apart=sum(bool(item.energy.carbon) for item in candidates) - len(found),
        least=_least(found),
        years=(years[0], years[-1]) if years else None,
    )


def comparable_carbon(candidate: Candidate, method: GridMethod | None) -> CarbonForecast | None:
    """A plan's CO2e in that way of counting; None where it has no such figure or its place is not known."""
    found = None if method is None else candidate.energy.counted_by(method)
    return found if found is not None and _is_placed(found) else None


def carbon_cell(candidate: Candidate, method: GridMethod | None) -> str:
    """`1.5 kg`; `1.5 kg≠` where the figure must not be compared with the others; `unknown`."""
    figure = comparable_carbon(candidate, method)
    if figure is not None:
        return format_co2(figure.mass_gco2e.value)
    nearest = candidate.energy.carbon_gco2e
    return "unknown" if nearest is None else f"{format_co2(nearest.value)}{APART}"


def comparison_words(comparison: CarbonComparison, candidates: Sequence[Candidate]) -> str:
    """How the CO2e of the table is counted, which plan emits least, and how many cannot be compared."""
    if comparison.method is None:
        return "no plan's grid is known"
    years = "" if comparison.years is None else f", {' to '.join(map(str, dict.fromkeys(comparison.years)))}"
    parts = [f"compared by {comparison.method.words}{years}"]
    if comparison.least is not None and comparison.compared > 1:
        figure = comparable_carbon(candidates[comparison.least - 1], comparison.method)
        if figure is not None:
            parts.append(f"least: plan {comparison.least}, {format_co2(figure.mass_gco2e.value)} ({figure.grid.place})")
    if comparison.apart:
        plans = f"{format_count(comparison.apart)} plan{'' if comparison.apart == 1 else 's'}"
        parts.append(f"{APART} {plans} of an unknown place or counted in another way: not to be compared")
    return "; ".join(parts)


def _least(found: Sequence[tuple[int, CarbonForecast]]) -> int | None:
    best: tuple[int, CarbonForecast] | None = None
    for rank, figure in found:
        if best is None or figure.is_lighter_than(best[1]):
            best = (rank, figure)
    return None if best is None else best[0]


def _is_placed(carbon: CarbonForecast) -> bool:
    return carbon.grid.reach != "world"
