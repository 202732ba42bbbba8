"""What a model's name means: where its files are, if anywhere, and its shape. Nothing is downloaded but a config."""

from collections.abc import Mapping
from pathlib import Path

from scrimp.core.errors import SpecError, UnknownNameError, nearest
from scrimp.core.model import ModelKind, ModelSource
from scrimp.models.bundled import BUNDLED, HUB_ID, bundled_folder, is_bundled, is_converted
from scrimp.models.folder import check_pickle_allowed, find_weights, has_weights, read_config
from scrimp.models.hub import Fetch, Snapshot, cached_hub_id, cached_snapshot, hub_fetch, is_hub_id
from scrimp.models.shapes import shape_from_config
from scrimp.models.table import find_known, known_shapes

# So much of a name is no longer chance.
_TELLING_CHARS = 3


def resolve(name: str, *, env: Mapping[str, str], fetch: Fetch | None = None) -> ModelSource:
    """The model that `name` means. In this order:

    1. the bundled model, by its names;
    2. a folder with a config.json, or the path of a config.json;
    3. a hub id or an alias of the table, with what the hub's cache on this machine holds of it;
    4. any other hub id: from the cache, else its config is fetched.

    The `name` of the answer leads to the same model again, on this machine or (except for folders) on another.

    Args:
        name: what the user typed.
        env: caches and tokens.
        fetch: brings the config of a hub id; by default through huggingface_hub, unless HF_HUB_OFFLINE is set.

    Raises:
        NetworkError: a hub id that is not in the cache, and the hub cannot be reached.
        SpecError: a path without a usable config.json, only pickled weights, or a family that cannot be counted.
        UnknownNameError: none of the above.
    """
    typed = name.strip()
    if is_bundled(typed):
        return _bundled(env)
    local = _local(typed, env=env)
    if local is not None:
        return local
    known = find_known(typed)
    hub_id = known[0] if known else typed
    if not is_hub_id(hub_id):
        raise _unknown(typed)
    snapshot = cached_snapshot(hub_id, env=env)
    if snapshot is None and known:
        return ModelSource(name=hub_id, kind="table", folder=None, revision=None, shape=known[1])
    return _from_hub(snapshot or (fetch or hub_fetch(env))(hub_id), env=env)


def public_name(name: str) -> str:
    """What other machines call the model that a resolved job names so: its hub id, where it has one.

    A folder of the hub's cache is the id that it was fetched under; any other folder keeps its path.
    """
    if is_bundled(name):
        return HUB_ID
    return cached_hub_id(Path(name)) or name


def _bundled(env: Mapping[str, str]) -> ModelSource:
    shape = known_shapes()[HUB_ID]
    folder = str(bundled_folder(env)) if is_converted(env) else None
    return ModelSource(name=BUNDLED, kind="bundled", folder=folder, revision=None, shape=shape)


def _local(typed: str, *, env: Mapping[str, str]) -> ModelSource | None:
    """The model at the path `typed`; None when it is no path."""
    path = Path(typed).expanduser()
    if path.is_file():
        return _from_files(path.parent.absolute(), path.absolute(), kind="config", env=env)
    if path.is_dir() and (path / "config.json").is_file():
        folder = path.absolute()
        return _from_files(folder, folder / "config.json", kind="folder", env=env)
    looks_like_path = typed.startswith((".", "/", "~")) or typed.endswith(".json")
    if not looks_like_path and (not typed or not path.is_dir() or find_known(typed)):
        return None
    if (path / "adapter_config.json").is_file():
        what, next_step = (
            f"{typed} holds an adapter and no model",
            "give the folder or hub id of the adapter's base model",
        )
    elif path.is_dir():
        what, next_step = f"{typed} holds no config.json", "give the folder that the model was saved to"
    else:
        what, next_step = f"there is no folder or file {typed}", "check the path"
    raise SpecError(what=what, expected="a folder with config.json, or a config.json", next_step=next_step)


def _from_files(folder: Path, config: Path, *, kind: ModelKind, env: Mapping[str, str]) -> ModelSource:
    shape = shape_from_config(read_config(config), name=folder.name, source=str(config))
    if kind == "config":
        return ModelSource(name=str(config), kind=kind, folder=None, revision=None, shape=shape)
    weights = find_weights(folder)
    if weights.pickled and not weights.safetensors:
        check_pickle_allowed(f"{folder} holds its weights only as {weights.pickled[0]}", env=env)
    elif not weights.safetensors:
        return ModelSource(name=str(folder), kind="config", folder=None, revision=None, shape=shape)
    return ModelSource(name=str(folder), kind=kind, folder=str(folder), revision=None, shape=shape)


def _from_hub(snapshot: Snapshot, *, env: Mapping[str, str]) -> ModelSource:
    source = f"config.json of {snapshot.hub_id} at {snapshot.revision[:12]}"
    shape = shape_from_config(read_config(snapshot.folder / "config.json"), name=snapshot.hub_id, source=source)
    folder = str(snapshot.folder) if has_weights(snapshot.folder, env=env) else None
    return ModelSource(name=snapshot.hub_id, kind="hub", folder=folder, revision=snapshot.revision, shape=shape)


def _unknown(typed: str) -> UnknownNameError:
    short = {hub_id.partition("/")[2]: hub_id for hub_id in known_shapes()}
    # Whoever types the beginning of a name that needs no network means that one before any that is merely alike.
    begun = (BUNDLED,) if len(typed) >= _TELLING_CHARS and BUNDLED.startswith(typed.lower()) else ()
    close = [*begun, *(short.get(item, item) for item in nearest(typed, (BUNDLED, *short, *known_shapes())))]
    hint = f"did you mean {' or '.join(dict.fromkeys(close))}? " if close else ""
    return UnknownNameError(
        what=f'model "{typed}" is not known',
        expected=f"{hint}a hub id (owner/name), a folder with config.json, or {BUNDLED}",
        next_step=f"model: {close[0] if close else BUNDLED}",
    )
