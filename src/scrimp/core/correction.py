"""What a user's own runs say about the forecasts of their hardware."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

# peak_bytes: memory. train_s: seconds in steps, and so the speed. around_s: everything of a run but its steps, on the
# machine that asks. power_w: the machine's mean draw.
Corrected = Literal["peak_bytes", "train_s", "around_s", "power_w"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """Measured over what the formulas said, for one device; for one method or model of it where they are named.

    `value` is what the formulas' forecast is multiplied with. `low` and `high` are the 80% interval of measured over
    forecast; None where runs are too few or too alike to tell, and then the forecast's own interval moves along.
    `runs` of how many different `models` it stands on.
    """

    quantity: Corrected
    device: str
    method: str = ""
    model: str = ""
    value: float
    low: float | None
    high: float | None
    runs: int
    models: int

    def __post_init__(self) -> None:
        """Refuse what would turn a forecast around or leave its value outside.

        Raises:
            ValueError: a ratio that is not positive, or an interval that does not hold its value.
        """
        low = self.value if self.low is None else self.low
        high = self.value if self.high is None else self.high
        if not 0 < low <= self.value <= high:
            raise ValueError(f"{low}..{self.value}..{high} is no correction of {self.quantity} on {self.device}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrections:
    """All that was learnt, as calibration.json holds it.

    `schema` is the version of the file's layout; `scrimp_version` is whose formulas are corrected.
    """

    schema: Literal[1] = 1
    made_at: datetime
    scrimp_version: str
    corrections: tuple[Correction, ...]

    def find(self, quantity: Corrected, *, device: str, method: str = "", model: str = "") -> Correction | None:
        """The most particular correction there is: of the model, else of the method, else of the device."""
        known = {(item.quantity, item.device, item.method, item.model): item for item in self.corrections}
        keys = ((device, method, model), (device, method, ""), (device, "", ""))
        return next((known[quantity, *key] for key in keys if (quantity, *key) in known), None)

    def __iter__(self) -> Iterator[Correction]:
        """The corrections, in the order of the file."""
        return iter(self.corrections)
