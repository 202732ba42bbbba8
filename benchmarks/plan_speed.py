"""CPU time and memory of `scrimp plan` over the whole price snapshot, all methods, as a user pays for it.

The command runs as a process of its own. From its CPU time (user + system) that of a bare interpreter is taken off;
both are medians of several interleaved runs. Memory is the largest resident set of any. Exit code 1 when a bound is
broken.

    python benchmarks/plan_speed.py [RUNS]
"""

import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CPU_BOUND_S = 1.0
MEMORY_BOUND_BYTES = 200 * 10**6
SPECS = ("examples/qwen3-8b.yaml", "examples/llama-3.1-70b.yaml")
# No limits, so that nothing is cut short; every market, this machine too.
WIDEST = ("method=auto", "market.where=any", "limits.budget=100000", "limits.deadline=100d")


def measure(*command: str) -> tuple[float, int]:
    """(CPU seconds, peak resident bytes) of one process and its children."""
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    # Linux gives kilobytes, macOS bytes.
    scale = 1 if sys.platform == "darwin" else 1024
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * scale


def main(runs: int) -> int:
    """Print each figure beside its bound."""
    from scrimp import methods
    from scrimp.catalog.offers import offers

    print(f"{len(offers())} offers, methods {', '.join(methods.names())}; medians of {runs} runs")
    broken = False
    for spec in SPECS:
        plan = (sys.executable, "-m", "scrimp", "plan", spec, *WIDEST)
        measure(*plan)  # once to write the byte code
        bare: list[float] = []
        whole: list[float] = []
        peak = 0
        for _ in range(runs):
            bare.append(measure(sys.executable, "-c", "pass")[0])
            cpu_s, resident = measure(*plan)
            whole.append(cpu_s)
            peak = max(peak, resident)
        cpu_s = statistics.median(whole) - statistics.median(bare)
        broken |= cpu_s > CPU_BOUND_S or peak > MEMORY_BOUND_BYTES
        print(
            f"{spec}: CPU {cpu_s:.2f} s beyond the interpreter's {statistics.median(bare):.2f} s "
            f"(bound {CPU_BOUND_S:.1f} s; runs {min(whole):.2f}-{max(whole):.2f} s), "
            f"memory {peak / 1e6:.0f} MB (bound {MEMORY_BOUND_BYTES / 1e6:.0f} MB)"
        )
    print("a bound is broken" if broken else "within the bounds")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 7))
