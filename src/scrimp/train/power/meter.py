"""What every energy meter answers."""

from typing import Protocol

from scrimp.core.energy import EnergyReading

JOULES_PER_KWH = 3.6e6


class EnergyMeter(Protocol):
    """A meter that runs since it was made. `poll_s`: how often `poll` wants to be called, None never."""

    @property
    def poll_s(self) -> float | None:
        """Seconds between two polls."""
        ...

    def poll(self) -> None:
        """Look at the hardware, so that nothing is missed between two readings. Never raises."""
        ...

    def read(self) -> EnergyReading | None:
        """Energy since the start; None while it is not known."""
        ...

    def close(self) -> None:
        """Stop; `read` still answers."""
        ...
