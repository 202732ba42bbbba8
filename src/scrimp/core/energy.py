"""What meters saw a run use, and of what: a counter of the cards says nothing about the rest of the machine."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

EnergyScope = Literal["gpus", "cpu", "gpus_and_cpu", "process", "machine"]

_SCOPE_WORDS: Mapping[EnergyScope, str] = {
    "gpus": "the GPUs alone",
    "cpu": "CPU packages and their memory alone",
    "gpus_and_cpu": "GPUs, CPU packages and their memory",
    "process": "GPUs, CPU and memory of this process, partly estimated",
    "machine": "the whole machine",
}


_PARTS = ("gpu_kwh", "cpu_kwh", "process_kwh", "machine_kwh")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyReading:
    """Measured electricity of one attempt, or of several.

    `gpu_kwh` and `cpu_kwh` are counters of the hardware, None where there is none to read. `process_kwh` is an estimate
    of everything that the process used (codecarbon's), `machine_kwh` what a meter at the wall says: both hold what the
    counters hold and are never added to them. `source` names the meters.
    """

    gpu_kwh: float | None = None
    cpu_kwh: float | None = None
    process_kwh: float | None = None
    machine_kwh: float | None = None
    source: str = ""

    @property
    def scope(self) -> EnergyScope:
        """What the reading covers.

        Raises:
            ValueError: it covers nothing.
        """
        if self.machine_kwh is not None:
            return "machine"
        if self.process_kwh is not None:
            return "process"
        if self.gpu_kwh is not None:
            return "gpus" if self.cpu_kwh is None else "gpus_and_cpu"
        if self.cpu_kwh is None:
            raise ValueError("a reading of no meter")
        return "cpu"

    @property
    def covers(self) -> str:
        """What the reading covers, in words."""
        return _SCOPE_WORDS[self.scope]

    @property
    def energy_kwh(self) -> float:
        """Everything that was measured, together."""
        if self.machine_kwh is not None:
            return self.machine_kwh
        if self.process_kwh is not None:
            return self.process_kwh
        return (self.gpu_kwh or 0.0) + (self.cpu_kwh or 0.0)

    def plus(self, other: "EnergyReading") -> "EnergyReading":
        """Both attempts together.

        Raises:
            ValueError: they cover different things.
        """
        if self.scope != other.scope:
            raise ValueError(f"energy of {self.covers} cannot be added to energy of {other.covers}")
        return EnergyReading(
            gpu_kwh=_sum(self.gpu_kwh, other.gpu_kwh),
            cpu_kwh=_sum(self.cpu_kwh, other.cpu_kwh),
            process_kwh=_sum(self.process_kwh, other.process_kwh),
            machine_kwh=_sum(self.machine_kwh, other.machine_kwh),
            source=self.source if self.source == other.source else f"{self.source}; {other.source}",
        )

    def values(self) -> dict[str, str | float]:
        """As values of an event."""
        known = {name: value for name in _PARTS if (value := getattr(self, name)) is not None}
        return {
            "energy_kwh": self.energy_kwh,
            **known,
            "energy_source": self.source,
            "energy_covers": self.covers,
        }


def reading_from(values: Mapping[str, object]) -> EnergyReading | None:
    """The reading in an event's values; None where no meter was read."""
    found = {name: _number(values.get(name)) for name in _PARTS}
    if all(value is None for value in found.values()):
        # A figure that says nothing of its scope is that of the machine.
        found["machine_kwh"] = _number(values.get("energy_kwh"))
    if all(value is None for value in found.values()):
        return None
    return EnergyReading(**found, source=str(values.get("energy_source", "")))


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
