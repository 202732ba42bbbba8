"""Seconds of one micro-step on a GPU: the slower of arithmetic and launches, plus traffic between cards.

    compute = T (W + A / k) / (peak x efficiency x stack x T / (T + T0))
    unpack  = c x passes x 4.5 B x P / memory bandwidth                      4-bit weights
    again   = T x bytes / memory bandwidth                                   selective checkpointing, beside unpack
    floor   = t0 x L x passes / 3                                            launch-bound small steps
    traffic = bytes x P x passes x (n - 1) / n / link                        sharded weights, n capped at 8
    step    = (max(compute + unpack, floor)^4 + traffic^4)^(1/4) x (1 + loss)^log2(n / 8)

T tokens, W and A FLOPs of a token in products and attention. Fitted on 355 published runs, 65% of them on A100; error
on runs that the fit never saw: mean 17.1%, median 10.8%, 79% within 25% (docs/explanation/time.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log2

from scrimp.core.market import Device
from scrimp.core.recipe import ComputeDtype, WeightDtype
from scrimp.core.units import TFLOPS
from scrimp.estimate.stack import SpeedStack
from scrimp.estimate.time.arithmetic import Arithmetic, Passes

_BLOCK = 8  # cards in one node: beyond it traffic grows no further but a share is lost
# NVLink bridges between pairs of cards are rarely fitted in clouds; below this a link is a bridge.
_FULL_NVLINK_BYTES_PER_S = 250e9


def _measured_efficiency() -> dict[str, float]:
    return {
        "dc_ampere": 0.62409,
        "dc_hopper": 0.43561,
        "dc_hopper_fp8": 0.28293,
        "dc_blackwell": 0.28544,
        "consumer_ada": 0.76467,
        "consumer_ampere": 0.75355,
        "pro_ampere": 0.56687,
        "dc_ada_inf": 0.23425,
        "dc_ada_inf_fp8": 0.14045,
        "amd_cdna3": 0.20109,
    }


def _nearest_class() -> dict[str, str]:
    return {"amd_cdna4": "amd_cdna3", "amd_cdna2": "amd_cdna3", "amd_cdna": "amd_cdna3", "gaudi": "amd_cdna3"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineConstants:
    """Fitted values (soft L1 on log ratios, rows weighted by group size^-1/4, weak priors) and their fallbacks.

    efficiency            share of the dense 16-bit (or fp8) peak that matrix products reach, by device class
    nearest_class         classes that nobody measured but whose software is that of one that was
    by_device             cards that were measured themselves and are unlike their class: the L40S trained Llama-3.2-3B
                          with LoRA on q and v at 840 tokens a step in 0.123 s (huggingface/peft method_comparison,
                          median of 12 runs), which is 0.41; the class's own rows are those of the 72 W L4
    per_watt_*            efficiency of all others: a line through the eight measured cards (A100, H100, 4090, 3090,
                          A5000, L4, L40S, MI300X) against their rated TFLOPS a watt, correlation -0.95, off by 0.79 to
                          1.17: a card with little power for its peak cannot hold it
    without_flash         of cards that have no flash attention (Volta, Turing): a judgement, nobody measured them
    unmeasured            efficiency where the power is not known either
    *_multiplier          software over eager Hugging Face code
    *_floor_s_per_layer   a step of three passes cannot be faster than this; a frozen 16-bit base launches less than a
                          trained or a 4-bit one (rows of 256 to 512 tokens; the fit's error is the same either way)
    unpack_*              passes of 4-bit unpacking, in traffic of 4.5 bytes a weight
    """

    efficiency: Mapping[str, float] = field(default_factory=_measured_efficiency)
    nearest_class: Mapping[str, str] = field(default_factory=_nearest_class)
    by_device: Mapping[str, float] = field(default_factory=lambda: {"L40S": 0.41})
    per_watt_start: float = 0.83
    per_watt_slope: float = -0.34
    per_watt_range: tuple[float, float] = (0.15, 0.76)
    without_flash: float = 0.7
    unmeasured: float = 0.30
    fused_multiplier: float = 1.16498
    megatron_multiplier: float = 1.48310
    eager_floor_s_per_layer: float = 0.01124
    eager_frozen_floor_s_per_layer: float = 0.0047
    fused_floor_s_per_layer: float = 0.0015
    unpack_nf4: float = 1.58504
    unpack_gptq: float = 2.58068
    unpack_bytes: float = 4.5
    nvlink_bytes_per_s: float = 172.947e9
    pcie_bytes_per_s: float = 13.060e9
    multinode_loss: float = 0.044957
    attention_efficiency: float = 0.35043
    small_step_tokens: float = 583.84


CONSTANTS = RooflineConstants()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One card as the roofline sees it. `measured`: rows of its own class stand behind `efficiency`."""

    peak_flops: float
    efficiency: float
    bandwidth_bytes_per_s: float
    link_bytes_per_s: float
    measured: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroStep:
    """One forward and backward pass over `tokens` tokens on each of `sharded_gpus` cards (1: not sharded).

    `scored_tokens` is how many of them go through the output head, `context_tokens` the mean length they attend to.
    """

    tokens: float
    scored_tokens: float
    context_tokens: float
    passes: Passes
    frozen_base: bool
    four_bit: str = ""
    sharded_gpus: int = 1
    gpus: int = 1
    offloads_params: bool = False


def chip_of(device: Device, compute: ComputeDtype, *, constants: RooflineConstants = CONSTANTS) -> Chip:
    """The card for products in that dtype. A rate that is not established falls back to the card's fp32 rate.

    Raises:
        ValueError: the device has no established rate at all.
    """
    tensor = device.fp32_flops if compute == "fp32" else device.bf16_flops
    peak = tensor or device.fp32_flops
    if not peak or not device.bandwidth_bytes_per_s:
        raise ValueError(f"{device.name}: neither speed nor bandwidth is established")
    own = constants.by_device.get(device.name, constants.efficiency.get(device.device_class))
    nvlink = device.nvlink_bytes_per_s >= _FULL_NVLINK_BYTES_PER_S and "PCIe" not in device.name
    return Chip(
        peak_flops=peak,
        efficiency=_borrowed_efficiency(device, peak, constants) if own is None else own,
        bandwidth_bytes_per_s=device.bandwidth_bytes_per_s,
        link_bytes_per_s=constants.nvlink_bytes_per_s if nvlink else constants.pcie_bytes_per_s,
        measured=own is not None and compute != "fp32",
    )


def _borrowed_efficiency(device: Device, peak_flops: float, constants: RooflineConstants) -> float:
    """For a class without rows: that of the nearest, else by power."""
    nearest = constants.nearest_class.get(device.device_class)
    if nearest is not None:
        return constants.efficiency[nearest]
    if not device.power_w:
        return constants.unmeasured
    low, high = constants.per_watt_range
    line = constants.per_watt_start + constants.per_watt_slope * peak_flops / TFLOPS / device.power_w
    return min(high, max(low, line)) * (1.0 if device.supports_flash_attention else constants.without_flash)


def micro_step_s(
    work: Arithmetic,
    step: MicroStep,
    chip: Chip,
    *,
    stack: SpeedStack = "eager",
    constants: RooflineConstants = CONSTANTS,
) -> float:
    """Seconds of one micro-step."""
    compute = _products_s(work, step, chip, stack, constants) + _unpack_s(work, step, chip, constants)
    compute += step.tokens * step.passes.again_bytes / chip.bandwidth_bytes_per_s
    body = max(compute, _floor_s(work, step, stack, constants))
    traffic = _traffic_s(work, step, chip, constants)
    if traffic:
        body = (body**4 + traffic**4) ** 0.25
    return body * (1 + constants.multinode_loss) ** log2(step.gpus / _BLOCK) if step.gpus > _BLOCK else body


def four_bit_kind(weights: WeightDtype) -> str:
    """Which unpacking the stored weights need."""
    return "nf4" if weights == "nf4" else ""


def _products_s(
    work: Arithmetic, step: MicroStep, chip: Chip, stack: SpeedStack, constants: RooflineConstants
) -> float:
    if not step.tokens:
        return 0.0
    weights = 2 * step.passes.products * (work.linear_params * step.tokens + work.head_params * step.scored_tokens)
    attention = step.passes.attention * 2 * work.layers * work.attention_width * step.context_tokens * step.tokens
    multiplier = {"eager": 1.0, "fused": constants.fused_multiplier, "megatron": constants.megatron_multiplier}[stack]
    small = 1.0 if stack == "megatron" else step.tokens / (step.tokens + constants.small_step_tokens)
    rate = chip.peak_flops * chip.efficiency * multiplier * small
    return (weights + attention / constants.attention_efficiency) / rate


def _unpack_s(work: Arithmetic, step: MicroStep, chip: Chip, constants: RooflineConstants) -> float:
    if not step.four_bit:
        return 0.0
    passes = step.passes.weights * (constants.unpack_gptq if step.four_bit == "gptq" else constants.unpack_nf4)
    return passes * constants.unpack_bytes * work.stored_params / chip.bandwidth_bytes_per_s


def _floor_s(work: Arithmetic, step: MicroStep, stack: SpeedStack, constants: RooflineConstants) -> float:
    if stack == "megatron":
        return 0.0
    if stack == "fused":
        each = constants.fused_floor_s_per_layer
    elif step.frozen_base and not step.four_bit:
        each = constants.eager_frozen_floor_s_per_layer
    else:
        each = constants.eager_floor_s_per_layer
    return each * work.layers * step.passes.weights / 3


def _traffic_s(work: Arithmetic, step: MicroStep, chip: Chip, constants: RooflineConstants) -> float:
    """Gathering weights for each pass, and reducing their gradients when they are trained."""
    if step.sharded_gpus <= 1:
        return 0.0
    cards = min(step.sharded_gpus, _BLOCK)
    passes = step.passes.weights + (0 if step.frozen_base else 1)
    moved = (0.6 if step.four_bit else 2.0) * work.stored_params * passes * (cards - 1) / cards
    traffic = moved / chip.link_bytes_per_s
    if step.offloads_params:
        traffic = max(traffic, 0.6 * work.stored_params * step.passes.weights / constants.pcie_bytes_per_s)
    return traffic
