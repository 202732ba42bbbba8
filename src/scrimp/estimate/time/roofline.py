"""Seconds of one micro-step on a GPU: the slower of work and launches, plus traffic between cards.

    products  = T W / (peak x efficiency x stack x T / (T + T0))           W: FLOPs of a token
    attention = T A / (16-bit peak x efficiency x stack x .. x k)          A: FLOPs of a token in attention
    between   = T L d (bytes + adapter bytes) x passes / bandwidth         norms, activations, casts, adapters
    unpack    = c x passes x 4.5 B x P / bandwidth                         4-bit weights
    again     = T x bytes / bandwidth                                      selective checkpointing
    floor     = t0 x L x passes / 3                                        small steps wait for launches
    traffic   = bytes x P x passes x (n - 1) / n / link                    sharded weights, n capped at 8
    step      = (max(sum, floor)^4 + traffic^4)^(1/4) x (1 + loss)^log2(nodes) x software

T tokens. Efficiency is a line in rated TFLOPS a watt, times what a class of cards and a card differ from it. A term
that a run does not have is left out. Error on runs that the fit never saw: docs/explanation/time.md.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import log2

from scrimp.core.market import Device
from scrimp.core.recipe import ComputeDtype, WeightDtype
from scrimp.core.units import TFLOPS
from scrimp.estimate.stack import SpeedStack
from scrimp.estimate.time.arithmetic import Arithmetic, Passes
from scrimp.estimate.time.fitted import FittedTime, RooflineConstants, fitted_time

_BLOCK = 8  # cards in one node: beyond it traffic grows no further but a share is lost
# NVLink bridges between pairs of cards are rarely fitted in clouds; below this a link is a bridge.
_FULL_NVLINK_BYTES_PER_S = 250e9
# What is read and written to unpack a weight of 4 bits; what a weight takes on a link.
_UNPACK_BYTES = 4.5
_SHARDED_BYTES, _SHARDED_4BIT_BYTES = 2.0, 0.6
# AdamW in fp32 reads gradient, weight and both moments and writes all but the gradient.
_ADAMW_BYTES, _SGD_BYTES = 28.0, 12.0
_HEAD_WIDTH = 128
# Judgements, nobody measured them: cards without flash attention (Volta, Turing) against the line of all; rated TFLOPS
# a watt of a card whose power is not established.
_WITHOUT_FLASH = 0.7
_UNKNOWN_TFLOPS_PER_W = 2.0
# Classes that nobody measured but whose software is that of one that was.
_NEAREST_CLASS = {"amd_cdna4": "amd_cdna3", "amd_cdna2": "amd_cdna3", "amd_cdna": "amd_cdna3", "gaudi": "amd_cdna3"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One card as the roofline sees it. `measured`: rows of its own class and precision stand behind `efficiency`.

    `attention_flops` is the 16-bit peak: attention runs in 16 bit where products run in fp8.
    """

    peak_flops: float
    attention_flops: float
    efficiency: float
    bandwidth_bytes_per_s: float
    link_bytes_per_s: float
    measured: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroStep:
    """One forward and backward pass over `tokens` tokens on each of `sharded_gpus` cards (1: not sharded).

    `scored_tokens` is how many of them go through the output head, `context_tokens` the mean length they attend to.
    `writes_scores`: attention without flash kernels. `nodes` is 0 where it follows from `gpus` (eight a node).
    """

    tokens: float
    scored_tokens: float
    context_tokens: float
    passes: Passes
    frozen_base: bool
    four_bit: str = ""
    sharded_gpus: int = 1
    gpus: int = 1
    nodes: int = 0
    offloads_params: bool = False
    writes_scores: bool = False


@lru_cache(maxsize=512)
def chip_of(device: Device, compute: ComputeDtype) -> Chip:
    """The card for products in that dtype, under the shipped fit. A plan asks thousands of times for the same few.

    A rate that is not established falls back to the card's fp32 rate.

    Raises:
        ValueError: the device has no established rate at all.
    """
    tensor = device.fp32_flops if compute == "fp32" else device.bf16_flops
    peak = tensor or device.fp32_flops
    if not peak or not device.bandwidth_bytes_per_s:
        raise ValueError(f"{device.name}: neither speed nor bandwidth is established")
    return chip_at(device, peak_flops=peak, fp8=False, measured=compute != "fp32" and tensor is not None)


def chip_at(
    device: Device, *, peak_flops: float, fp8: bool, measured: bool = True, fitted: FittedTime | None = None
) -> Chip:
    """The card at a peak that is given; with `fp8` that of products in 8 bit.

    Raises:
        ValueError: the device's bandwidth is not established.
    """
    fitted = fitted or fitted_time()
    if not device.bandwidth_bytes_per_s:
        raise ValueError(f"{device.name}: its bandwidth is not established")
    constants, kind = fitted.constants, class_key(device.device_class, fp8=fp8)
    nvlink = device.nvlink_bytes_per_s >= _FULL_NVLINK_BYTES_PER_S and "PCIe" not in device.name
    seen = kind in constants.device_class
    share = line_share(tflops_per_w(device, peak_flops), constants, fitted.watt_range)
    if not device.supports_flash_attention and not seen:
        share *= _WITHOUT_FLASH
    return Chip(
        peak_flops=peak_flops,
        attention_flops=peak_flops / 2 if fp8 else peak_flops,
        efficiency=share * _class_ratio(device.device_class, kind, constants) * _own_ratio(device, fp8, constants),
        bandwidth_bytes_per_s=device.bandwidth_bytes_per_s,
        link_bytes_per_s=constants.nvlink_bytes_per_s if nvlink else constants.pcie_bytes_per_s,
        measured=seen and measured,
    )


def tflops_per_w(device: Device, peak_flops: float) -> float:
    """Rated TFLOPS a watt."""
    return peak_flops / TFLOPS / device.power_w if device.power_w else _UNKNOWN_TFLOPS_PER_W


def line_share(per_w: float, constants: RooflineConstants, watt_range: tuple[float, float]) -> float:
    """Share of peak on the line through all measured cards, held where it ends."""
    return constants.efficiency * min(watt_range[1], max(watt_range[0], per_w)) ** -constants.watt_exponent


def class_key(device_class: str, *, fp8: bool) -> str:
    """Under which a class stands in the fit: fp8 apart."""
    return f"{device_class} fp8" if fp8 else device_class


def device_key(name: str, *, fp8: bool) -> str:
    """Under which a card stands in the fit."""
    return class_key(name, fp8=fp8)


def _class_ratio(device_class: str, kind: str, constants: RooflineConstants) -> float:
    """Of the class in that precision, else in fp8, else of its nearest class, else 1."""
    near = _NEAREST_CLASS.get(device_class, "")
    known = constants.device_class
    for name in (kind, class_key(device_class, fp8=True), near, class_key(near, fp8=True)):
        if name in known:
            return known[name]
    return 1.0


def _own_ratio(device: Device, fp8: bool, constants: RooflineConstants) -> float:
    return constants.device.get(device_key(device.name, fp8=fp8), 1.0)


def micro_step_s(
    work: Arithmetic,
    step: MicroStep,
    chip: Chip,
    *,
    stack: SpeedStack = "eager",
    software: str = "",
    constants: RooflineConstants | None = None,
) -> float:
    """Seconds of one micro-step; a `software` that was not measured runs like its kind."""
    constants = constants or fitted_time().constants
    busy = _products_s(work, step, chip, stack, constants) + _memory_s(work, step, chip, stack, constants)
    body = max(busy, _floor_s(work, step, stack, constants))
    traffic = _traffic_s(work, step, chip, constants)
    if traffic:
        body = (body**4 + traffic**4) ** 0.25
    nodes = step.nodes or nodes_of(step.gpus)
    if nodes > 1:
        body *= (1 + constants.node_loss) ** log2(nodes)
    return body * constants.software.get(software, 1.0)


def optimizer_step_s(
    trained_params: float, chip: Chip, *, adamw: bool = True, constants: RooflineConstants | None = None
) -> float:
    """Seconds to update that many weights on one card: it reads and writes states in fp32."""
    constants = constants or fitted_time().constants
    each = _ADAMW_BYTES if adamw else _SGD_BYTES
    return constants.optimizer_ratio * each * trained_params / chip.bandwidth_bytes_per_s


def nodes_of(gpus: int) -> int:
    """Eight cards a node."""
    return -(-gpus // _BLOCK)


def four_bit_kind(weights: WeightDtype) -> str:
    """Which unpacking the stored weights need."""
    return "nf4" if weights == "nf4" else ""


def _products_s(
    work: Arithmetic, step: MicroStep, chip: Chip, stack: SpeedStack, constants: RooflineConstants
) -> float:
    """Matrix products of weights, and attention."""
    if not step.tokens:
        return 0.0
    passes = step.passes
    saved = (1 - constants.again_share) * passes.again
    weights = 2 * (passes.products - saved) * (work.linear_params * step.tokens + work.head_params * step.scored_tokens)
    attended = 2 * work.layers * work.attention_width * step.context_tokens * step.tokens
    attention = (passes.attention - saved) * attended / constants.attention_efficiency
    rate = chip.efficiency * _multiplier(stack, constants)
    if stack != "megatron":
        rate *= step.tokens / (step.tokens + constants.small_step_tokens)
    return (weights / chip.peak_flops + attention / chip.attention_flops) / rate


def _multiplier(stack: SpeedStack, constants: RooflineConstants) -> float:
    if stack == "eager":
        return 1.0
    if stack == "megatron":
        return constants.megatron_multiplier
    return constants.compiled_multiplier if stack == "compiled" else constants.fused_multiplier


def _memory_s(work: Arithmetic, step: MicroStep, chip: Chip, stack: SpeedStack, constants: RooflineConstants) -> float:
    """All that waits for memory: what lies between products, adapters, scores, unpacking."""
    passes = step.passes
    if stack == "megatron":
        each = constants.megatron_bytes
    elif stack == "eager":
        each = constants.eager_bytes + (constants.eager_adapter_bytes if step.frozen_base else 0.0)
    else:
        each = constants.fused_bytes + (constants.fused_adapter_bytes if step.frozen_base else 0.0)
    if step.writes_scores:
        each += constants.score_bytes * step.context_tokens / _HEAD_WIDTH
    moved = step.tokens * work.layers * work.attention_width * each * passes.between
    moved += step.tokens * passes.again_bytes
    if step.four_bit:
        unpack = constants.unpack_gptq if step.four_bit == "gptq" else constants.unpack_nf4
        moved += passes.weights * unpack * _UNPACK_BYTES * work.stored_params
    return moved / chip.bandwidth_bytes_per_s


def _floor_s(work: Arithmetic, step: MicroStep, stack: SpeedStack, constants: RooflineConstants) -> float:
    if stack == "megatron":
        return 0.0
    if stack != "eager":
        each = constants.fused_floor_s
    elif step.four_bit:
        each = constants.four_bit_floor_s
    else:
        each = constants.frozen_floor_s if step.frozen_base else constants.trained_floor_s
    return each * work.layers * step.passes.launches / 3


def _traffic_s(work: Arithmetic, step: MicroStep, chip: Chip, constants: RooflineConstants) -> float:
    """Gathering weights for each pass, and reducing their gradients when they are trained."""
    if step.sharded_gpus <= 1:
        return 0.0
    cards = min(step.sharded_gpus, _BLOCK)
    passes = step.passes.weights + (0 if step.frozen_base else 1)
    each = _SHARDED_4BIT_BYTES if step.four_bit else _SHARDED_BYTES
    traffic = each * work.stored_params * passes * (cards - 1) / cards / chip.link_bytes_per_s
    if step.offloads_params:
        read = _SHARDED_4BIT_BYTES * work.stored_params * step.passes.weights
        traffic = max(traffic, read / constants.pcie_bytes_per_s)
    return traffic
