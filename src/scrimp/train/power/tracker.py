"""The whole process as codecarbon estimates it: cards by NVML, processor by RAPL or its rated power x load, memory by a
rule of watts per module. For those who want that figure, as theirs; offline, and nothing is written or sent.
"""

import logging
from collections.abc import Callable
from typing import Any

from scrimp import _lazy
from scrimp.core.energy import EnergyReading

_SAMPLE_S = 15.0


class CodecarbonMeter:
    """A codecarbon tracker. It answers once it was closed: its figures in between are not public."""

    def __init__(self, tracker: Any) -> None:
        """Start it."""
        self._tracker = tracker
        self._reading: EnergyReading | None = None
        tracker.start()

    @property
    def poll_s(self) -> float | None:
        """It has threads of its own."""
        return None

    def poll(self) -> None:
        """Nothing to do."""

    def read(self) -> EnergyReading | None:
        """The estimate, after `close`."""
        return self._reading

    def close(self) -> None:
        """Stop it and keep what it found; a tracker that broke down tells nothing."""
        tracker, self._tracker = self._tracker, None
        if tracker is None:
            return
        tracker.stop()
        data = getattr(tracker, "final_emissions_data", None)
        if data is not None:
            self._reading = EnergyReading(
                process_kwh=float(data.energy_consumed),
                gpu_kwh=float(data.gpu_energy) if data.gpu_energy else None,
                source=f"codecarbon {data.codecarbon_version}",
            )


def open_codecarbon(cards: tuple[str, ...], *, make: Callable[..., Any] | None = None) -> CodecarbonMeter:
    """A tracker on this process and these cards. `make` stands in for codecarbon's class in tests.

    Raises:
        MissingPackageError: codecarbon is not installed.
    """
    tracker = (make or _real_tracker())(
        # Energy does not depend on the country; without one the tracker would look for its place on the network.
        country_iso_code="USA",
        output_methods=[],
        emissions_endpoint=None,
        electricitymaps_api_token=None,
        # Several runs on one machine; and its lock file would take over our signals.
        allow_multiple_runs=True,
        tracking_mode="process",
        measure_power_secs=_SAMPLE_S,
        gpu_ids=list(cards) or None,
        log_level="critical",
        pue=1.0,
    )
    return CodecarbonMeter(tracker)


def _real_tracker() -> Callable[..., Any]:
    package = _lazy.need("codecarbon", extra="energy", why="for SCRIMP_ENERGY=codecarbon")
    # It logs a line before it reads the log level that it is given.
    logging.getLogger("codecarbon").setLevel(logging.CRITICAL)
    return package.OfflineEmissionsTracker
