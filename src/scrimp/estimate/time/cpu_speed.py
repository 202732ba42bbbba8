"""Seconds of one micro-step on a CPU, where matrix products are only part of the work.

    step = launch x L x passes
         + T x ( (W + A / k) / (peak x products) + L x (h + i) x passes x element_bytes / bandwidth )

T tokens, W and A FLOPs of a token in products and attention, L layers, h hidden and i intermediate width. Peak and
bandwidth are those of the whole machine. The last term stands for norms, rotary embedding, SwiGLU and the casts in
front of adapters: on small models they outweigh the products.
"""

from dataclasses import dataclass

from scrimp.core.market import Device
from scrimp.core.recipe import ComputeDtype
from scrimp.estimate.time.arithmetic import Arithmetic
from scrimp.estimate.time.roofline import MicroStep


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuConstants:
    """Fitted on 20 passes of this project's trainer on a 2-vCPU machine (EPYC, Zen 4, AVX-512 bf16), one thread,
    forward alone and both ways: models of 30 layers x 576, 8 x 1536 and 3 x 64, rows of 60 to 500 tokens, 120 to 2,000
    tokens a step, bf16 and fp32, LoRA and full. All lie within 0.89 to 1.11 (calibration/measured_process.csv).

    products_*       products over the catalogue's peak, which is that of large square matrices, in 16 bit and in fp32
    attention        rate of attention against that of the products
    element_bytes    traffic per hidden and intermediate value, layer and pass
    launch_s         per layer and pass, whatever the tokens and the cores
    several_cores    what all cores together reach of so many times one: two threads on that machine did 1.2 times the
                     work of one in whole runs
    low, high        80% interval of measured over forecast: other machines were not measured
    """

    products_16bit: float = 1.10
    products_fp32: float = 1.04
    attention: float = 0.142
    element_bytes: float = 155.0
    launch_s: float = 0.0026
    several_cores: float = 0.60
    low: float = 0.6
    high: float = 1.7


CONSTANTS = CpuConstants()


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuChip:
    """A CPU machine: its peak in the compute dtype times what products reach of it, and its bandwidth."""

    rate_flops: float
    bandwidth_bytes_per_s: float


def cpu_chip_of(device: Device, compute: ComputeDtype, *, constants: CpuConstants = CONSTANTS) -> CpuChip:
    """The machine for products in that dtype; 16-bit products without hardware run at the fp32 rate at best.

    Raises:
        ValueError: the device has no established rate at all.
    """
    if not device.fp32_flops or not device.bandwidth_bytes_per_s:
        raise ValueError(f"{device.name}: neither speed nor bandwidth is established")
    rate = device.fp32_flops * constants.products_fp32
    if compute != "fp32" and device.bf16_flops:
        rate = max(rate, device.bf16_flops * constants.products_16bit)
    share = constants.several_cores
    return CpuChip(rate_flops=rate * share, bandwidth_bytes_per_s=device.bandwidth_bytes_per_s * share)


def cpu_micro_step_s(
    work: Arithmetic, step: MicroStep, chip: CpuChip, *, widths: float, constants: CpuConstants = CONSTANTS
) -> float:
    """Seconds of one micro-step; `widths` is hidden plus intermediate width."""
    weights = 2 * step.passes.products * (work.linear_params * step.tokens + work.head_params * step.scored_tokens)
    attention = step.passes.attention * 2 * work.layers * work.attention_width * step.context_tokens * step.tokens
    products_s = (weights + attention / constants.attention) / chip.rate_flops
    traffic = work.layers * widths * step.passes.weights * constants.element_bytes * step.tokens
    return constants.launch_s * work.layers * step.passes.launches + products_s + traffic / chip.bandwidth_bytes_per_s
