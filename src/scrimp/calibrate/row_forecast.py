"""The forecast of one row of a table of runs: what `scrimp forecast` writes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RowForecast:
    """`key` is the row's own; `predicted`, `low` and `high` (80% interval) are in the unit of the table's answer.

    Memory: GiB per GPU of the figure that the row's metric names; `safe_need_gib` is what a card must have, and `fits`
    whether the card that the row names has it (None: it names none). Time: tokens a second per GPU.
    """

    key: str
    predicted: float
    low: float
    high: float
    safe_need_gib: float | None = None
    fits: bool | None = None
    basis: str = ""
