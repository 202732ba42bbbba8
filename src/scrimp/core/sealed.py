"""Folders that list their own files: sizes and hashes in a manifest, everything flushed to the disk.

A folder is built aside, sealed here, and only then renamed into place by whoever builds it.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path


def seal(folder: Path, *, manifest: str, facts: Mapping[str, object] | None = None) -> int:
    """Flush every file, write `manifest` with `facts`, sizes and hashes last, flush it too; the size of all in bytes.

    A rename that survives a power cut is worth nothing when the bytes behind it do not.
    """
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    for path in paths:
        flush(path)
    files = {
        path.relative_to(folder).as_posix(): {"size_bytes": path.stat().st_size, "sha256": file_sha256(path)}
        for path in paths
    }
    listed = folder / manifest
    text = json.dumps({**(facts or {}), "files": files}, indent=2, ensure_ascii=False)
    listed.write_text(text + "\n", encoding="utf-8")
    flush(listed)
    for path in (*(each for each in folder.rglob("*") if each.is_dir()), folder):
        flush(path)
    return sum(each.stat().st_size for each in (*paths, listed))


def file_sha256(path: Path) -> str:
    """Hash of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flush(path: Path) -> None:
    """Have the system write a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
