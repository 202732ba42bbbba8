"""Energy of NVIDIA cards by NVML, the library behind nvidia-smi, through nvidia-ml-py (module `pynvml`).

Volta and later count millijoules themselves, exactly and at no cost. Older cards only tell their power, which is
sampled. Either is of the whole card, whoever uses it, and of nothing around it.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from scrimp.core.energy import EnergyReading
from scrimp.train.power.meter import JOULES_PER_KWH
from scrimp.train.power.sampling import PowerIntegral

_MJ_PER_J = 1000.0
_MW_PER_W = 1000.0
_SAMPLE_S = 1.0
# Readings further apart than this many periods leave a gap.
GAP_PERIODS = 10


class NvmlCounter:
    """The cards' own energy counters."""

    def __init__(self, nvml: Any, handles: Sequence[Any]) -> None:
        """Read them once.

        Raises:
            nvml.NVMLError: the cards have none.
        """
        self._nvml = nvml
        self._handles = tuple(handles)
        self._last_mj = self._counts()
        self._used_mj = 0
        self._lost = False

    @property
    def poll_s(self) -> float | None:
        """They count by themselves."""
        return None

    def poll(self) -> None:
        """Nothing is missed."""

    def read(self) -> EnergyReading | None:
        """What they went up by; None once a card no longer answers."""
        if not self._lost:
            try:
                now_mj = self._counts()
            except self._nvml.NVMLError:
                self._lost = True
            else:
                # A driver that was loaded again counts from 0.
                pairs = zip(self._last_mj, now_mj, strict=True)
                self._used_mj += sum(now - last if now >= last else now for last, now in pairs)
                self._last_mj = now_mj
        if self._lost:
            return None
        source = f"NVML energy counter of {_cards(len(self._handles))}"
        return EnergyReading(gpu_kwh=self._used_mj / _MJ_PER_J / JOULES_PER_KWH, source=source)

    def close(self) -> None:
        """NVML is shut down by whoever opened it."""

    def _counts(self) -> tuple[int, ...]:
        return tuple(int(self._nvml.nvmlDeviceGetTotalEnergyConsumption(handle)) for handle in self._handles)


class SampledPower:
    """Power of the cards, asked for now and then and added up. `read_w` gives the watts, None when it cannot."""

    def __init__(
        self, read_w: Callable[[], float | None], *, clock_s: Callable[[], float], period_s: float, source: str
    ) -> None:
        """Take the first reading."""
        self._read_w = read_w
        self._clock_s = clock_s
        self._period_s = period_s
        self._source = source
        self._integral = PowerIntegral(gap_s=GAP_PERIODS * period_s)
        self._lock = threading.Lock()
        self.poll()

    @property
    def poll_s(self) -> float | None:
        """The sampling period."""
        return self._period_s

    def poll(self) -> None:
        """Take a reading; one that fails leaves a gap."""
        power_w = self._read_w()
        if power_w is not None:
            with self._lock:
                self._integral.add(self._clock_s(), power_w)

    def read(self) -> EnergyReading | None:
        """The sum up to now; None when too little was seen."""
        with self._lock:
            joules = self._integral.joules(self._clock_s())
        if joules is None:
            return None
        return EnergyReading(gpu_kwh=joules / JOULES_PER_KWH, source=self._source)

    def close(self) -> None:
        """Take a last reading."""
        self.poll()


def open_nvml(
    nvml: Any, cards: Sequence[str], *, clock_s: Callable[[], float]
) -> tuple[NvmlCounter | SampledPower | None, str]:
    """A meter on the cards with these UUIDs (`GPU-...`; none: the only card there is); else None and why not."""
    try:
        nvml.nvmlInit()
        handles = [nvml.nvmlDeviceGetHandleByUUID(card) for card in cards] or _only_card(nvml)
    except nvml.NVMLError as error:
        return None, f"NVML does not answer for the card: {error}"
    if not handles:
        return None, "which of the machine's cards trains is not known to NVML"
    try:
        return NvmlCounter(nvml, handles), ""
    except nvml.NVMLError:
        pass

    def read_w() -> float | None:
        try:
            return sum(nvml.nvmlDeviceGetPowerUsage(handle) for handle in handles) / _MW_PER_W
        except nvml.NVMLError:
            return None

    if read_w() is None:
        return None, "the card tells neither its energy nor its power"
    source = f"NVML power of {_cards(len(handles))}, sampled every {_SAMPLE_S:g} s"
    return SampledPower(read_w, clock_s=clock_s, period_s=_SAMPLE_S, source=source), ""


def _only_card(nvml: Any) -> list[Any]:
    return [nvml.nvmlDeviceGetHandleByIndex(0)] if nvml.nvmlDeviceGetCount() == 1 else []


def _cards(count: int) -> str:
    return "1 card" if count == 1 else f"{count} cards"
