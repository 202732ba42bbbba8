"""Settings of the training process that must be made before torch is imported. Standard library alone."""

import os
from collections.abc import Mapping, MutableMapping

from scrimp.core.recipe import ResolvedJob

_ALLOCATOR_NAMES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")

# Those of two or three micro-batches: all layers of one share them, and the next one has other lengths anyway.
_KERNELS_KEPT = 64

# Rounds that an OpenMP thread waits for its next piece of work before it sleeps.
_SPIN_ROUNDS = 3000


def settle_process(job: ResolvedJob, environ: MutableMapping[str, str]) -> None:
    """Fill in, where `environ` (the process's own) does not say otherwise.

    OpenMP threads that wait shall sleep, but not at once: operators of a small model follow each other faster than a
    virtual machine wakes a thread. A step on a 2-vCPU Xeon took 2.1 s where threads slept at once (as long as with one
    thread), 1.6 s with 3,000 rounds, 1.4 s with 30,000; beside a process that keeps one core busy 2.3, 2.8 and 8.0 s.

    cuBLAS needs a fixed workspace to give the same bits twice. CUDA's allocator shall grow its segments: steps differ
    in length, and fixed segments of all sizes hold memory that none of them can use (both names: torch renamed it in
    2.9).

    oneDNN keeps the kernels that it makes, 1,024 of them by default, each with its scratch memory: for rows of all
    lengths 19 MiB a micro-batch of a 30-layer model, up to a gigabyte, and in between the activations, so that the heap
    cannot be used again around them.
    """
    # Whoever sets a policy means it.
    if environ.setdefault("OMP_WAIT_POLICY", "PASSIVE") == "PASSIVE":
        environ.setdefault("GOMP_SPINCOUNT", str(_SPIN_ROUNDS))
    environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    if not environ.keys() & set(_ALLOCATOR_NAMES):
        environ.update(dict.fromkeys(_ALLOCATOR_NAMES, "expandable_segments:True"))
    environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(_KERNELS_KEPT))
    if job.threads is not None:
        environ["OMP_NUM_THREADS"] = str(job.threads)


def thread_count(job: ResolvedJob, env: Mapping[str, str]) -> int:
    """The job's own number, else OMP_NUM_THREADS, else the physical cores that this process may use."""
    if job.threads is not None:
        return job.threads
    asked = env.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return usable_cores()


def usable_cores() -> int:
    """Physical cores, at most as many as this process is allowed to run on."""
    import psutil

    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(psutil.cpu_count(logical=False) or allowed, allowed))
