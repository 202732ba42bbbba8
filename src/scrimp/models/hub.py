"""Models on the Hugging Face hub: what its cache on this machine holds, and what must be fetched."""

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrimp._lazy import need
from scrimp.core.errors import NetworkError, ResourceError, ScrimpError, SpecError, UnknownNameError, nearest
from scrimp.core.paths import home
from scrimp.core.units import format_bytes
from scrimp.models.folder import ALLOW_PICKLE
from scrimp.models.table import known_shapes

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
# No code and no second copy of the weights in another format: `model*` leaves out consolidated and original/ files.
_SMALL_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template*",
    "LICENSE*",
)
_WEIGHTS = ("model*.safetensors", "model.safetensors.index.json")
_PICKLED_WEIGHTS = ("pytorch_model*.bin", "pytorch_model.bin.index.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A folder of the hub's cache: some files of `hub_id` at one commit."""

    hub_id: str
    folder: Path
    revision: str


Fetch = Callable[[str], Snapshot]
"""Bring config and tokenizer of a hub id into the cache."""


def is_hub_id(text: str) -> bool:
    """Whether `text` has the form owner/name."""
    return _HUB_ID.fullmatch(text) is not None


def hub_cache(env: Mapping[str, str]) -> Path:
    """Where huggingface_hub keeps models, by its own rules for the environment."""
    for key in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if env.get(key):
            return Path(env[key]).expanduser()
    if env.get("HF_HOME"):
        return Path(env["HF_HOME"]).expanduser() / "hub"
    base = Path(env["XDG_CACHE_HOME"]) if env.get("XDG_CACHE_HOME") else home(env) / ".cache"
    return base / "huggingface" / "hub"


def cached_snapshot(hub_id: str, *, env: Mapping[str, str]) -> Snapshot | None:
    """What the cache holds of `hub_id` (case does not count) at its main branch, if at least its config."""
    wanted = f"models--{hub_id.replace('/', '--')}".lower()
    cache = hub_cache(env)
    for store in sorted(cache.iterdir()) if cache.is_dir() else ():
        if store.name.lower() != wanted:
            continue
        main = store / "refs" / "main"
        if not main.is_file():
            continue
        revision = main.read_text(encoding="utf-8").strip()
        folder = store / "snapshots" / revision
        if (folder / "config.json").is_file():
            owner, _, name = store.name.removeprefix("models--").partition("--")
            return Snapshot(hub_id=f"{owner}/{name}", folder=folder, revision=revision)
    return None


def cached_hub_id(folder: Path) -> str | None:
    """The hub id that a folder of some machine's hub cache belongs to (models--owner--name/snapshots/revision)."""
    store = folder.parent.parent.name
    if folder.parent.name != "snapshots" or not store.startswith("models--"):
        return None
    hub_id = store.removeprefix("models--").replace("--", "/", 1)
    return hub_id if is_hub_id(hub_id) else None


def is_offline(env: Mapping[str, str]) -> bool:
    """Whether the user has forbidden the network, with the variable that huggingface_hub itself obeys."""
    return env.get("HF_HUB_OFFLINE", "").strip().upper() in {"1", "ON", "YES", "TRUE"}


def hub_fetch(env: Mapping[str, str]) -> Fetch:
    """A `Fetch` that goes through huggingface_hub into its cache."""
    return lambda hub_id: _download(hub_id, patterns=_SMALL_FILES, env=env)


def download_model(hub_id: str, *, size_bytes: int, env: Mapping[str, str], report: Callable[[str], None]) -> Snapshot:
    """Bring the safetensors, config and tokenizer of `hub_id` into the cache.

    In a terminal huggingface_hub shows its progress bars. Pickled weights come only under SCRIMP_ALLOW_PICKLE=1.

    Args:
        hub_id: owner/name.
        size_bytes: about what the weights take, checked against the disk first.
        env: cache, token and endpoint.
        report: takes a line before and one after.

    Raises:
        MissingPackageError: the models extra is not installed.
        NetworkError: the hub cannot be reached, or wants a token.
        ResourceError: not enough room on the disk.
        SpecError: no model that transformers can load.
        UnknownNameError: the hub has no such model.
    """
    cache = hub_cache(env)
    _check_room(cache, size_bytes, hub_id=hub_id)
    report(f"downloading {hub_id} (about {format_bytes(size_bytes)}) into {cache}")
    patterns = (*_SMALL_FILES, *_WEIGHTS, *(_PICKLED_WEIGHTS if env.get(ALLOW_PICKLE) == "1" else ()))
    snapshot = _download(hub_id, patterns=patterns, env=env)
    report(f"downloaded {hub_id} at {snapshot.revision[:12]}")
    return snapshot


def _download(hub_id: str, *, patterns: tuple[str, ...], env: Mapping[str, str]) -> Snapshot:
    if is_offline(env):
        raise _unreachable(hub_id, "HF_HUB_OFFLINE is set")
    hub: Any = need("huggingface_hub", extra="models", why=f"to fetch {hub_id}")
    try:
        folder = hub.snapshot_download(
            hub_id,
            allow_patterns=list(patterns),
            cache_dir=hub_cache(env),
            token=env.get("HF_TOKEN") or None,
            endpoint=env.get("HF_ENDPOINT") or None,
        )
    # RuntimeError: what the chunked transfer (hf-xet) raises when a connection breaks.
    except (hub.errors.HfHubHTTPError, hub.errors.HFValidationError, OSError, RuntimeError) as error:
        raise _hub_error(hub.errors, hub_id, error) from error
    if not (Path(folder) / "config.json").is_file():
        raise SpecError(
            what=f"{hub_id} has no config.json: it may hold an adapter, or weights for another program (GGUF)",
            expected="a model that transformers can load",
            next_step="give the hub id of the model that it was made from",
        )
    return Snapshot(hub_id=hub_id, folder=Path(folder), revision=Path(folder).name)


def _hub_error(errors: Any, hub_id: str, error: Exception) -> ScrimpError:
    if isinstance(error, errors.GatedRepoError):
        return NetworkError(
            what=f"the hub gives {hub_id} only to users who have accepted its licence",
            expected="a token of such a user in HF_TOKEN",
            next_step=f"accept the licence on the page of {hub_id}, then: export HF_TOKEN=hf_...",
        )
    if isinstance(error, errors.RepositoryNotFoundError | errors.HFValidationError):
        close = nearest(hub_id, known_shapes())
        return UnknownNameError(
            what=f'the hub has no public model "{hub_id}"',
            expected=(f"did you mean {' or '.join(close)}? " if close else "") + "owner/name as the hub spells it",
            next_step="check the spelling; for a private model: export HF_TOKEN=hf_...",
        )
    return _unreachable(hub_id, str(error).strip().partition("\n")[0] or type(error).__name__)


def _unreachable(hub_id: str, why: str) -> NetworkError:
    close = nearest(hub_id, known_shapes(), count=1)
    if hub_id in known_shapes():
        offline = "; its sizes are known: scrimp plan needs no network for it"
    else:
        offline = f"; without network, plan with a model whose sizes scrimp knows, such as {close[0]}" if close else ""
    return NetworkError(
        what=f"{hub_id} cannot be fetched from the hub: {why}",
        expected="network, or the model in the hub's cache on this machine",
        next_step=f"try again with network, or give a folder that holds its config.json{offline}",
    )


def _check_room(cache: Path, size_bytes: int, *, hub_id: str) -> None:
    existing = next(path for path in (cache, *cache.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free < size_bytes:
        raise ResourceError(
            what=f"{hub_id} takes about {format_bytes(size_bytes)}, {cache} has {format_bytes(free)} free",
            expected="room for the weights",
            next_step="free some room, or set HF_HOME to a folder on a larger disk",
        )
