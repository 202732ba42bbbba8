"""resolved.json of a run folder: read and written in one place, for those who start a job and for what trains it."""

from dataclasses import replace
from pathlib import Path

from scrimp.core.errors import SpecError
from scrimp.core.recipe import ResolvedJob
from scrimp.spec.codec import dump_json, load_json


def read_job(path: Path) -> ResolvedJob:
    """The job in a resolved.json. The folder that it lies in is the run folder, wherever it was moved to.

    Raises:
        SpecError: no such file, or it is damaged.
    """
    if not path.is_file():
        raise SpecError(
            what=f"there is no file {path}",
            expected="the resolved.json of a run folder",
            next_step="scrimp run SPEC    # makes one and trains it",
        )
    job = load_json(ResolvedJob, path.read_bytes(), where=str(path))
    return replace(job, run_folder=str(path.resolve().parent))


def write_job(job: ResolvedJob, path: Path) -> None:
    """Write it so that a kill leaves the old one or the new one."""
    draft = path.with_suffix(".tmp")
    draft.write_text(dump_json(job, indent=2) + "\n", encoding="utf-8")
    draft.replace(path)
