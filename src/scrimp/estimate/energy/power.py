"""What a machine draws at the wall, by card, load and kind of node.

    node = cards x rated power of a card x ratio(load, kind of node)

`compute`: arithmetic sets the pace. `communication`: the cards wait for each other. `launch`: the processor cannot
start kernels as fast as the cards finish them. `idle`: nothing runs on the cards while the machine starts, downloads,
loads or saves. The ratio is of the whole node, so a job on some of a node's cards gets its share of everything else.

Measured on servers of 8 cards (power logs of MLPerf submissions, `calibration/measured_power.csv`): 1.20 to 1.28 while
one node trains, 0.91 to 1.27 in clusters, 0.38 to 0.48 idle. `scrimp.calibrate.power.grade` fits the ratios again,
leaving out one system at a time; a test holds these constants against that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from scrimp.core.market import Device

Load = Literal["compute", "communication", "launch", "idle"]
NodeKind = Literal["server", "desktop"]
Ratios = tuple[float, float]
# Nodes of eight such cards were measured.
MEASURED_CLASSES = frozenset({"dc_hopper", "dc_blackwell"})
MEASURED_CARDS = 8


_LOAD_WORDS: Mapping[Load, str] = {
    "compute": "computing",
    "communication": "cards waiting for each other",
    "launch": "kernels waiting to start",
    "idle": "idle",
}


def _server() -> dict[Load, float]:
    return {"compute": 1.22, "communication": 1.10, "launch": 0.85, "idle": 0.40}


def _desktop() -> dict[Load, float]:
    return {"compute": 1.10, "communication": 0.90, "launch": 0.65, "idle": 0.12}


def _card() -> dict[Load, float]:
    return {"compute": 0.85, "communication": 0.70, "launch": 0.45, "idle": 0.12}


def _measured() -> dict[Load, Ratios]:
    return {"compute": (0.90, 1.14), "communication": (0.72, 1.32), "launch": (0.63, 1.37), "idle": (0.80, 1.28)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerConstants:
    """Ratios to the rated power of the cards, and 80% intervals as ratios of node power.

    server           means over systems of measured_power.csv; `launch` was measured by nobody: halfway to idle
    desktop          two owners' readings at the wall: 2x RTX 3090 760 W under load and 90 W idle, 7x RTX 4090 270 to
                     300 W idle. Inference, not training, so the doubt is that of an unmeasured kind
    desktop_floor_w  board, memory and drives of a desktop whatever its card
    card             what the card's own counter shows. RTX 4090 and A6000 peak at 0.88 of their rating in training
                     (answer.ai; a public nvidia-smi log); how a node's power divides is not established
    measured         servers of 8 cards of a measured class: when a system is left out and forecast by the others, it is
                     off by at most 0.94 to 1.07 at work, 0.72 to 1.31 in clusters, 0.86 to 1.28 idle; at work the upper
                     end is that of an abstract, 1.38 x rated power for "intensive workloads" (arXiv 2506.14551)
    share            some cards of such a node, as well: the neighbours' work moves what is shared (a judgement)
    unmeasured       every other card and kind: estimates from rated power are 27 to 37% off (arXiv 2506.14551)
    card_ratios      of `card`
    unknown_*        a card or CPU machine whose power is not established: a middling one
    """

    server: Mapping[Load, float] = field(default_factory=_server)
    desktop: Mapping[Load, float] = field(default_factory=_desktop)
    desktop_floor_w: float = 50.0
    card: Mapping[Load, float] = field(default_factory=_card)
    measured: Mapping[Load, Ratios] = field(default_factory=_measured)
    share: Ratios = (0.85, 1.20)
    unmeasured: Ratios = (0.63, 1.37)
    card_ratios: Ratios = (0.65, 1.18)
    unknown_gpu_w: float = 350.0
    unknown_cpu_w: float = 150.0
    unknown_ratios: Ratios = (0.3, 2.0)


CONSTANTS = PowerConstants()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePower:
    """Draw of the whole machine at the wall, before the building's overhead; `low` and `high` are ratios of it.

    `card_w` is what the cards alone draw of it; None on a machine without any. `draw` says in words how the value came
    about, `basis` what the interval stands on.
    """

    power_w: float
    card_w: float | None
    low: float
    high: float
    draw: str
    basis: str


def node_power(device: Device, *, gpus: int, load: Load, constants: PowerConstants = CONSTANTS) -> NodePower:
    """Draw of a machine with that many cards under that load."""
    on_cards = device.kind == "gpu"
    rated_w = device.power_w if device.power_w is not None else _unknown_w(on_cards, constants)
    kind = node_kind(device)
    ratio = (constants.desktop if kind == "desktop" else constants.server)[load]
    cards_w = rated_w * (gpus if on_cards else 1)
    floor_w = constants.desktop_floor_w if kind == "desktop" and on_cards else 0.0
    (low, high), basis = _doubt(device, gpus=gpus, load=load, constants=constants)
    return NodePower(
        power_w=max(ratio * cards_w, floor_w),
        card_w=constants.card[load] * cards_w if on_cards else None,
        low=low,
        high=high,
        draw=f"{ratio:.2f} x rated power ({_LOAD_WORDS[load]})",
        basis=basis,
    )


def node_kind(device: Device) -> NodeKind:
    """Consumer cards sit in desktops, whatever rents them out; everything else in servers."""
    return "desktop" if device.device_class.startswith("consumer") else "server"


def _doubt(device: Device, *, gpus: int, load: Load, constants: PowerConstants) -> tuple[Ratios, str]:
    """80% interval as ratios, and what it stands on."""
    if device.power_w is None:
        return constants.unknown_ratios, "power not established: a middling one"
    if device.device_class not in MEASURED_CLASSES or load == "launch":
        kind = "load" if device.device_class in MEASURED_CLASSES else "kind"
        return constants.unmeasured, f"no node of this {kind} was measured"
    low, high = constants.measured[load]
    if gpus != MEASURED_CARDS:
        wider = (low * constants.share[0], high * constants.share[1])
        return wider, "a share of a node that was measured whole"
    return (low, high), "measured on whole nodes of this kind"


def _unknown_w(on_cards: bool, constants: PowerConstants) -> float:
    return constants.unknown_gpu_w if on_cards else constants.unknown_cpu_w
