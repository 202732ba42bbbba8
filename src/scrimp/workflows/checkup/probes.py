"""The edge of the doctor: how it reads this machine, its packages, disks, ledger and the hub."""

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from scrimp.catalog.local import LocalReading, read_local
from scrimp.catalog.offers import offers
from scrimp.core.errors import NetworkError, SpecError

# scrimp.models keeps its way to the weights to itself; a second copy of it here could come to differ.
from scrimp.models.bundled import HUB_ID, find_gguf

_HUB_TIMEOUT_S = 10
# A writer holds the ledger for milliseconds; who waits longer than this learns why.
_LEDGER_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What is free at a folder that may not be there yet, and whether it could be made and written."""

    free_bytes: int
    is_writable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """Everything that the doctor reads from outside besides the World. Tests hand in recorded answers.

    python           version of the interpreter
    machine          /proc, cgroup limits, nvidia-smi
    package_version  of an installed distribution, None when it is not there; imports nothing
    bundled_weights  path of the bundled model's GGUF file, or MissingPackageError
    room             free space; OSError when the folder cannot be looked at
    open_ledger      opens a ledger's URL and tries to write, or ScrimpError
    price_dates      of every offer of the shipped snapshot
    ask_hub          one small file from a hub's address, or NetworkError
    """

    python: tuple[int, int, int]
    machine: Callable[[], LocalReading]
    package_version: Callable[[str], str | None]
    bundled_weights: Callable[[], Path]
    room: Callable[[Path], Room]
    open_ledger: Callable[[str], None]
    price_dates: Callable[[], Sequence[date | None]]
    ask_hub: Callable[[str], None]


def real_probes() -> Probes:
    """This machine."""
    return Probes(
        python=sys.version_info[:3],
        machine=read_local,
        package_version=installed_version,
        bundled_weights=find_gguf,
        room=room_at,
        open_ledger=try_ledger,
        price_dates=lambda: [offer.price_date for offer in offers()],
        ask_hub=ask_hub,
    )


def installed_version(package: str) -> str | None:
    """The version that pip would tell, None for a package that is not installed; nothing is imported."""
    import importlib.metadata

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def room_at(folder: Path) -> Room:
    """Free bytes for this user where `folder` is or would be made.

    Raises:
        OSError: it cannot be looked at.
    """
    nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    return Room(
        free_bytes=shutil.disk_usage(nearest).free,
        is_writable=nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK),
    )


def try_ledger(url: str) -> None:
    """Open the ledger, make or migrate it as every verb does, and insert no rows at all: that needs the right to.

    Raises:
        ScrimpError: whatever the ledger says is wrong.
    """
    from sqlalchemy import false, insert, select
    from sqlalchemy.exc import SQLAlchemyError

    from scrimp.ledger.database import open_database
    from scrimp.ledger.tables import tables

    entries = tables().entries
    nothing = insert(entries).from_select(list(entries.c.keys()), select(entries).where(false()))
    try:
        with open_database(url, busy_timeout_s=_LEDGER_TIMEOUT_S).writing() as connection:
            connection.execute(nothing)
    # A port that is no number, an async driver: what SQLAlchemy finds odd about an address it says in many ways.
    except (ValueError, SQLAlchemyError) as error:
        raise SpecError(
            what=f"the ledger's address cannot be used: {error}",
            expected="such as sqlite:////home/me/ledger.db or postgresql+psycopg://user@host/name",
            next_step="unset SCRIMP_LEDGER for the default file, or correct it",
        ) from error


def ask_hub(endpoint: str) -> None:
    """Fetch the config of a public model, the first file of every download. No token is sent.

    Raises:
        NetworkError: no such answer.
    """
    import http.client
    import json
    import urllib.error
    import urllib.request

    url = f"{endpoint.rstrip('/')}/{HUB_ID}/resolve/main/config.json"
    try:
        with urllib.request.urlopen(url, timeout=_HUB_TIMEOUT_S) as answer:
            # A hotel's login page answers too, with no JSON.
            json.load(answer)
    except (OSError, ValueError, http.client.HTTPException) as error:
        # urllib wraps what the system said.
        cause = error.reason if type(error) is urllib.error.URLError else error
        raise NetworkError(
            what=f"{endpoint} does not answer as the hub does: {str(cause) or type(cause).__name__}",
            expected="the Hugging Face hub, or a mirror of it in HF_ENDPOINT",
            next_step="check the network and HTTPS_PROXY; without it, name models by folder, or use the bundled one",
        ) from error
