"""Data sets of the Hugging Face hub, through `datasets` (the data extra)."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrimp._lazy import need
from scrimp.core.errors import DataError, NetworkError
from scrimp.data.row import Place, SourceRow
from scrimp.data.split import kind_of

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+(:[\w.-]+)?")
# How long one question to the hub may take before the network counts as missing.
_PATIENCE_S = 10.0
_NOT_FOUND = {"RepositoryNotFoundError", "DatasetNotFoundError"}

# (data set, configuration or None) -> rows by split.
HubLoader = Callable[[str, str | None], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSource:
    """A data set of the hub, loaded: rows by split."""

    label: str
    splits: Mapping[str, Any]

    def rows(self) -> Iterator[SourceRow]:
        """All rows, each with its split."""
        for split, rows in self.splits.items():
            for number, values in enumerate(rows, start=1):
                yield SourceRow(values=values, place=Place(file=f"{self.label}[{split}]", row=number), split=split)

    def without_others(self, *, train: str) -> "HubSource":
        """The same without splits that neither train nor evaluate: they may be large, and would be read for nothing.

        Raises:
            DataError: there is no split called `train`.
        """
        if train not in self.splits:
            raise DataError(
                what=f'{self.label} has no split "{train}"; its splits are: {", ".join(self.splits)}',
                expected="data.split to name the split to train on",
                next_step=f"data.split={next(iter(self.splits), '...')}",
            )
        kept = {name: rows for name, rows in self.splits.items() if kind_of(name, train=train) != "other"}
        return HubSource(label=self.label, splits=kept)


def open_hub(hub_id: str, *, load: HubLoader) -> HubSource:
    """Load `owner/name` or `owner/name:config`.

    Raises:
        NetworkError: the hub cannot be reached, and the data set is not in its cache.
        DataError: there is no such data set, it needs a configuration name, or it cannot be read.
    """
    name, _, config = hub_id.partition(":")
    try:
        splits = load(name, config or None)
    except ValueError as error:
        raise DataError(
            what=f'the hub data set "{hub_id}" cannot be loaded: {_first_lines(error)}',
            expected="owner/name, or owner/name:config where a data set has several configurations",
            next_step=f"data: {{path: {name}:CONFIG}}",
        ) from error
    except Exception as error:
        if type(error).__name__ in _NOT_FOUND:
            raise DataError(
                what=f'there is no file or folder "{hub_id}" here, and no public data set of that name on the hub',
                expected="a path that exists, or owner/name as the hub spells it",
                next_step="check the spelling; for a private data set: export HF_TOKEN=hf_...",
            ) from error
        # The client stack raises its own, requests' and httpx's errors for one and the same missing network.
        if not _is_network(error):
            raise
        raise NetworkError(
            what=f'no file or folder "{hub_id}" here, and the hub data set of that name could not be fetched: '
            f"{_first_lines(error)}",
            expected="an existing path, or a network that reaches the hub",
            next_step="give the path of a local file, or run this once online so that the data set is in the cache: "
            f"python -c \"import datasets; datasets.load_dataset('{name}')\"",
        ) from error
    return HubSource(label=hub_id, splits=splits)


def load_from_hub(name: str, config: str | None) -> Mapping[str, Any]:
    """All splits of a data set, from the cache when it is there."""
    why = f"to load {name} from the hub (there is no such path here)"
    datasets: Any = need("datasets", extra="data", why=why)
    hub: Any = need("huggingface_hub", extra="data", why=why)
    places = (
        Path(datasets.config.HF_DATASETS_CACHE) / name.replace("/", "___"),
        Path(hub.constants.HF_HUB_CACHE) / f"datasets--{name.replace('/', '--')}",
    )
    if not hub.constants.HF_HUB_OFFLINE and not any(place.exists() for place in places):
        # Once, and before `datasets` asks: that one takes half a minute of retries to find no network.
        hub.HfApi().dataset_info(name, timeout=_PATIENCE_S)
    return datasets.load_dataset(name, config)


def _is_network(error: Exception) -> bool:
    packages = {kind.__module__.split(".")[0] for kind in type(error).__mro__}
    known = ("datasets", "huggingface_hub", "httpx", "requests")
    return isinstance(error, OSError) or any(package.startswith(known) for package in packages)


def _first_lines(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
