"""Everything that can be refused before it costs anything."""

import shutil
from collections.abc import Callable
from pathlib import Path

from scrimp.core.data import StepPlan
from scrimp.core.errors import DataError, ResourceError, SpecError
from scrimp.core.recipe import ResolvedJob
from scrimp.core.units import MIB, format_bytes, plural
from scrimp.data.batches import StepOptions, count_steps
from scrimp.data.dataset import Dataset
from scrimp.train.durable import publish, remove

# Beside the checkpoints: events, log, the report, a filesystem's own needs.
_ELSE_BYTES = 64 * MIB


def check_job(job: ResolvedJob) -> None:
    """Refuse what this trainer does not do.

    Raises:
        SpecError: a recipe for several cards.
    """
    if job.recipe.sharding != "none":
        raise SpecError(
            what=f"the recipe shares the work of one step among several cards ({job.recipe.sharding})",
            expected="a recipe for one card: this version trains on one",
            next_step="market.max_gpus=1",
        )


def check_steps(job: ResolvedJob, dataset: Dataset) -> StepPlan:
    """Count the steps again and compare with the plan.

    Raises:
        DataError: nothing to train on, or not the number of steps that was planned and priced.
    """
    counted = count_steps(dataset.sizes, options=StepOptions.of(job.recipe))
    if counted.trained_tokens == 0:
        raise DataError(
            what=f"none of the {counted.rows:,} rows has a token to learn",
            expected="rows with answers",
            next_step=f"scrimp data show {job.data.path}",
        )
    if counted.steps != job.steps.steps:
        raise DataError(
            what=f"the data gives {counted.steps:,} {plural(counted.steps, 'step')} here, "
            f"the plan says {job.steps.steps:,}",
            expected="the data and the tokenizer that the plan was made with",
            next_step="plan again: scrimp plan SPEC -o plan.yaml",
        )
    return counted


def check_disk(
    folder: Path,
    *,
    checkpoint_bytes: int,
    checkpoints: int,
    there_bytes: int,
    free_bytes: Callable[[Path], int] | None = None,
) -> None:
    """Refuse to start without room for all the checkpoints that will be there at once; then write one to try.

    Args:
        folder: the run folder.
        checkpoint_bytes: size of one checkpoint.
        checkpoints: how many there will be, the one in flight included.
        there_bytes: what earlier checkpoints take already, and will give back.
        free_bytes: free bytes of a disk; by default asked from the system.

    Raises:
        ResourceError: too little room, or the folder cannot be written to.
    """
    free = (free_bytes or (lambda path: shutil.disk_usage(path).free))(folder)
    need = checkpoint_bytes * checkpoints + _ELSE_BYTES - there_bytes
    if free < need:
        raise ResourceError(
            what=f"{folder} has {format_bytes(free)} free, {format_bytes(need)} are needed",
            expected=f"room for {checkpoints} checkpoints of {format_bytes(checkpoint_bytes)} at once",
            next_step="free some room, or training.keep_checkpoints=1, or output_dir=/a/larger/disk",
        )
    tried = publish(folder / "checkpoints" / "trial", fill=lambda aside: _write_trial(aside))
    remove(tried.folder)


def _write_trial(folder: Path) -> None:
    (folder / "trial").write_bytes(b"scrimp")
