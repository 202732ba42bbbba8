"""This machine as a Device and an Offer. Pure functions of texts; `this_machine.py` is what reads them."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache

from scrimp.catalog.devices import find_device
from scrimp.catalog.table import Row, read_rows, read_text
from scrimp.catalog.this_machine import LocalReading, read_local
from scrimp.core.errors import UnknownNameError
from scrimp.core.job import LocalMachineSpec
from scrimp.core.market import Device, Offer
from scrimp.core.units import GB, MIB, TFLOPS, usd

__all__ = ["LocalReading", "cpu_device", "local_device", "local_gpus", "local_offer", "read_cpuinfo", "read_local"]

TABLE = "cpus.csv"
LOCAL = "local"
# Past this many cores memory bandwidth grows no further: two channels of DDR5-5600 are 90 GB/s by arithmetic.
BANDWIDTH_CORES = 8
_NOT_CATALOGUED = "this GPU is not in the catalogue: its rates are not known"
# The first compute capability with bf16 tensor cores and with FlashAttention 2 (Ampere).
_AMPERE = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuFacts:
    """What /proc/cpuinfo says that matters: instruction sets, and logical CPUs per core."""

    isas: frozenset[str]
    vendor: str
    model: str
    threads_per_core: float


def local_device(*, cpuinfo: str, memory_bytes: int, cores: int, gpu_query: str | None) -> Device:
    """The device that training would use here: the GPU when nvidia-smi names one, else the CPU.

    `cpuinfo` is the text of /proc/cpuinfo (empty where there is none), `memory_bytes` and `cores` what this process
    may use (logical CPUs), `gpu_query` the answer of nvidia-smi as `read_local` asks for it.
    """
    gpus = local_gpus(gpu_query or "")
    return gpus[0] if gpus else cpu_device(cpuinfo, memory_bytes=memory_bytes, cores=cores)


def local_gpus(gpu_query: str) -> tuple[Device, ...]:
    """The GPUs of this machine, found in the catalogue by name, with the memory that their driver reports.

    Of cards that differ only those like the first are given: one job trains on equal cards.
    """
    found = [_gpu(line) for line in csv.reader(gpu_query.splitlines(), skipinitialspace=True) if len(line) >= 2]
    return tuple(device for device in found if device.name == found[0].name)


def cpu_device(cpuinfo: str, *, memory_bytes: int, cores: int) -> Device:
    """The CPU as a device: peak rates per core by instruction set (`data/cpus.csv`), times real cores.

    bf16 counts as supported only with AMX or AVX-512 bf16: elsewhere its products fall back to scalar code.
    """
    facts = read_cpuinfo(cpuinfo)
    isa, row = next(pair for pair in _cpu_classes().items() if pair[0] in facts.isas or pair[0] == "other")
    real_cores = max(1.0, cores / facts.threads_per_core)
    bf16 = row.number("bf16_tflops_core")
    note = row.text("flags")
    return Device(
        name=f"CPU {cores} core{'' if cores == 1 else 's'} ({row.required('label')})",
        kind="cpu",
        vendor=facts.vendor,
        architecture=facts.model,
        device_class=f"cpu_{isa}",
        memory_bytes=memory_bytes,
        bandwidth_bytes_per_s=row.required_number("copy_gb_s_core") * GB * min(real_cores, BANDWIDTH_CORES),
        bf16_flops=None if bf16 is None else bf16 * TFLOPS * real_cores,
        fp32_flops=row.required_number("fp32_tflops_core") * TFLOPS * real_cores,
        fp8_flops=None,
        power_w=None,
        nvlink_bytes_per_s=0.0,
        supports_bf16=row.required("bf16") == "y",
        supports_flash_attention=False,
        aliases=(),
        source=f"rates per core by instruction set: {row.required('source')} (checked {row.required('checked')})",
        flags=(note,) if note else (),
    )


def read_cpuinfo(cpuinfo: str) -> CpuFacts:
    """The facts in a /proc/cpuinfo text of x86 or ARM; everything unknown for an empty one."""
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, mark, value = line.partition(":")
        if mark:
            fields.setdefault(name.strip(), value.strip())
    siblings, cores = fields.get("siblings", ""), fields.get("cpu cores", "")
    known = siblings.isdigit() and cores.isdigit() and int(cores) > 0
    return CpuFacts(
        isas=frozenset((fields.get("flags") or fields.get("Features") or "").split()),
        vendor=fields.get("vendor_id", "unknown"),
        model=fields.get("model name", "unknown"),
        threads_per_core=max(1.0, int(siblings) / int(cores)) if known else 1.0,
    )


def local_offer(device: Device, gpu_count: int, spec: LocalMachineSpec) -> Offer:
    """This machine as an offer: its own price an hour plus the electricity of `power_w`."""
    electricity = usd(spec.power_w) / Decimal(1000) * spec.electricity_usd_per_kwh
    return Offer(
        provider=LOCAL,
        tier="local",
        region=LOCAL,
        instance_type="this machine",
        gpu=device.name,
        gpu_form="",
        gpu_count=float(gpu_count),
        gpu_memory_bytes=device.memory_bytes,
        vcpus=None,
        host_memory_bytes=device.memory_bytes if device.kind == "cpu" else None,
        market="local",
        price_usd_per_hour=spec.price_usd_per_hour + electricity,
        price_source="the spec's local: price and electricity",
        price_date=None,
    )


@lru_cache(maxsize=1)
def _cpu_classes() -> Mapping[str, Row]:
    """Rows of the CPU table by instruction set, the best set first."""
    return {row.required("isa"): row for row in read_rows(read_text(TABLE), where=TABLE)}


def _gpu(fields: list[str]) -> Device:
    name, memory, power, capability = (*fields, "", "")[:4]
    memory_mib, power_w = _float(memory), _float(power)
    try:
        device = find_device(name)
    except UnknownNameError:
        device = _unknown_gpu(name, capability=_float(capability))
    # Unified-memory parts answer "[N/A]": the catalogue's figure stands then.
    return replace(
        device,
        memory_bytes=round(memory_mib * MIB) if memory_mib else device.memory_bytes,
        power_w=power_w or device.power_w,
        source=f"{device.source}; memory and power limit: nvidia-smi" if memory_mib else device.source,
    )


def _unknown_gpu(name: str, *, capability: float | None) -> Device:
    """A GPU that no row describes: what the driver says, and None for the rest."""
    modern = capability is not None and capability >= _AMPERE
    return Device(
        name=name,
        kind="gpu",
        vendor="NVIDIA",
        architecture=f"compute capability {capability}" if capability else "unknown",
        device_class="unknown",
        memory_bytes=0,
        bandwidth_bytes_per_s=None,
        bf16_flops=None,
        fp32_flops=None,
        fp8_flops=None,
        power_w=None,
        nvlink_bytes_per_s=0.0,
        supports_bf16=modern,
        supports_flash_attention=modern,
        aliases=(),
        source="nvidia-smi",
        flags=(_NOT_CATALOGUED,),
    )


def _float(text: str) -> float | None:
    """A number of nvidia-smi, None for its `[N/A]` and `[Not Supported]`."""
    try:
        return float(text)
    except ValueError:
        return None
