"""Checkpoints: what they hold, how they are written, which one a run goes on from.

A checkpoint is a folder `step-000010` with trainable.safetensors, optimizer.safetensors, state.json and, written last,
manifest.json. Nothing in it is pickled. What follows from the step (order of the rows, learning rate, random numbers)
is not stored but computed again.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from scrimp.core.data import StepPlan
from scrimp.core.errors import SpecError
from scrimp.core.recipe import Recipe
from scrimp.spec.codec import dump_json, load_json
from scrimp.train.durable import MANIFEST, Published, damage, publish, remove, sweep

CHECKPOINT_FORMAT = 1
STATE_FILE = "state.json"
TRAINABLE_FILE = "trainable.safetensors"
OPTIMIZER_FILE = "optimizer.safetensors"
# Group of the trained tensors themselves; the others are named for their place in the optimizer's state.
TRAINABLE = "trainable"
_NAME = re.compile(r"step-(\d{6,})")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointState:
    """state.json. `groups` maps each group of tensors to the hash of their names and bytes.

    `rows_sha256` is over the encoded rows of training and evaluation, `model_sha256` over the base model's config and
    the sizes of its weight files. `loss_scale` and `good_steps` belong to fp16.
    """

    format: int
    run_id: str
    step: int
    total_tokens: int
    trained_tokens: int
    loss: float | None
    spent_usd: Decimal | None
    train_s: float
    recipe: Recipe
    steps: StepPlan
    rows_sha256: str
    data_sha256: str
    model_sha256: str
    groups: Mapping[str, str]
    loss_scale: float
    good_steps: int
    threads: int
    device: str
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A whole checkpoint on the disk."""

    folder: Path
    state: CheckpointState

    def tensors(self) -> dict[str, dict[str, torch.Tensor]]:
        """All tensors by group and name, on the CPU."""
        groups = {TRAINABLE: load_file(self.folder / TRAINABLE_FILE)}
        for key, tensor in load_file(self.folder / OPTIMIZER_FILE).items():
            group, _, name = key.partition("/")
            groups.setdefault(group, {})[name] = tensor
        return groups


class CheckpointStore:
    """The checkpoints of one run: at most `keep` of them, and one more while it is written.

    `latest` is the name of the one that was saved or found last, known to be whole.
    """

    def __init__(self, folder: Path, *, keep: int) -> None:
        """`folder` is made when the first checkpoint is."""
        self._folder = folder
        self._keep = max(1, keep)
        self.latest: str | None = None

    def sweep(self) -> tuple[str, ...]:
        """Remove what killed saves left behind; the names of it."""
        return sweep(self._folder)

    def save(self, state: CheckpointState, groups: Mapping[str, Mapping[str, torch.Tensor]]) -> Published:
        """Publish one checkpoint, then remove those beyond `keep`.

        Raises:
            ResourceError: the disk is full; older checkpoints are untouched.
        """

        def fill(folder: Path) -> None:
            save_file(_contiguous(groups[TRAINABLE]), folder / TRAINABLE_FILE)
            others = {
                f"{group}/{name}": each
                for group, named in groups.items()
                if group != TRAINABLE
                for name, each in named.items()
            }
            save_file(_contiguous(others), folder / OPTIMIZER_FILE)
            (folder / STATE_FILE).write_text(dump_json(state, indent=2) + "\n", encoding="utf-8")

        published = publish(self._folder / checkpoint_name(state.step), fill=fill)
        self.latest = published.folder.name
        self._prune(newest=published.folder)
        return published

    def newest_whole(self, *, on_skip: Callable[[str, str], None]) -> Checkpoint | None:
        """The newest checkpoint whose every byte is as it was written; `on_skip` hears of each newer one, and why."""
        for folder in self.folders():
            reason = damage(folder)
            if reason is None:
                try:
                    state = load_json(
                        CheckpointState, (folder / STATE_FILE).read_bytes(), where=str(folder / STATE_FILE)
                    )
                    self.latest = folder.name
                    return Checkpoint(folder=folder, state=state)
                except SpecError as error:
                    reason = (
                        f"{STATE_FILE} was written by another version of scrimp: {error.what.splitlines()[-1].strip()}"
                    )
            on_skip(folder.name, reason)
        return None

    def folders(self) -> list[Path]:
        """All that is named like a checkpoint, the newest first."""
        if not self._folder.is_dir():
            return []
        named = [path for path in self._folder.iterdir() if _NAME.fullmatch(path.name)]
        return sorted(named, key=_step_of, reverse=True)

    @property
    def size_bytes(self) -> int:
        """What all checkpoints take now."""
        return sum(path.stat().st_size for folder in self.folders() for path in folder.rglob("*") if path.is_file())

    def _prune(self, *, newest: Path) -> None:
        """Remove all but the newest `keep`. Called only after the newest was published, so one is always left.

        One without a manifest is no checkpoint and does not count as kept. Those that claim a later step than the
        newest were skipped as damaged when this run resumed.
        """
        others = [path for path in self.folders() if path != newest]
        older = [path for path in others if _step_of(path) < _step_of(newest) and (path / MANIFEST).is_file()]
        for path in others:
            if path not in older[: self._keep - 1]:
                remove(path)


def _step_of(folder: Path) -> int:
    found = _NAME.fullmatch(folder.name)
    return int(found.group(1)) if found else -1


def checkpoint_name(step: int) -> str:
    """`step-000010`."""
    return f"step-{step:06d}"


def group_hashes(groups: Mapping[str, Mapping[str, torch.Tensor]]) -> dict[str, str]:
    """One hash for each group, over names, dtypes, shapes and bytes."""
    return {group: _hash(named.items()) for group, named in groups.items()}


def _hash(named: Iterable[tuple[str, torch.Tensor]]) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(named, key=lambda item: item[0]):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        # bf16 has no numpy form; its bytes have.
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _contiguous(named: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().contiguous() for name, tensor in named.items()}
