"""What was fitted on measured runs: how figures follow from the count of tensors, and how far off they are.

`fitted.json` is written by `make calibrate` (calibrate/memory/fit.py), with the rows, groups and date behind it. The
count of tensors itself has no fitted constant in it; torch's own peak is a hundredth above it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from scrimp.estimate.memory.case import MemoryCase

# The driver's figure where a job is spread over cards: buffers of the communication come on top.
SEVERAL_CARDS = "device of several cards"
FILE = Path(__file__).with_name("fitted.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRatios:
    """A figure out of the allocated peak and the logits that come and go: peak x + logits x + constant, in bytes."""

    peak_ratio: float
    logits_ratio: float
    constant_bytes: float

    def of(self, *, peak_bytes: float, logits_bytes: float) -> float:
        """The figure, in bytes."""
        return peak_bytes * self.peak_ratio + logits_bytes * self.logits_ratio + self.constant_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedMemory:
    """All of it. `figures` by name (`allocated`, `reserved`, `device` ...), `need` what must fit on the card.

    `methods` is measured over counted for methods that the formulas take for their nearest kin. `intervals` holds the
    80% interval of measured over forecast by region (`one card, allocated, frozen`); a region that was never measured
    takes its nearest relative's, a part of the name dropped from the end at a time, `""` being the whole.
    """

    figures: Mapping[str, FigureRatios]
    need: FigureRatios
    methods: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]

    def interval(self, region: str) -> tuple[float, float]:
        """Low and high ratio of the region, or of its nearest relative."""
        while region and region not in self.intervals:
            region = region.rpartition(", ")[0]
        return self.intervals[region]


def region_of(case: MemoryCase, figure: str) -> str:
    """Which runs err alike: `one card, allocated, frozen, 4 bit`; mixtures of experts stand apart, however spread."""
    cards = "one card" if case.gpus == 1 else "several cards"
    if not case.tuning.frozen_base:
        kind = "full"
    else:
        kind = "frozen, 4 bit" if case.recipe.weight_dtype == "nf4" else "frozen, 16 bit"
    return f"{'mixture, ' if case.shape.experts else ''}{cards}, {figure}, {kind}"


@lru_cache(maxsize=1)
def fitted_memory() -> FittedMemory:
    """The shipped fit, read once."""
    return read_fitted(FILE)


def read_fitted(path: Path) -> FittedMemory:
    """A fit out of a file."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return FittedMemory(
        figures={name: FigureRatios(**ratios) for name, ratios in found["figures"].items()},
        need=FigureRatios(**found["need"]),
        methods=found["methods"],
        intervals={region: (ends["low"], ends["high"]) for region, ends in found["intervals"].items()},
    )
