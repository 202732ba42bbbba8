"""Free space where scrimp writes."""

from dataclasses import dataclass
from pathlib import Path

from scrimp.core.paths import cache_home, data_home
from scrimp.core.units import GIB, MIB, format_bytes
from scrimp.models.hub import hub_cache
from scrimp.workflows.checkup.finding import Check, Status, Value
from scrimp.workflows.checkup.probes import Probes
from scrimp.workflows.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder that scrimp fills: under `least_bytes` its work fails, under `good_bytes` larger jobs will.

    `is_needed`: that it cannot be written is a problem here. The ledger tells for the data home, a hub cache may be
    shared and read-only, and only `scrimp run` writes into the current folder.
    """

    name: str
    folder: Path
    least_bytes: int
    good_bytes: int
    elsewhere: str
    is_needed: bool = False


def places_of(world: World) -> tuple[Place, ...]:
    """Every folder that scrimp fills, and how to choose another."""
    # Least: the converted bundled model, some runs' lines in the ledger, the quickstart's checkpoints.
    return (
        Place(
            name="cache",
            folder=cache_home(world.env),
            least_bytes=300 * MIB,
            good_bytes=GIB,
            elsewhere="export SCRIMP_CACHE=/OTHER/FOLDER",
            is_needed=True,
        ),
        Place(
            name="data home",
            folder=data_home(world.env),
            least_bytes=16 * MIB,
            good_bytes=256 * MIB,
            elsewhere="export SCRIMP_HOME=/OTHER/FOLDER",
        ),
        Place(
            name="hub cache",
            folder=hub_cache(world.env),
            least_bytes=0,
            good_bytes=10 * GIB,
            elsewhere="export HF_HOME=/OTHER/FOLDER",
        ),
        Place(
            name="this folder",
            folder=world.cwd,
            least_bytes=128 * MIB,
            good_bytes=5 * GIB,
            elsewhere="cd /OTHER/FOLDER",
        ),
    )


def check_disk(place: Place, *, probes: Probes) -> Check:
    """Room at one place, and whether it can be written."""
    values: dict[str, Value] = {"folder": str(place.folder)}
    status: Status = "ok"
    try:
        room = probes.room(place.folder)
    except OSError as error:
        status, found = "problem", f"cannot be looked at ({error.strerror or error})"
    else:
        values |= {"free_bytes": room.free_bytes, "writable": room.is_writable}
        found = f"{format_bytes(room.free_bytes)} free"
        if not room.is_writable:
            status, found = "problem" if place.is_needed else "note", f"{found}, but you may not write there"
        elif room.free_bytes < place.least_bytes:
            status, found = "problem", f"{found}, {format_bytes(place.least_bytes)} are the least"
        elif room.free_bytes < place.good_bytes:
            status, found = "note", f"{found}: little for larger models"
    return Check(
        group="disk",
        name=place.name,
        status=status,
        found=f"{found}: {place.folder}" if status == "ok" else f"{found} ({place.folder})",
        next_step="" if status == "ok" else place.elsewhere,
        values=values,
    )
