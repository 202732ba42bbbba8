"""Seconds of one micro-step on a CPU, where matrix products are only part of the work.

    step = launch x L x passes
         + T x ( (W + A / k) / (peak x products) + L x (h + i) x passes x element_bytes / bandwidth )

T tokens, W and A FLOPs of a token in products and attention, L layers, h hidden and i intermediate width. Peak and
bandwidth are those of the whole machine. The last term stands for norms, rotary embedding, SwiGLU and the casts in
front of adapters: on small models they outweigh the products. Constants differ by instruction set, as measured on one
machine each (calibration/measured_process.csv).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from scrimp.core.market import Device
from scrimp.core.recipe import ComputeDtype
from scrimp.estimate.time.arithmetic import Arithmetic
from scrimp.estimate.time.roofline import MicroStep


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuConstants:
    """What one class of CPU reaches of the catalogue's rates.

    products_*       products over the catalogue's peak, which is that of large square matrices, in 16 bit and in fp32
    attention        rate of attention against that of the products
    element_bytes    traffic per hidden and intermediate value, layer and pass, where products are in 16 bit
    element_fp32     the same in fp32, without casts
    backward         what a backward pass moves of so many times a forward pass
    launch_s         per layer and pass, whatever the tokens and the cores: with rows of all lengths also the making of
                     kernels for this one
    decode_launch_s  per layer of a token that is generated alone
    several_cores    what all cores together reach of so many times one
    low, high        80% interval of measured over forecast
    basis            what the interval stands on
    """

    products_16bit: float
    products_fp32: float
    attention: float
    element_bytes: float
    element_fp32: float
    backward: float
    launch_s: float
    decode_launch_s: float
    several_cores: float
    low: float
    high: float
    basis: str


# 20 passes on a 2-vCPU EPYC (Zen 4), one thread, forward alone and both ways: models of 30 layers x 576, 8 x 1536 and
# 3 x 64, rows of 60 to 500 tokens, 120 to 2,000 tokens a step, bf16 and fp32, LoRA and full: all within 0.89 to 1.11.
# Two threads did 1.2 times the work of one, while they slept between operators (train/process.py): now it may be more.
# 64 tokens of SmolLM2 took 2.0 to 2.3 s, of which its weights alone take 0.6 s.
_AVX512 = CpuConstants(
    products_16bit=1.10,
    products_fp32=1.04,
    attention=0.142,
    element_bytes=155.0,
    element_fp32=155.0,
    backward=1.0,
    launch_s=0.0026,
    decode_launch_s=0.001,
    several_cores=0.60,
    low=0.6,
    high=1.7,
    basis="CPU model, measured on one machine",
)
# 12 means of a quiet 2-vCPU Xeon (steps and evaluations of whole runs on SmolLM2-135M, rows of 55 to 250 tokens): LoRA
# in bf16 with 750 and 1,500 tokens a step, checkpointed, in fp32 and with one thread, and full fine-tuning. Steps took
# 0.95 to 1.05 of the forecast, evaluations 0.93 to 1.05 and without adapters 0.87. It is one shape and one machine, so
# the interval is wider than they are.
_AMX = CpuConstants(
    products_16bit=0.755,
    products_fp32=1.45,
    attention=0.142,
    element_bytes=120.0,
    element_fp32=65.0,
    backward=2.0,
    launch_s=0.0068,
    decode_launch_s=0.0028,
    several_cores=0.68,
    low=0.80,
    high=1.35,
    basis="CPU model, measured on one machine of this class",
)

# A class that nobody measured is taken for the one that was measured on three shapes.
OTHER_CPU = replace(_AVX512, basis="CPU model; no CPU of this class was measured")
MEASURED_CPUS: Mapping[str, CpuConstants] = {"cpu_avx512_bf16": _AVX512, "cpu_amx_bf16": _AMX}


def cpu_constants(device_class: str) -> CpuConstants:
    """Those of a class of CPU, `cpu_amx_bf16`."""
    return MEASURED_CPUS.get(device_class, OTHER_CPU)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuChip:
    """A CPU machine: its peak in the compute dtype times what products reach of it, and its bandwidth."""

    rate_flops: float
    bandwidth_bytes_per_s: float
    element_bytes: float
    constants: CpuConstants


def cpu_chip_of(device: Device, compute: ComputeDtype, *, constants: CpuConstants | None = None) -> CpuChip:
    """The machine for products in that dtype; 16-bit products without hardware run at the fp32 rate at best.

    `constants` are those of the device's class unless given.

    Raises:
        ValueError: the device has no established rate at all.
    """
    if not device.fp32_flops or not device.bandwidth_bytes_per_s:
        raise ValueError(f"{device.name}: neither speed nor bandwidth is established")
    constants = constants or cpu_constants(device.device_class)
    rate = device.fp32_flops * constants.products_fp32
    if compute != "fp32" and device.bf16_flops:
        rate = max(rate, device.bf16_flops * constants.products_16bit)
    share = constants.several_cores
    return CpuChip(
        rate_flops=rate * share,
        bandwidth_bytes_per_s=device.bandwidth_bytes_per_s * share,
        element_bytes=constants.element_fp32 if compute == "fp32" else constants.element_bytes,
        constants=constants,
    )


def cpu_micro_step_s(work: Arithmetic, step: MicroStep, chip: CpuChip, *, widths: float) -> float:
    """Seconds of one micro-step; `widths` is hidden plus intermediate width."""
    constants = chip.constants
    weights = 2 * step.passes.products * (work.linear_params * step.tokens + work.head_params * step.scored_tokens)
    attention = step.passes.attention * 2 * work.layers * work.attention_width * step.context_tokens * step.tokens
    products_s = (weights + attention / constants.attention) / chip.rate_flops
    moves = step.passes.weights + (constants.backward - 1 if step.passes.weights > 1 else 0)
    traffic = work.layers * widths * moves * chip.element_bytes * step.tokens
    return constants.launch_s * work.layers * step.passes.launches + products_s + traffic / chip.bandwidth_bytes_per_s
