"""Memory forecasts held against measured peaks, and the verdict "fits" against runs that ran or did not."""

from collections.abc import Callable, Iterable

from scrimp.calibrate.memory_rows import MemoryRow
from scrimp.calibrate.outcome import Outcome, rounded, share
from scrimp.core.estimate import Estimate
from scrimp.core.forecast import MemoryForecast
from scrimp.core.units import GIB
from scrimp.estimate.memory.forecast import card_forecast


def peak_outcome(row: MemoryRow) -> Outcome:
    """Allocated peak; reserved figures of fixed lengths and figures of unstated kind are held against it too."""
    return _memory_outcome(row, row.measured_gib, lambda forecast: forecast.peak_bytes)


def device_outcome(row: MemoryRow) -> Outcome:
    """What nvidia-smi showed, less an idle card."""
    return _memory_outcome(row, row.smi_gib or 0.0, lambda forecast: forecast.device_bytes)


def _memory_outcome(
    row: MemoryRow, measured_gib: float, figure: Callable[[MemoryForecast], Estimate[float]]
) -> Outcome:
    estimate = figure(card_forecast(row.case))
    return Outcome(
        group=row.group,
        label=f"{row.row['model']} {row.row['method']} {row.row['micro_batch']} x {row.row['seq_len']}",
        forecast=estimate.value / GIB,
        low=estimate.low / GIB,
        high=estimate.high / GIB,
        measured=measured_gib,
    )


def verdict_figures(rows: Iterable[MemoryRow]) -> dict[str, float]:
    """ "Fits" by the need's value, and by its high end, for runs that failed and runs that ran on a known card."""
    failed: list[tuple[bool, bool]] = []
    ran: list[tuple[bool, bool]] = []
    short: list[bool] = []
    for row in rows:
        need = card_forecast(row.case).need_bytes
        if row.ran:
            short.append(need.value < 0.9 * row.measured_gib * GIB)
        if row.capacity_gib is None:
            continue
        fits = (need.value <= row.capacity_gib * GIB, need.high <= row.capacity_gib * GIB)
        (ran if row.ran else failed).append(fits)
    return rounded(
        {
            "oom_rows": len(failed),
            "oom_called_fits": share(fits for fits, _ in failed),
            "oom_called_comfortable": share(comfortable for _, comfortable in failed),
            "ran_called_fits": share(fits for fits, _ in ran),
            "need_under_by_10": share(short),
        }
    )
