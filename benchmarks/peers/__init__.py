"""Other estimators, one file each: their published rule in our words, called with the measured rows that grade ours.

A file is named for the project and holds `MEMORY` or `TIME`, the estimators that come out of it. Each says where its
rule was read. A peer answers None for a row that its rule does not speak of.
"""

import importlib
import pkgutil

from peers.peer import MemoryPeer, TimePeer


def memory_peers() -> list[MemoryPeer]:
    """Every memory estimator in this folder, in the order of the files' names."""
    return [peer for module in _modules() for peer in getattr(module, "MEMORY", ())]


def time_peers() -> list[TimePeer]:
    """Every estimator of speed in this folder."""
    return [peer for module in _modules() for peer in getattr(module, "TIME", ())]


def _modules() -> list[object]:
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    return [importlib.import_module(f"{__name__}.{name}") for name in names]
