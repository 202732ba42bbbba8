"""Doctor: what this machine can do for scrimp, and what is missing, each finding with the next command to type.

Nothing is installed or mended. The ledger is opened as any other verb opens it, so a missing one is made.
"""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from statistics import median_low
from typing import Literal

from scrimp.catalog.local import LocalReading, cpu_device, local_gpus, read_local
from scrimp.catalog.offers import age_words, offers
from scrimp.core.errors import MissingPackageError, NetworkError, ScrimpError, nearest
from scrimp.core.paths import cache_home, data_home
from scrimp.core.units import GIB, MIB, format_bytes
from scrimp.models.bundled import BUNDLED, HUB_ID, PROVENANCE, bundled_folder, is_converted
from scrimp.models.hub import hub_cache, is_offline
from scrimp.workflows.world import World

Status = Literal["ok", "note", "problem"]
Group = Literal["machine", "packages", "disk", "model", "ledger", "prices", "hub", "environment"]
Value = str | int | bool | None

LEAST_PYTHON = (3, 11)
# Python, torch and a small model's weights, gradients and activations pass this; the plan says what a job needs.
_SMALL_MEMORY_BYTES = 2 * GIB
_OLD_PRICES_DAYS = 90
_HUB = "https://huggingface.co"
_HUB_TIMEOUT_S = 10
# A writer holds the ledger for milliseconds; who waits longer than this learns why.
_LEDGER_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One finding. `values` are the same facts for programs, units in their names; `next_step` is a command."""

    group: Group
    name: str
    status: Status
    found: str
    next_step: str = ""
    values: Mapping[str, Value] = field(default_factory=dict[str, Value])


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All findings, in the order of the groups. `hub_asked`: whether the network was used."""

    checks: tuple[Check, ...]
    hub_asked: bool

    def count(self, status: Status) -> int:
        """How many findings have this status."""
        return sum(check.status == status for check in self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What is free at a folder that may not be there yet, and whether it could be made and written."""

    free_bytes: int
    is_writable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """Everything that is read from outside besides the World. Tests hand in recorded answers.

    python           version of the interpreter
    machine          /proc, cgroup limits, nvidia-smi
    package_version  of an installed distribution, None when it is not there; imports nothing
    bundled_weights  path of the bundled model's GGUF file, or MissingPackageError
    room             free space; OSError when the folder cannot be looked at
    open_ledger      opens a ledger URL and tries to write, or ScrimpError
    price_dates      of every offer of the shipped snapshot
    ask_hub          one small file from a hub endpoint, or NetworkError
    """

    python: tuple[int, int, int]
    machine: Callable[[], LocalReading]
    package_version: Callable[[str], str | None]
    bundled_weights: Callable[[], Path]
    room: Callable[[Path], Room]
    open_ledger: Callable[[str], None]
    price_dates: Callable[[], Sequence[date | None]]
    ask_hub: Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """Packages that work together, with the lowest version of each ("" for any), and what they are for."""

    packages: Mapping[str, str]
    why: str


EXTRAS: Mapping[str, Extra] = {
    "train": Extra(
        packages={
            "torch": "2.6",
            "transformers": "4.51",
            "peft": "0.15",
            "safetensors": "0.4.5",
            "numpy": "1.26",
            "psutil": "5.9",
        },
        why="training on this machine",
    ),
    "quant": Extra(packages={"bitsandbytes": "0.45", "accelerate": ""}, why="qlora, which trains on 4-bit weights"),
    "models": Extra(
        packages={"gguf": "0.10", "huggingface-hub": "0.26", "safetensors": "0.4.5", "numpy": "1.26"},
        why="the bundled model and models from the hub",
    ),
    "data": Extra(packages={"datasets": "3.0", "pyarrow": "15"}, why="parquet files and data sets from the hub"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """An environment variable that scrimp reads. The value of a secret is never shown."""

    is_secret: bool = False
    is_folder: bool = False


# Threads and progress of the libraries underneath (OMP_*, CUBLAS_*, TOKENIZERS_*) are theirs, not listed here.
VARIABLES: Mapping[str, Variable] = {
    "SCRIMP_HOME": Variable(is_folder=True),
    "SCRIMP_CACHE": Variable(is_folder=True),
    "SCRIMP_LEDGER": Variable(),
    "SCRIMP_ALLOW_PICKLE": Variable(),
    "HF_TOKEN": Variable(is_secret=True),
    "HF_HUB_OFFLINE": Variable(),
    "HF_ENDPOINT": Variable(),
    "HF_HOME": Variable(),
    "HF_HUB_CACHE": Variable(),
    "HUGGINGFACE_HUB_CACHE": Variable(),
    "XDG_CACHE_HOME": Variable(is_folder=True),
    "XDG_DATA_HOME": Variable(is_folder=True),
    "OMP_NUM_THREADS": Variable(),
}
# Set by scrimp itself for the training process that it starts.
INTERNAL_VARIABLES = frozenset({"SCRIMP_LOCK_FILE_NUMBER"})


def examine(*, world: World, network: bool = False, probes: Probes | None = None) -> Diagnosis:
    """Run every check. The hub is asked only with `network`; nothing here raises for what it finds."""
    probes = probes or real_probes()
    reading = probes.machine()
    checks = [
        _python(probes.python),
        *_machine(reading),
        _gpu(reading, probes),
        *(_extra(name, extra, probes) for name, extra in EXTRAS.items()),
        *_disks(world, probes),
        _bundled(world, probes),
        _ledger(world, probes),
        _prices(world, probes),
        *([_hub(world, probes)] if network else []),
        *_environment(world.env, cores=reading.cores),
    ]
    return Diagnosis(checks=tuple(checks), hub_asked=network and not is_offline(world.env))


def hide_secrets(text: str) -> str:
    """`text` with the passwords of every URL in it, and what its query calls a key or token, as `***`."""
    text = re.sub(r"(https?://)[^\s/]*@", r"\1***@", text)
    text = re.sub(r"(://[^\s:/@]*):\S*@", r"\1:***@", text)
    return re.sub(r"([?&][^=&\s]*(?:pass|pwd|secret|token|key)[^=&\s]*=)[^&\s]*", r"\1***", text, flags=re.IGNORECASE)


def _python(version: tuple[int, int, int]) -> Check:
    text = ".".join(map(str, version))
    least = ".".join(map(str, LEAST_PYTHON))
    good = version >= LEAST_PYTHON
    return Check(
        group="machine",
        name="python",
        status="ok" if good else "problem",
        found=text if good else f"{text}; scrimp needs {least} or newer",
        next_step="" if good else f"python{least} -m venv .venv && .venv/bin/pip install scrimp",
        values={"version": text},
    )


def _machine(reading: LocalReading) -> Iterator[Check]:
    cpu = cpu_device(reading.cpuinfo, memory_bytes=reading.memory_bytes, cores=reading.cores)
    model = "" if cpu.architecture == "unknown" else f", {cpu.architecture}"
    bf16 = "fast bf16" if cpu.supports_bf16 else "no fast bf16: trains in fp32"
    yield Check(
        group="machine",
        name="cpu",
        status="ok",
        found=f"{cpu.name}{model}; {bf16}",
        values={"device": cpu.name, "model": cpu.architecture, "cores": reading.cores, "bf16": cpu.supports_bf16},
    )
    small = reading.memory_bytes < _SMALL_MEMORY_BYTES
    yield Check(
        group="machine",
        name="memory",
        status="note" if small else "ok",
        found=f"{format_bytes(reading.memory_bytes)} for this process" + ("; little for training" if small else ""),
        next_step="scrimp plan SPEC" if small else "",
        values={"memory_bytes": reading.memory_bytes},
    )


def _gpu(reading: LocalReading, probes: Probes) -> Check:
    gpus = local_gpus(reading.gpu_query or "")
    if not gpus:
        return Check(
            group="machine",
            name="gpu",
            status="note",
            found="none that nvidia-smi finds; training here uses the CPU",
            next_step="scrimp offers",
            values={"gpu": None, "count": 0},
        )
    gpu = gpus[0]
    values: dict[str, Value] = {"gpu": gpu.name, "count": len(gpus), "memory_bytes": gpu.memory_bytes}
    found = f"{len(gpus)} x {gpu.name}, {format_bytes(gpu.memory_bytes)}{' each' if len(gpus) > 1 else ''}"
    torch = probes.package_version("torch") or ""
    if torch.endswith("+cpu"):
        return Check(
            group="machine",
            name="gpu",
            status="problem",
            found=f"{found}; torch {torch} is built for the CPU alone and would leave it idle",
            next_step="pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu126",
            values=values,
        )
    doubts = [*gpu.flags, *([] if gpu.supports_bf16 else ["no bf16"])]
    return Check(
        group="machine",
        name="gpu",
        status="note" if gpu.device_class == "unknown" else "ok",
        found="; ".join([found, *doubts]),
        next_step="scrimp gpus" if gpu.device_class == "unknown" else f"scrimp gpus {gpu.name}",
        values=values,
    )


def _extra(name: str, extra: Extra, probes: Probes) -> Check:
    versions = {package: probes.package_version(package) for package in extra.packages}
    missing = [package for package, version in versions.items() if version is None]
    there = [f"{package} {version}" for package, version in versions.items() if version is not None]
    old = [
        f"{package} {version} (needs {extra.packages[package]})"
        for package, version in versions.items()
        if version is not None and _release(version) < _release(extra.packages[package])
    ]
    parts = [
        f"too old: {', '.join(old)}" if old else "",
        f"missing for {extra.why}: {', '.join(missing)}" if missing else "",
        ("there: " if missing or old else "") + ", ".join(there) if there else "",
    ]
    # bitsandbytes is of use only to who trains.
    extras = "train,quant" if name == "quant" else name
    return Check(
        group="packages",
        name=name,
        status="problem" if old else "note" if missing else "ok",
        found="; ".join(part for part in parts if part),
        next_step=f'pip install {"--upgrade " if old else ""}"scrimp[{extras}]"' if missing or old else "",
        values=versions,
    )


def _release(version: str) -> tuple[int, ...]:
    """The numbers of `2.13.0+cpu`, without zeros at the end, which count as nothing; empty for no version."""
    match = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(number) for number in match.group().split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A folder that scrimp fills: under `least_bytes` its work fails, under `good_bytes` larger jobs will."""

    name: str
    folder: Path
    least_bytes: int
    good_bytes: int
    elsewhere: str


def _disks(world: World, probes: Probes) -> Iterator[Check]:
    # Least: the converted bundled model, a few runs' lines, the quickstart's checkpoints.
    places = (
        ("cache", cache_home(world.env), 300 * MIB, GIB, "export SCRIMP_CACHE=/OTHER/FOLDER"),
        ("data home", data_home(world.env), 16 * MIB, 256 * MIB, "export SCRIMP_HOME=/OTHER/FOLDER"),
        ("this folder", world.cwd, 128 * MIB, 5 * GIB, "cd /OTHER/FOLDER"),
        ("hub cache", hub_cache(world.env), 0, 10 * GIB, "export HF_HOME=/OTHER/FOLDER"),
    )
    for name, folder, least, good, elsewhere in places:
        place = _Place(name=name, folder=folder, least_bytes=least, good_bytes=good, elsewhere=elsewhere)
        yield _disk(place, probes)


def _disk(place: _Place, probes: Probes) -> Check:
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
            status, found = "problem", f"{found}, but you may not write there"
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
