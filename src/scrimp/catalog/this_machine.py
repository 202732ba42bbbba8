"""The thin edge that reads this machine: /proc, cgroup limits, nvidia-smi; `local.py` makes sense of what it reads."""

import os
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

# What nvidia-smi is asked for, in the order in which `local.local_gpus` reads its lines.
GPU_QUERY_FIELDS = ("name", "memory.total", "power.limit", "compute_cap")
# nvidia-smi can hang on a sick driver; planning must not.
_SMI_TIMEOUT_S = 10
# cgroup v1 writes "no limit" as a number just below 2^63.
_NO_LIMIT_BYTES = 2**60

Run = Callable[[list[str]], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalReading:
    """The arguments of `local_device`, as read here."""

    cpuinfo: str
    memory_bytes: int
    cores: int
    gpu_query: str | None


def read_local(*, root: Path = Path("/"), run: Run | None = None) -> LocalReading:
    """What this process may use of this machine. `root` and `run` are the world: a test hands in its own.

    Cores are the smallest of the machine's, the affinity mask's and the cgroup quota; memory the smaller of the
    machine's and the cgroup limit. Without /proc (macOS) the instruction sets stay unknown.
    """
    groups = _cgroup_folders(root)
    return LocalReading(
        cpuinfo=_text(root / "proc/cpuinfo"),
        memory_bytes=min((_machine_memory_bytes(root), *_memory_limits(root, groups))),
        cores=max(1, min((_machine_cores(), *_core_quotas(root, groups)))),
        gpu_query=_gpu_query(run or run_command),
    )


def run_command(command: list[str]) -> str | None:
    """Standard output of a command, None when it is not there, fails or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SMI_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _gpu_query(run: Run) -> str | None:
    """Old drivers refuse the whole query when they do not know compute_cap, the last field: ask again without it."""
    for fields in (GPU_QUERY_FIELDS, GPU_QUERY_FIELDS[:-1]):
        answer = run(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"])
        if answer:
            return answer
    return None


def _machine_memory_bytes(root: Path) -> int:
    for line in _text(root / "proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _machine_cores() -> int:
    # sched_getaffinity is not there on macOS and Windows.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cgroup_folders(root: Path) -> tuple[str, ...]:
    """This process's groups and all above them: a limit of any of them binds."""
    found = {""}
    for line in _text(root / "proc/self/cgroup").splitlines():
        path = Path(line.rpartition(":")[2].lstrip("/"))
        found |= {str(parent) for parent in (path, *path.parents) if str(parent) != "."}
    return tuple(sorted(found))


def _memory_limits(root: Path, groups: Iterable[str]) -> list[int]:
    base = root / "sys/fs/cgroup"
    texts = [_text(base / group / "memory.max") for group in groups]
    texts += [_text(base / "memory" / group / "memory.limit_in_bytes") for group in groups]
    return [int(text) for text in texts if text.strip().isdigit() and int(text) < _NO_LIMIT_BYTES]


def _core_quotas(root: Path, groups: Iterable[str]) -> list[int]:
    """Whole cores: 1.5 cores of quota run one thread well and starve two."""
    base = root / "sys/fs/cgroup"
    pairs = [_text(base / group / "cpu.max").split() for group in groups]
    for group in groups:
        folder = base / "cpu" / group
        pairs.append([_text(folder / "cpu.cfs_quota_us").strip(), _text(folder / "cpu.cfs_period_us").strip()])
    return [int(p[0]) // int(p[1]) for p in pairs if len(p) == 2 and p[0].isdigit() and p[1].isdigit() and int(p[1])]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
