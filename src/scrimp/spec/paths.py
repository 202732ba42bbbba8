"""Paths of a spec: relative to their file on disk, relative to the working directory in memory.

A plan and its data can so be moved or cloned together, and `scrimp run elsewhere/job.yaml` finds the same rows.
"""

import os
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, cast

from scrimp.core.data import DataProfile
from scrimp.core.job import JobSpec
from scrimp.core.plan import Plan

T = TypeVar("T")

# A name with one of these endings is a file even where it does not exist; others may be hub ids.
_FILE_ENDINGS = (".json", ".jsonl", ".csv", ".tsv", ".parquet", ".txt", ".gz", ".zst", ".gguf")


def from_folder(noun: T, folder: Path, *, keep: Collection[str] = ()) -> T:
    """A noun out of a file in `folder`: its paths as seen from the working directory.

    Keys in `keep` (dotted, a section stands for all below it) are left as they are.
    """
    return _moved(noun, lambda text: _joined(text, folder), keep=keep)


def to_folder(noun: T, folder: Path, *, base: Path = Path()) -> T:
    """A noun for a file in `folder`: its paths as seen from there; relative ones are now relative to `base`.

    An absolute path outside of the folder stays absolute.
    """
    return _moved(noun, lambda text: _relative(text, folder, base=base), keep=())


def _moved(noun: T, move: Callable[[str], str], *, keep: Collection[str]) -> T:
    if isinstance(noun, JobSpec):
        return cast(T, _moved_spec(noun, move, keep=keep))
    if isinstance(noun, Plan):
        profile = _moved_profile(noun.profile, move)
        return cast(T, replace(noun, spec=_moved_spec(noun.spec, move, keep=keep), profile=profile))
    return noun


def _moved_spec(spec: JobSpec, move: Callable[[str], str], *, keep: Collection[str]) -> JobSpec:
    data = spec.data
    if not {"data", "data.path"} & set(keep):
        data = replace(data, path=move(data.path))
    if data.eval_path is not None and not {"data", "data.eval_path"} & set(keep):
        data = replace(data, eval_path=move(data.eval_path))
    model = spec.model if "model" in keep else move(spec.model)
    return replace(spec, data=data, model=model)


def _moved_profile(profile: DataProfile, move: Callable[[str], str]) -> DataProfile:
    return replace(profile, path=move(profile.path))


def is_local(text: str, *, folder: Path) -> bool:
    """Whether a name means a file: it says so (./x, ~/x, /x, x.jsonl), or there is something of that name.

    Everything else may be a hub id (`owner/name`) or a known name, and is left alone.
    """
    return _says_so(text) or ("/" in text and (folder / text).exists())


def _says_so(text: str) -> bool:
    return text.startswith((".", "~", "/")) or Path(text).is_absolute() or text.lower().endswith(_FILE_ENDINGS)


def _joined(text: str, folder: Path) -> str:
    if not is_local(text, folder=folder) or text.startswith("~") or Path(text).is_absolute() or folder == Path():
        return text
    return _marked(os.path.normpath(folder / text), like=text)


def _relative(text: str, folder: Path, *, base: Path) -> str:
    if not is_local(text, folder=base) or text.startswith("~"):
        return text
    absolute, home = _absolute(base / text), _absolute(base / folder)
    if Path(text).is_absolute() and not absolute.is_relative_to(home):
        return text
    return _marked(os.path.relpath(absolute, home), like=text)


def _absolute(path: str | Path) -> Path:
    # Path.resolve would follow links, and a link to the data is to stay one.
    return Path(os.path.abspath(path))  # noqa: PTH100


def _marked(path: str, *, like: str) -> str:
    """Where the text said that it is a file, the new one still says so: ./tuned is a folder, tuned may be anything."""
    posix = Path(path).as_posix()
    return f"./{posix}" if _says_so(like) and not _says_so(posix) else posix
