"""Python, processor, memory and GPU."""

from collections.abc import Iterator

from scrimp.catalog.local import LocalReading, cpu_device, local_gpus
from scrimp.core.units import GIB, format_bytes
from scrimp.workflows.checkup.finding import Check, Value
from scrimp.workflows.checkup.probes import Probes

LEAST_PYTHON = (3, 11)
# Python, torch and a small model's weights, gradients and activations pass this; the plan says what a job needs.
_SMALL_MEMORY_BYTES = 2 * GIB


def check_python(version: tuple[int, int, int]) -> Check:
    """The interpreter against the oldest that scrimp runs on."""
    text = ".".join(map(str, version))
    least = ".".join(map(str, LEAST_PYTHON))
    good = version >= LEAST_PYTHON
    return Check(
        group="machine",
        name="python",
        status="ok" if good else "problem",
        found=text if good else f"{text}; scrimp needs {least} or newer",
        next_step="" if good else f"python{least} -m venv .venv && .venv/bin/pip install scrimp",
        values={"version": text},
    )


def check_machine(reading: LocalReading) -> Iterator[Check]:
    """Processor class and memory, as far as this process may use them."""
    cpu = cpu_device(reading.cpuinfo, memory_bytes=reading.memory_bytes, cores=reading.cores)
    model = "" if cpu.architecture == "unknown" else f", {cpu.architecture}"
    bf16 = "fast bf16" if cpu.supports_bf16 else "no fast bf16: trains in fp32"
    yield Check(
        group="machine",
        name="cpu",
        status="ok",
        found=f"{cpu.name}{model}; {bf16}",
        values={"device": cpu.name, "model": cpu.architecture, "cores": reading.cores, "bf16": cpu.supports_bf16},
    )
    small = reading.memory_bytes < _SMALL_MEMORY_BYTES
    yield Check(
        group="machine",
        name="memory",
        status="note" if small else "ok",
        found=f"{format_bytes(reading.memory_bytes)} for this process" + ("; little for training" if small else ""),
        next_step="scrimp plan SPEC" if small else "",
        values={"memory_bytes": reading.memory_bytes},
    )


def check_gpu(reading: LocalReading, *, probes: Probes) -> Check:
    """The GPUs that nvidia-smi names, and whether the installed torch could use them."""
    gpus = local_gpus(reading.gpu_query or "")
    if not gpus:
        return Check(
            group="machine",
            name="gpu",
            status="note",
            found="none that nvidia-smi finds; training here uses the CPU",
            next_step="scrimp offers",
            values={"gpu": None, "count": 0},
        )
    gpu = gpus[0]
    values: dict[str, Value] = {"gpu": gpu.name, "count": len(gpus), "memory_bytes": gpu.memory_bytes}
    memory = format_bytes(gpu.memory_bytes) if gpu.memory_bytes else "unknown memory"
    found = f"{len(gpus)} x {gpu.name}, {memory}{' each' if len(gpus) > 1 else ''}"
    torch = probes.package_version("torch") or ""
    if torch.endswith("+cpu"):
        return Check(
            group="machine",
            name="gpu",
            status="problem",
            found=f"{found}; torch {torch} is built for the CPU alone and would leave it idle",
            next_step="pip install --force-reinstall torch",
            values=values,
        )
    unknown = gpu.device_class == "unknown"
    # The flags of a card in the catalogue are about its row, and stand on its page.
    doubts = [*(gpu.flags if unknown else ()), *(() if gpu.supports_bf16 else ("no bf16",))]
    return Check(
        group="machine",
        name="gpu",
        status="note" if unknown else "ok",
        found="; ".join([found, *doubts]),
        next_step="scrimp gpus" if unknown else "",
        values=values,
    )
