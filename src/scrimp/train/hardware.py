"""The device that trains, and what it was seen to use."""

import contextlib
import platform
import resource
import sys

import torch

from scrimp.core.errors import ResourceError
from scrimp.core.recipe import ComputeDtype, Recipe, WeightDtype

TORCH_DTYPES: dict[WeightDtype | ComputeDtype, torch.dtype] = {
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp32": torch.float32,
}


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


def compute_context(device: torch.device, dtype: torch.dtype) -> contextlib.AbstractContextManager[object]:
    """Matrix products in `dtype` whatever their operands are stored in; nothing to do when that is fp32."""
    if dtype == torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=dtype)


def check_supported(recipe: Recipe, device: torch.device) -> None:
    """Refuse what this device cannot do, before anything is loaded.

    Raises:
        ResourceError: bf16 without hardware for it, fp16 on a CPU.
    """
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


def reserved_memory(device: torch.device) -> int | None:
    """Bytes that the allocator held at most, fragments included; None on a CPU."""
    return torch.cuda.max_memory_reserved(device) if device.type == "cuda" else None
