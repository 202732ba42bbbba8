"""Forecasts of memory for rows of a table of runs, whoever's software they describe."""

from collections import defaultdict

from scrimp.calibrate.memory.fit import figure_bytes, figure_name, need_bytes, row_region
from scrimp.calibrate.memory.rows import MemoryRow, memory_row
from scrimp.calibrate.row_forecast import RowForecast
from scrimp.calibrate.table import Row, row_key
from scrimp.core.units import GIB
from scrimp.estimate.memory.fitted import FittedMemory, fitted_memory

# A run made as long as the card just held fills what the driver lets it have of the card's nominal size.
_FILLED = 0.98


def forecast_memory_row(row: Row, *, fitted: FittedMemory | None = None) -> RowForecast:
    """One row with the columns of calibration/measured_memory.csv; answers are not read, blanks are allowed.

    Raises:
        SpecError: the row does not say enough, or says something impossible.
    """
    fitted = fitted or fitted_memory()
    cells = defaultdict(str, {name: (value or "").strip() for name, value in row.items() if name != "smi_gib"})
    if cells["metric"] != "OOM on":
        cells["measured_gib"] = ""
    case = memory_row(cells)
    need_gib = need_bytes(case, fitted) / GIB
    predicted, basis = _predicted(case, need_gib, fitted)
    low, high = fitted.interval(row_region(case))
    return RowForecast(
        key=row_key(row),
        predicted=predicted,
        low=predicted * min(1.0, low),
        high=predicted * max(1.0, high),
        safe_need_gib=need_gib,
        fits=None if case.capacity_gib is None else need_gib <= case.capacity_gib,
        basis="; ".join((basis, *case.notes)),
    )


def _predicted(case: MemoryRow, need_gib: float, fitted: FittedMemory) -> tuple[float, str]:
    """The figure that the metric names in GiB, and its name."""
    if not case.ran:
        return need_gib, "tensor count, safe need"
    if case.fills_card and case.nominal_gb:
        return case.nominal_gb * _FILLED, "the card's size, which the run was made to fill"
    named = f"tensor count, {figure_name(case)}"
    kin = "" if case.modelled else f", {case.method} as its nearest kin"
    return figure_bytes(case, fitted) / GIB, named + kin
