"""LLaMA-Factory's table of hardware needs: GB by method and bits at four sizes, nothing else asked.

Between sizes we interpolate, below 7 B the figure shrinks in proportion, above 70 B it grows so. The table's GB are
read as GiB, which favours it: it is nearly always too low.
"""

from itertools import pairwise

from peers.peer import MemoryPeer, model_params
from scrimp.calibrate.memory.rows import MemoryRow

_SIZES_B = (7.0, 14.0, 30.0, 70.0)
TABLE: dict[str, tuple[float, ...]] = {
    "full in fp32 or mixed precision": (120, 240, 600, 1200),
    "full in pure bf16": (60, 120, 300, 600),
    "adapters on 16 bit": (16, 32, 64, 160),
    "adapters on 8 bit": (10, 20, 40, 80),
    "adapters on 4 bit": (6, 12, 24, 48),
    "adapters on 2 bit": (4, 8, 16, 24),
}


def gib(row: MemoryRow) -> float | None:
    """What the table says for the model's size; it does not speak of several cards."""
    if row.case.gpus != 1:
        return None
    return interpolated(TABLE[_line(row)], model_params(row) / 1e9)


def interpolated(line: tuple[float, ...], size_b: float) -> float:
    """The line's figure at `size_b` billion parameters."""
    points = list(zip(_SIZES_B, line, strict=True))
    for (small, low), (large, high) in pairwise(points):
        if small <= size_b <= large:
            return low + (high - low) * (size_b - small) / (large - small)
    edge = points[0] if size_b < points[0][0] else points[-1]
    return edge[1] * size_b / edge[0]


def _line(row: MemoryRow) -> str:
    if row.row["method"] == "full":
        pure = row.row["weight_dtype"] == "bf16"
        return "full in pure bf16" if pure else "full in fp32 or mixed precision"
    return "adapters on 16 bit" if row.row["quant"] == "none" else "adapters on 4 bit"


MEMORY = (
    MemoryPeer(
        name="LLaMA-Factory's table",
        source="hiyouga/LLaMA-Factory, README.md, Hardware Requirement (v0.9.3, read 2026-12-01)",
        gib=gib,
    ),
)
