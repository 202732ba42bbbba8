"""The device that trains, and what it was seen to use."""

import contextlib
import platform
import resource
import subprocess
import sys
from collections.abc import Mapping

import torch

from scrimp.core.errors import ResourceError
from scrimp.core.recipe import ComputeDtype, Recipe, WeightDtype
from scrimp.core.units import MIB

TORCH_DTYPES: dict[WeightDtype | ComputeDtype, torch.dtype] = {
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp32": torch.float32,
}

_MEMORY_QUERY = ("nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits")


def choose_device(*, threads: int) -> torch.device:
    """The first CUDA (or ROCm) card, else the CPU with that many threads. Kernels are told to repeat their bits."""
    torch.set_num_threads(threads)
    if not torch.cuda.is_available():
        return torch.device("cpu")
    # A resumed run must end with the same bytes. Kernels that have no exact form warn instead of refusing.
    torch.use_deterministic_algorithms(True, warn_only=True)
    return torch.device("cuda", 0)


def device_name(device: torch.device) -> str:
    """For people and for the record: the card's name, or the machine's architecture with its threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU {platform.machine()}, {torch.get_num_threads()} threads"


def card_ids(device: torch.device) -> tuple[str, ...]:
    """The card as its driver names it, `GPU-4b9c...`, whatever CUDA_VISIBLE_DEVICES says; () where not known."""
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None) if device.type == "cuda" else None
    if uuid is None:
        return ()
    return (str(uuid) if str(uuid).startswith(("GPU-", "MIG-")) else f"GPU-{uuid}",)


def compute_context(device: torch.device, dtype: torch.dtype) -> contextlib.AbstractContextManager[object]:
    """Matrix products in `dtype` whatever their operands are stored in; nothing to do when that is fp32."""
    if dtype == torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=dtype)


def check_supported(recipe: Recipe, device: torch.device) -> None:
    """Refuse what this device cannot do, before anything is loaded.

    Raises:
        ResourceError: bf16 without hardware for it, fp16 on a CPU, paged optimizer states without CUDA.
    """
    if recipe.optimizer.startswith("paged") and (device.type != "cuda" or torch.version.hip is not None):
        raise ResourceError(
            what=f"{recipe.optimizer} was asked for on {device_name(device)}, which has no memory that CUDA can page",
            expected="an NVIDIA card for optimizer states in paged memory",
            next_step=f"training.optimizer={recipe.optimizer.removeprefix('paged_')}",
        )
    if recipe.compute_dtype == "fp16" and device.type == "cpu":
        raise ResourceError(
            what="fp16 was asked for on a CPU, which has no fast arithmetic for it",
            expected="bf16 or fp32 on CPUs",
            next_step="training.precision=bf16",
        )
    if recipe.compute_dtype == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise ResourceError(
            what=f"{device_name(device)} has no bf16 arithmetic",
            expected="fp16 on cards before Ampere",
            next_step="training.precision=fp16",
        )


def peak_memory(device: torch.device) -> tuple[int, str]:
    """Bytes at the peak, and what they are: the allocator's count on a card, resident set size on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device), "cuda max_memory_allocated"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024, "process RSS"


def idle_memory(env: Mapping[str, str]) -> int:
    """Bytes of the first card that others use, asked before this process does; 0 where the driver does not say."""
    first = env.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"
    try:
        asked = subprocess.run(
            [*_MEMORY_QUERY, f"--id={first}"], capture_output=True, text=True, timeout=10, check=False
        )
        return int(asked.stdout.splitlines()[0]) * MIB
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError):
        return 0


def driver_memory(device: torch.device, *, idle_bytes: int) -> int | None:
    """Bytes that the driver shows as taken by this process: context, libraries, all that the allocator holds."""
    if device.type != "cuda":
        return None
    free, total = torch.cuda.mem_get_info(device)
    return max(0, total - free - idle_bytes)


def reserved_memory(device: torch.device) -> int | None:
    """Bytes that the allocator held at most, fragments included; None on a CPU."""
    return torch.cuda.max_memory_reserved(device) if device.type == "cuda" else None
