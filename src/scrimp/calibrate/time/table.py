"""Forecasts of speed for rows of a table of runs, whoever's software they describe."""

from collections.abc import Mapping

from scrimp.calibrate.row_forecast import RowForecast
from scrimp.calibrate.table import row_key
from scrimp.calibrate.time.fit import row_s
from scrimp.calibrate.time.rows import time_row
from scrimp.estimate.time.fitted import FittedTime, fitted_time

# What a run answers: never read, so that a forecast is one.
ANSWERS = (
    "tokens_per_s",
    "tokens_per_s_per_gpu",
    "samples_per_s",
    "s_per_step",
    "mfu",
    "hfu",
)


def forecast_time_row(row: Mapping[str, str], *, fitted: FittedTime | None = None) -> RowForecast:
    """Tokens a second of one GPU for a row with the columns of calibration/measured_time.csv.

    Answers are not read, blanks are allowed: sizes come from known models or the number of parameters, the peak from
    the catalogue, a length from what is usual; `basis` says so.

    Raises:
        SpecError: the row does not say enough, or says something impossible.
    """
    fitted = fitted or fitted_time()
    asked = time_row({name: value for name, value in row.items() if name not in ANSWERS}, fitted=fitted)
    rate = asked.step.tokens / row_s(asked, fitted.constants)
    interval = fitted.interval(
        card=asked.chip.measured,
        software=asked.software in fitted.constants.software,
        mixture=asked.mixture,
        spread=asked.spread,
    )
    return RowForecast(
        key=row_key(row),
        predicted=rate,
        low=rate / interval.high,
        high=rate / interval.low,
        basis="; ".join((interval.basis, *asked.notes)),
    )
