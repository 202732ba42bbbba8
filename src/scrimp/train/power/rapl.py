"""Energy of CPU packages and their memory, by the kernel's powercap files (RAPL; Intel, and AMD since Zen).

    <root>/intel-rapl:0/name                   package-0
    <root>/intel-rapl:0/energy_uj              microjoules, from any start, back to 0 after
    <root>/intel-rapl:0/max_energy_range_uj
    <root>/intel-rapl:0:0/name                 core, uncore (parts of the package, not added), dram (beside it, added)

The counters are of the whole package, whoever uses it. They can be read by root alone since 2020 (CVE-2020-8694), and
virtual machines rarely have them.
"""

import threading
from dataclasses import dataclass
from pathlib import Path

from scrimp.core.energy import EnergyReading
from scrimp.train.power.meter import JOULES_PER_KWH

# A counter of 262 kJ turns over after 11 minutes at 400 W: it must be looked at more often than that.
_POLL_S = 60.0
_UJ_PER_J = 1e6


@dataclass(slots=True, kw_only=True)
class _Zone:
    """One counter; `last_uj` is its last reading."""

    path: Path
    range_uj: int
    last_uj: int
    used_uj: int = 0

    def look(self) -> None:
        now_uj = _read_number(self.path / "energy_uj")
        step_uj = now_uj - self.last_uj
        self.used_uj += step_uj if step_uj >= 0 else step_uj + self.range_uj
        self.last_uj = now_uj


class RaplMeter:
    """Packages and memory together, since it was made."""

    def __init__(self, zones: list[_Zone]) -> None:
        """Of these counters; see `open_rapl`."""
        self._zones = zones
        self._lock = threading.Lock()
        self._lost = False
        has_memory = any(_name(zone.path) == "dram" for zone in zones)
        packages = sum(_name(zone.path) != "dram" for zone in zones)
        plural = "" if packages == 1 else "s"
        self._source = f"RAPL, {packages} CPU package{plural}{' and memory' if has_memory else ''}"

    @property
    def poll_s(self) -> float | None:
        """Often enough that no counter turns over twice unseen."""
        return _POLL_S

    def poll(self) -> None:
        """Look at every counter. One that cannot be read any more ends the measurement: a sum must be whole."""
        with self._lock:
            try:
                for zone in self._zones:
                    zone.look()
            except (OSError, ValueError):
                self._lost = True

    def read(self) -> EnergyReading | None:
        """What all counters together went up by; None once one of them was lost."""
        if not self._lost:
            self.poll()
        if self._lost:
            return None
        joules = sum(zone.used_uj for zone in self._zones) / _UJ_PER_J
        return EnergyReading(cpu_kwh=joules / JOULES_PER_KWH, source=self._source)

    def close(self) -> None:
        """Nothing to give back."""


def open_rapl(root: Path) -> tuple[RaplMeter | None, str]:
    """A meter on the counters below `root` (/sys/class/powercap); else None and why not, in words."""
    # intel-rapl-mmio:* are the same packages once more.
    names = [(path, _name(path)) for path in sorted(root.glob("intel-rapl:*"))]
    packages = [path for path, name in names if name.startswith("package") and path.name.count(":") == 1]
    memory = [path for path, name in names if name == "dram"]
    if not packages:
        return None, "the processor has no energy counters here"
    try:
        return RaplMeter([_open_zone(path) for path in (*packages, *memory)]), ""
    except PermissionError:
        return None, f"the processor's energy counters may be read by root alone (chmod -R a+r {root}/intel-rapl*)"
    except (OSError, ValueError) as error:
        return None, f"the processor's energy counters cannot be read: {error}"


def _open_zone(path: Path) -> _Zone:
    return _Zone(
        path=path,
        range_uj=_read_number(path / "max_energy_range_uj"),
        last_uj=_read_number(path / "energy_uj"),
    )


def _name(path: Path) -> str:
    try:
        return (path / "name").read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _read_number(path: Path) -> int:
    return int(path.read_text(encoding="ascii"))
