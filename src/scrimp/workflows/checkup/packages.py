"""Packages that are not needed for planning, by the extra that brings them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from scrimp.workflows.checkup.finding import Check
from scrimp.workflows.checkup.probes import Probes


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """Packages that work together, with the lowest version of each ("" for any), and what they are for."""

    packages: Mapping[str, str]
    why: str


EXTRAS: Mapping[str, Extra] = {
    "train": Extra(
        packages={
            "torch": "2.6",
            "transformers": "4.56",
            "peft": "0.15",
            "safetensors": "0.4.5",
            "numpy": "1.26",
            "psutil": "5.9",
        },
        why="training on this machine",
    ),
    "quant": Extra(packages={"bitsandbytes": "0.45", "accelerate": "1.0"}, why="qlora, which trains on 4-bit weights"),
    "models": Extra(
        packages={"gguf": "0.10", "huggingface-hub": "0.26", "safetensors": "0.4.5", "numpy": "1.26"},
        why="the bundled model and models from the hub",
    ),
    "data": Extra(packages={"datasets": "3.0", "pyarrow": "15"}, why="parquet files and data sets from the hub"),
    "energy": Extra(
        packages={"nvidia-ml-py": "12.535", "codecarbon": "3.0"}, why="the energy counters of cards, and codecarbon"
    ),
}


def check_extra(name: str, extra: Extra, *, probes: Probes) -> Check:
    """One extra: the versions that are there, those too old, and what is missing for what."""
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
        name=f"{name} extra",
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
