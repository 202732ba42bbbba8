"""The meters of one attempt: opened when its device is known, read at every step, closed at its end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast, get_args

from scrimp import _lazy
from scrimp.core.energy import EnergyReading
from scrimp.core.errors import MissingPackageError, SpecError
from scrimp.train.power.meter import EnergyMeter
from scrimp.train.power.nvml import open_nvml
from scrimp.train.power.rapl import open_rapl
from scrimp.train.power.sampling import Poller
from scrimp.train.power.smi import open_smi
from scrimp.train.power.tracker import open_codecarbon

ENERGY_VARIABLE = "SCRIMP_ENERGY"
EnergyMode = Literal["auto", "codecarbon", "off"]


def load_nvml() -> Any | None:
    """NVIDIA's library for Python, if it is installed."""
    try:
        return _lazy.need("pynvml", extra="energy", why="to read the cards' energy counters")
    except MissingPackageError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerSources:
    """Where meters are looked for; tests hand in recorded ones. `mode` off: nowhere."""

    mode: EnergyMode = "auto"
    nvml: Callable[[], Any | None] = load_nvml
    smi: tuple[str, ...] = ("nvidia-smi",)
    powercap: Path = Path("/sys/class/powercap")
    codecarbon: Callable[..., Any] | None = None

    @classmethod
    def of(cls, env: Mapping[str, str]) -> "PowerSources":
        """This machine's, in the mode that SCRIMP_ENERGY names.

        Raises:
            SpecError: it names none.
        """
        mode = env.get(ENERGY_VARIABLE, "") or "auto"
        if mode not in get_args(EnergyMode):
            raise SpecError(
                what=f"{ENERGY_VARIABLE}={mode} is no way to measure energy",
                expected=f"one of {', '.join(get_args(EnergyMode))}",
                next_step=f"unset {ENERGY_VARIABLE}",
            )
        return cls(mode=cast("EnergyMode", mode))


OFF = PowerSources(mode="off")


@dataclass(slots=True)
class EnergyWatch:
    """Everything that is measured of one attempt. `missing` says in words what could not be."""

    sources: PowerSources
    clock_s: Callable[[], float]
    missing: list[str] = field(default_factory=list[str])
    _meters: list[EnergyMeter] = field(default_factory=list[EnergyMeter])
    _pollers: list[Poller] = field(default_factory=list[Poller])
    _last: EnergyReading | None = None
    _stopped: bool = False

    def start(self, *, on_card: bool, cards: tuple[str, ...] = ()) -> None:
        """Open the meters of what trains. `cards` are UUIDs as the driver knows them.

        Raises:
            MissingPackageError: codecarbon was asked for and is not installed.
        """
        if self.sources.mode == "off" or self._meters:
            return
        if self.sources.mode == "codecarbon":
            self._meters.append(open_codecarbon(cards, make=self.sources.codecarbon))
        else:
            self._open_counters(on_card, cards)
        for meter in self._meters:
            if meter.poll_s is not None:
                self._pollers.append(Poller(meter.poll, period_s=meter.poll_s))

    def values(self) -> dict[str, str | float]:
        """What was measured of this attempt up to now, as values of an event; none where no meter answers."""
        reading = self.reading()
        return {} if reading is None else reading.values()

    def reading(self) -> EnergyReading | None:
        """All meters together. One that has lost count tells nothing and the others stand for themselves."""
        if self._stopped:
            return self._last
        found = [reading for meter in self._meters if (reading := meter.read()) is not None]
        if not found:
            return None
        return EnergyReading(
            gpu_kwh=_first(reading.gpu_kwh for reading in found),
            cpu_kwh=_first(reading.cpu_kwh for reading in found),
            process_kwh=_first(reading.process_kwh for reading in found),
            source="; ".join(reading.source for reading in found),
        )

    def stop(self) -> None:
        """Close every meter; the last reading stays. Doing it twice changes nothing."""
        if self._stopped:
            return
        pollers, self._pollers = self._pollers, []
        for poller in pollers:
            poller.stop()
        for meter in self._meters:
            meter.close()
        self._last = self.reading()
        self._stopped = True

    def __enter__(self) -> "EnergyWatch":
        """The watch itself; nothing is measured before `start`."""
        return self

    def __exit__(self, *_ending: object) -> None:
        """Stop, however the attempt ended."""
        self.stop()

    def _open_counters(self, on_card: bool, cards: tuple[str, ...]) -> None:
        if on_card:
            self._open_cards(cards)
        processor, why = open_rapl(self.sources.powercap)
        if processor is not None:
            self._meters.append(processor)
        else:
            self.missing.append(why)

    def _open_cards(self, cards: tuple[str, ...]) -> None:
        """By the library, else by the command."""
        nvml = self.sources.nvml()
        meter, why = (None, "nvidia-ml-py is not installed")
        if nvml is not None:
            meter, why = open_nvml(nvml, cards, clock_s=self.clock_s)
        if meter is None:
            self.missing.append(why)
            meter, why = open_smi(self.sources.smi, cards, clock_s=self.clock_s)
        if meter is not None:
            self._meters.append(meter)
        else:
            self.missing.append(why)


def _first(values: Any) -> float | None:
    return next((value for value in values if value is not None), None)
