"""Folders that are whole or not there: built aside, flushed, listed with hashes, moved into place in one step."""

import contextlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scrimp.core.errors import ResourceError
from scrimp.core.sealed import file_sha256, flush, seal

MANIFEST = "manifest.json"
# Names of folders that are being built or taken away; a killed process leaves them, the next one sweeps them out.
_NEW, _OLD = ".new", ".old"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A folder in its place, and the size of all its files."""

    folder: Path
    size_bytes: int


def publish(folder: Path, *, fill: Callable[[Path], None]) -> Published:
    """Make `folder` out of what `fill` writes into the folder that it is given; one in its place is replaced.

    Order: files, their flush to the disk, the manifest with sizes and hashes, its flush, the rename, the flush of the
    parent. A kill or a power cut at any moment leaves a whole folder under this name or none. (Only between the two
    renames of a replacement is there none although there was one; checkpoints are never replaced by less.)

    Raises:
        ResourceError: the disk is full or cannot be written to; nothing is left behind.
    """
    aside = folder.with_name(f".{folder.name}{_NEW}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        fill(aside)
        size_bytes = seal(aside, manifest=MANIFEST)
        if folder.exists():
            remove(folder)
        aside.rename(folder)
        flush(folder.parent)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise ResourceError(
            what=f"{folder} cannot be written: {error.strerror or error}",
            expected="a disk with room that can be written to; what was saved before is untouched",
            next_step=f"free some room (df -h {folder.parent}), then scrimp resume last",
        ) from error
    return Published(folder=folder, size_bytes=size_bytes)


def remove(folder: Path) -> None:
    """Take a folder away so that a kill in the middle leaves nothing that looks like one."""
    doomed = folder.with_name(f".{folder.name}{_OLD}")
    shutil.rmtree(doomed, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        folder.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def sweep(parent: Path) -> tuple[str, ...]:
    """Remove what killed processes left half built or half removed; the names of it."""
    left = [path for path in sorted(parent.glob(".*")) if path.is_dir() and path.suffix in (_NEW, _OLD)]
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    return tuple(path.name for path in left)


def damage(folder: Path) -> str | None:
    """Why a folder is not what was published, in words; None when every file has its size and its hash."""
    manifest = folder / MANIFEST
    try:
        files = json.loads(manifest.read_text(encoding="utf-8"))["files"]
        listed = {str(name): (int(each["size_bytes"]), str(each["sha256"])) for name, each in files.items()}
    except FileNotFoundError:
        return f"no {MANIFEST}: it was never finished"
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return f"{MANIFEST} is damaged"
    for name, (size_bytes, sha256) in listed.items():
        path = folder / name
        try:
            found_bytes = path.stat().st_size
            if found_bytes != size_bytes:
                return f"{name} has {found_bytes:,} of {size_bytes:,} bytes"
            if file_sha256(path) != sha256:
                return f"{name} is damaged: its hash is another"
        except OSError as error:
            return f"{name} cannot be read: {error.strerror}"
    return None
