"""calibration.json: what was learnt from this user's runs, kept beside the ledger and read by every plan."""

import os
from pathlib import Path

from scrimp import __version__
from scrimp.core.correction import Corrections
from scrimp.core.errors import ResourceError, SpecError
from scrimp.core.paths import calibration_path
from scrimp.spec.codec import dump_json, load_json
from scrimp.workflows.world import World


def formulas_version(version: str = __version__) -> str:
    """The part of a version within which formulas stay as they are: `0.1` of `0.1.3`."""
    return ".".join(version.split(".")[:2])


def read_corrections(world: World) -> Corrections | None:
    """What plans are to be corrected by; None where nothing was learnt, or about formulas that are no longer used.

    Raises:
        SpecError: the file is damaged, or of a layout that this version does not read.
        ResourceError: it cannot be read.
    """
    path = calibration_path(world.env)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ResourceError(
            what=f"{path} cannot be read: {error.strerror or error}",
            expected="a file of yours, written by scrimp calibrate",
            next_step=f"ls -l {path}",
        ) from error
    try:
        found = load_json(Corrections, text, where=str(path))
    except SpecError as error:
        error.next_step = "scrimp calibrate    # writes it anew; --reset does without it"
        raise
    if formulas_version(found.scrimp_version) != formulas_version():
        world.note(
            f"{path} corrects the formulas of scrimp {found.scrimp_version} and is left aside: "
            "scrimp calibrate renews it"
        )
        return None
    return found


def write_corrections(corrections: Corrections, *, world: World) -> Path:
    """Replace the file as a whole, so that a plan made meanwhile reads the old one or the new one.

    Raises:
        ResourceError: it cannot be written.
    """
    path = calibration_path(world.env)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(dump_json(corrections, indent=2) + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise ResourceError(
            what=f"{path} cannot be written: {error.strerror or error}",
            expected="a folder that scrimp can write to",
            next_step="set SCRIMP_HOME to another folder",
        ) from error
    return path


def remove_corrections(world: World) -> bool:
    """Forget what was learnt; whether there was anything.

    Raises:
        ResourceError: it cannot be removed.
    """
    path = calibration_path(world.env)
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ResourceError(
            what=f"{path} cannot be removed: {error.strerror or error}",
            expected="a file of yours",
            next_step=f"rm {path}",
        ) from error
    return True
