"""Going on from a checkpoint: only if it belongs to the very same job, and only with the very same tensors."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from scrimp.core.errors import CheckpointError
from scrimp.core.recipe import Recipe
from scrimp.data.row import EncodedRow
from scrimp.train.checkpoint import TRAINABLE, Checkpoint, CheckpointState, group_hashes
from scrimp.train.load import LoadedModel
from scrimp.train.optimizer import optimizer_tensors, restore_optimizer

# What may change between attempts, because no trained bit depends on it.
_FREE = {"eval_every_steps", "checkpoint_every_steps", "keep_checkpoints"}


def check_same_job(checkpoint: Checkpoint, now: CheckpointState) -> None:
    """Refuse a checkpoint of another job, naming each difference as it was and as it is.

    Raises:
        CheckpointError: recipe, rows, model or the number of steps differ.
    """
    then = checkpoint.state
    changed = [*_changed_recipe(then.recipe, now.recipe)]
    if then.steps.steps != now.steps.steps:
        changed.append(f"steps: {then.steps.steps} then, {now.steps.steps} now")
    for name, label in (("rows_sha256", "encoded rows"), ("model_sha256", "base model")):
        before, after = str(getattr(then, name)), str(getattr(now, name))
        if before != after:
            changed.append(f"{label}: {before[:12]} then, {after[:12]} now")
    if changed:
        raise CheckpointError(
            what=f"{checkpoint.folder.name} belongs to another job:\n  " + "\n  ".join(changed),
            expected="the recipe, the rows and the model that the checkpoint was made with",
            next_step="undo the change and resume, or start a new run: scrimp run SPEC",
        )


def differences_to_note(checkpoint: Checkpoint, now: CheckpointState) -> tuple[str, ...]:
    """What does not forbid to go on but may change last bits: versions, threads, device."""
    then = checkpoint.state
    pairs = [(name, then.versions.get(name, "none"), version) for name, version in now.versions.items()]
    pairs += [("threads", str(then.threads), str(now.threads)), ("device", then.device, now.device)]
    return tuple(
        f"resumed with {name} {after} instead of {before}: the result may differ in its last bits"
        for name, before, after in pairs
        if before != after
    )


def restore(checkpoint: Checkpoint, loaded: LoadedModel, optimizer: torch.optim.Optimizer) -> None:
    """Put the tensors of a checkpoint into the model and the optimizer, and prove that they are there.

    Raises:
        CheckpointError: the set of trainable tensors differs, or what was put in place has another hash.
    """
    stored = checkpoint.tensors()
    _check_same_names(stored[TRAINABLE], loaded.trainable)
    with torch.no_grad():
        for name, parameter in loaded.trainable.items():
            parameter.copy_(stored[TRAINABLE][name])
    states = {group: named for group, named in stored.items() if group != TRAINABLE}
    restore_optimizer(optimizer, loaded.trainable, states)
    found = group_hashes(state_groups(loaded, optimizer))
    wrong = [group for group, sha256 in checkpoint.state.groups.items() if found.get(group) != sha256]
    if wrong or set(found) != set(checkpoint.state.groups):
        raise CheckpointError(
            what=f"{checkpoint.folder.name} was loaded, and not all bytes are those saved: {', '.join(wrong or found)}",
            expected="the same tensors as when the checkpoint was written",
            next_step="report this; start a new run with: scrimp run SPEC",
        )


def state_groups(loaded: LoadedModel, optimizer: torch.optim.Optimizer) -> dict[str, Mapping[str, torch.Tensor]]:
    """All tensors that training changes, by group and name."""
    return {TRAINABLE: loaded.trainable, **optimizer_tensors(optimizer, loaded.trainable)}


def rows_sha256(rows: tuple[EncodedRow, ...]) -> str:
    """Hash of the very tokens and masks: a changed file, template, tokenizer, length limit or split changes it."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(len(row.tokens).to_bytes(8, "little"))
        digest.update(row.tokens)
        digest.update(row.labels_mask)
    return digest.hexdigest()


def model_sha256(folder: Path) -> str:
    """Hash of a model's config and of the names and sizes of its weight files; their bytes would take minutes."""
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    for path in sorted(folder.glob("*.safetensors")):
        digest.update(f"{path.name} {path.stat().st_size}\n".encode())
    return digest.hexdigest()


def _changed_recipe(then: Recipe, now: Recipe) -> Iterator[str]:
    for item in fields(Recipe):
        before: Any = getattr(then, item.name)
        after: Any = getattr(now, item.name)
        if item.name not in _FREE and before != after:
            yield f"{item.name}: {_shown(before)} then, {_shown(after)} now"


def _shown(value: Any) -> str:
    options = getattr(value, "options", None)
    return f"{value.name} {dict(options)}" if options is not None else str(value)


def _check_same_names(stored: Mapping[str, torch.Tensor], trainable: Mapping[str, torch.nn.Parameter]) -> None:
    gone, new = sorted(set(stored) - set(trainable)), sorted(set(trainable) - set(stored))
    shaped = sorted(name for name in set(stored) & set(trainable) if stored[name].shape != trainable[name].shape)
    if not gone and not new and not shaped:
        return
    lines = [f"{len(names)} {label}, the first is {names[0]}" for names, label in (
        (gone, "only in the checkpoint"), (new, "only in the model"), (shaped, "of another shape"),
    ) if names]  # fmt: skip
    raise CheckpointError(
        what="the tensors that train are not those of the checkpoint:\n  " + "\n  ".join(lines),
        expected="the method and the options that the checkpoint was made with",
        next_step="start a new run: scrimp run SPEC",
    )
