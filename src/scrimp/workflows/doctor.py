"""Doctor: what this machine can do for scrimp, and what is missing, each finding with the next command to type.

Nothing is installed or mended. The ledger is opened as any other verb opens it, so a missing one is made.
"""

from dataclasses import dataclass

from scrimp.models.hub import is_offline
from scrimp.workflows.checkup.disk import check_disk, places_of
from scrimp.workflows.checkup.environment import check_environment
from scrimp.workflows.checkup.finding import Check, Status
from scrimp.workflows.checkup.machine import check_gpu, check_machine, check_python
from scrimp.workflows.checkup.packages import EXTRAS, check_extra
from scrimp.workflows.checkup.probes import Probes, real_probes
from scrimp.workflows.checkup.sources import check_bundled, check_hub, check_ledger, check_prices
from scrimp.workflows.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All findings, in the order of the groups. `hub_asked`: whether the network was used."""

    checks: tuple[Check, ...]
    hub_asked: bool

    def count(self, status: Status) -> int:
        """How many findings have this status."""
        return sum(check.status == status for check in self.checks)


def examine(*, world: World, network: bool = False, probes: Probes | None = None) -> Diagnosis:
    """Run every check. The hub is asked only with `network`; nothing here raises for what it finds."""
    probes = probes or real_probes()
    reading = probes.machine()
    checks = [
        check_python(probes.python),
        *check_machine(reading),
        check_gpu(reading, probes=probes),
        *(check_extra(name, extra, probes=probes) for name, extra in EXTRAS.items()),
        *(check_disk(place, probes=probes) for place in places_of(world)),
        check_bundled(world, probes=probes),
        check_ledger(world, probes=probes),
        check_prices(world, probes=probes),
        *([check_hub(world, probes=probes)] if network else []),
        *check_environment(world.env, cores=reading.cores),
    ]
    return Diagnosis(checks=tuple(checks), hub_asked=network and not is_offline(world.env))
