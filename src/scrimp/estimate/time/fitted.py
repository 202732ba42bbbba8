"""What was fitted on measured runs: the constants of the roofline, and how far off its forecasts of unseen runs are.

`fitted.json` is written by `make calibrate` (calibrate/time/fit.py), with the rows, groups and date behind it. No other
file of this room holds a number that was fitted to speed of GPUs.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Literal

FILE = Path(__file__).with_name("fitted.json")
# Below so many tokens a micro-step launches, not products, decide: errors are larger there.
SHORT_TOKENS = 2048
Spread = Literal["short steps", "one card", "one node", "several nodes"]
# A mixture of experts on any card is further from what was measured than any dense model: a judgement, no run of one
# is among the rows. The interval's ends are taken to this power.
_MIXTURE_POWER = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineConstants:
    """Fitted values; roofline.py says where each one enters.

    efficiency              share of peak of matrix products, eager code, on a card of 1 rated TFLOPS a watt
    watt_exponent           by which that share falls with rated TFLOPS a watt: a card with little power for its peak
                            cannot hold it
    attention_efficiency    rate of attention over that of products, both of the 16-bit peak
    small_step_tokens       tokens of a micro-step at which products run at half their rate
    again_share             time of a forward pass that is computed again, over its share of the products
    *_multiplier            rate of products with that software over eager Hugging Face code
    *_bytes                 traffic of everything but products, in bytes per hidden value, layer and pass over them
    *_adapter_bytes         the same for adapters on a frozen base: casts, dropout, small products, additions
    score_bytes             traffic per token, attended token and head where attention writes its scores out
    *_floor_s               launch time of a layer in a step of three passes: eager code with all weights trained, with
                            a frozen 16-bit base, with 4-bit weights; fused kernels
    unpack_*                passes of 4-bit unpacking, in traffic of 4.5 bytes a weight
    nvlink_*, pcie_*        what a card really moves to and from others
    node_loss               share lost per doubling of the nodes
    optimizer_ratio         time of the optimizer step over that of its traffic
    device_class, device    efficiency of a class, and of a card in it, over the line through all; fp8 runs apart
    software                time of one program over that of its kind of software
    """

    efficiency: float
    watt_exponent: float
    attention_efficiency: float
    small_step_tokens: float
    again_share: float
    compiled_multiplier: float
    fused_multiplier: float
    megatron_multiplier: float
    eager_bytes: float
    fused_bytes: float
    megatron_bytes: float
    eager_adapter_bytes: float
    fused_adapter_bytes: float
    score_bytes: float
    trained_floor_s: float
    frozen_floor_s: float
    four_bit_floor_s: float
    fused_floor_s: float
    unpack_nf4: float
    unpack_gptq: float
    nvlink_bytes_per_s: float
    pcie_bytes_per_s: float
    node_loss: float
    optimizer_ratio: float
    device_class: Mapping[str, float] = field(default_factory=dict[str, float])
    device: Mapping[str, float] = field(default_factory=dict[str, float])
    software: Mapping[str, float] = field(default_factory=dict[str, float])


EFFECTS = ("device_class", "device", "software")
SCALARS = tuple(one.name for one in fields(RooflineConstants) if one.name not in EFFECTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """80% interval of measured over forecast time, and what it stands on."""

    low: float
    high: float
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTime:
    """All of it. `watt_range` are the rated TFLOPS a watt that were seen: the line is not drawn beyond them.

    `intervals` holds the 80% interval of measured over forecast time by region; a region that was never measured takes
    its nearest relative's, a part of the name dropped from the end at a time, `""` being the whole.
    """

    constants: RooflineConstants
    watt_range: tuple[float, float]
    intervals: Mapping[str, tuple[float, float]]
    rows: int
    groups: int

    def interval(self, *, card: bool, software: bool, mixture: bool, spread: Spread) -> Interval:
        """The interval of a run, by what was measured of its kind: its card, its software, dense models."""
        region = region_of(card=card, software=software, spread=spread)
        while region and region not in self.intervals:
            region = region.rpartition(", ")[0]
        low, high = self.intervals[region]
        low, high = min(1.0, low), max(1.0, high)
        basis = f"roofline fitted on {self.rows} published runs; {_WORDS[region_of(card=card, software=software)]}"
        if mixture:
            low, high = low**_MIXTURE_POWER, high**_MIXTURE_POWER
            basis += "; no mixture of experts was measured"
        return Interval(low=low, high=high, basis=basis)


CARD_UNSEEN, SOFTWARE_UNSEEN, BOTH_SEEN = "card not measured", "software not measured", "card and software measured"
_WORDS = {
    CARD_UNSEEN: "no run on this class of GPU in this precision was measured",
    SOFTWARE_UNSEEN: "this class of GPU was measured, with other software",
    BOTH_SEEN: "this class of GPU and this software were measured",
}


def region_of(*, card: bool, software: bool, spread: Spread | None = None) -> str:
    """Which runs err alike: `software not measured, one node`; without a spread the first part alone."""
    known = (BOTH_SEEN if software else SOFTWARE_UNSEEN) if card else CARD_UNSEEN
    return f"{known}, {spread}" if spread else known


def spread_of(*, tokens: float, cards: int, nodes: int) -> Spread:
    """How a run is spread; on micro-steps that are short for a card everything else matters less."""
    if tokens < SHORT_TOKENS:
        return "short steps"
    if nodes > 1:
        return "several nodes"
    return "one card" if cards == 1 else "one node"


@lru_cache(maxsize=1)
def fitted_time() -> FittedTime:
    """The shipped fit, read once."""
    return read_fitted(FILE)


def read_fitted(path: Path) -> FittedTime:
    """A fit out of a file."""
    found = json.loads(path.read_text(encoding="utf-8"))
    low, high = found["watt_range"]
    return FittedTime(
        constants=RooflineConstants(**found["constants"], **{name: found[name] for name in EFFECTS}),
        watt_range=(low, high),
        intervals={region: (ends["low"], ends["high"]) for region, ends in found["intervals"].items()},
        rows=found["source"]["rows"],
        groups=found["source"]["groups"],
    )
