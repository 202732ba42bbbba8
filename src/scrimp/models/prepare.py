"""From a known model to one whose files are on this disk; and the tokenizer that planning may use before that."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from scrimp.core.errors import SpecError
from scrimp.core.model import ModelSource
from scrimp.models.bundled import convert_bundled
from scrimp.models.folder import TOKENIZER_FILE, check_pickle_allowed, check_trainable, has_weights
from scrimp.models.hub import cached_snapshot, download_model

_WEIGHT_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}


def prepare(source: ModelSource, *, env: Mapping[str, str], report: Callable[[str], None]) -> ModelSource:
    """The same model with `folder` set to files that can be trained from: converted, downloaded, or there already.

    Args:
        source: what `resolve` answered.
        env: caches and tokens.
        report: takes lines about progress.

    Raises:
        MissingPackageError: a package that brings or reads the weights is not installed.
        NetworkError: the hub cannot be reached, or wants a token.
        ResourceError: not enough room on the disk.
        SpecError: a config without weights, or weights that cannot be trained from.
    """
    if source.kind == "bundled":
        return replace(source, folder=str(convert_bundled(env=env, report=report)))
    if source.kind == "config":
        raise SpecError(
            what=f"{source.name} is a config without weights: enough to plan with, not to train",
            expected="a folder with weights, or a hub id",
            next_step="model: owner/name, or the folder that holds the *.safetensors",
        )
    if source.folder is None:
        source = _downloaded(source, env=env, report=report)
    check_trainable(Path(source.folder or ""), env=env)
    return source


def tokenizer_folder(source: ModelSource, *, env: Mapping[str, str]) -> Path | None:
    """A folder with the model's tokenizer, if one is at hand without converting or downloading anything."""
    return next((folder for folder in _candidates(source, env=env) if (folder / TOKENIZER_FILE).is_file()), None)


def _candidates(source: ModelSource, *, env: Mapping[str, str]) -> tuple[Path, ...]:
    if source.folder is not None:
        return (Path(source.folder),)
    if source.kind == "config":
        path = Path(source.name)
        return (path if path.is_dir() else path.parent,)
    snapshot = cached_snapshot(source.name, env=env) if source.kind in ("hub", "table") else None
    return (snapshot.folder,) if snapshot else ()


def _downloaded(source: ModelSource, *, env: Mapping[str, str], report: Callable[[str], None]) -> ModelSource:
    snapshot = cached_snapshot(source.name, env=env)
    if snapshot is None or not has_weights(snapshot.folder, env=env):
        size_bytes = source.shape.params * _WEIGHT_BYTES.get(source.shape.native_dtype, 2)
        snapshot = download_model(source.name, size_bytes=size_bytes, env=env, report=report)
        if not has_weights(snapshot.folder, env=env):
            check_pickle_allowed(f"the hub has no safetensors of {source.name}, at best pickled weights", env=env)
    return replace(source, kind="hub", folder=str(snapshot.folder), revision=snapshot.revision)
