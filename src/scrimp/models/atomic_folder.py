"""A folder that is whole or not there: built aside, listed with hashes, moved into place in one step."""

import json
import os
import shutil
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scrimp.core.errors import ResourceError
from scrimp.core.sealed import file_sha256, flush, seal
from scrimp.core.units import format_bytes

MANIFEST = "provenance.json"


def make_folder(folder: Path, *, facts: Mapping[str, Any], size_bytes: int, fill: Callable[[Path], None]) -> None:
    """Make `folder` by `fill`, unless one with the same `facts` is already there.

    Two processes may call this at once: the second waits and finds the work done. Whatever stops the work in the
    middle, a kill included, leaves only a hidden folder beside, which the next call removes.

    Args:
        folder: what to make; another one in its place is replaced.
        facts: where the content comes from, kept in `provenance.json` beside the hash of every file.
        size_bytes: about what the content takes, checked against the disk first.
        fill: writes the content into the folder that it is given.

    Raises:
        ResourceError: not enough room on the disk.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _only_one(folder.with_name(f".{folder.name}.lock")):
        if is_whole(folder, facts=facts):
            return
        for leftover in folder.parent.glob(f".{folder.name}.new-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        _check_room(folder.parent, size_bytes)
        aside = folder.with_name(f".{folder.name}.new-{os.getpid()}")
        aside.mkdir()
        try:
            fill(aside)
            seal(aside, manifest=MANIFEST, facts=facts)
            _put_in_place(aside, folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def is_whole(folder: Path, *, facts: Mapping[str, Any]) -> bool:
    """Whether `folder` was made from the same `facts` and every file still has its size."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        same = all(manifest[key] == value for key, value in facts.items())
        return same and all(
            (folder / name).stat().st_size == file["size_bytes"] for name, file in manifest["files"].items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def damaged_files(folder: Path) -> tuple[str, ...]:
    """The files of a folder made here whose bytes are no longer those that were written."""
    files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
    return tuple(name for name, file in files.items() if file_sha256(folder / name) != file["sha256"])


def _put_in_place(aside: Path, folder: Path) -> None:
    if folder.exists():
        old = folder.with_name(f".{folder.name}.new-old")
        folder.rename(old)
        aside.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    else:
        aside.rename(folder)
    flush(folder.parent)


def _check_room(parent: Path, size_bytes: int) -> None:
    free = shutil.disk_usage(parent).free
    if free < size_bytes:
        raise ResourceError(
            what=f"{parent} has {format_bytes(free)} free, {format_bytes(size_bytes)} are needed",
            expected="room for the model's files",
            next_step="free some room, or set SCRIMP_CACHE to a folder on a larger disk",
        )


@contextmanager
def _only_one(lock: Path) -> Generator[None]:
    """Hold `lock` for this process; the system releases it when the process ends, however it ends."""
    try:
        import fcntl
    except ModuleNotFoundError:
        # Without POSIX locks two processes may both do the work; moving into place still lets only one win.
        yield
        return
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
