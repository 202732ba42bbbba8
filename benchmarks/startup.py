"""CPU time and modules of `scrimp --help`, beyond what a bare interpreter takes.

    python benchmarks/startup.py [--runs 11]

Interleaved runs of the command and of an interpreter that does nothing; medians. Bound: 0.2 s of CPU in all, no heavy
module loaded, 160 modules at most.
"""

import argparse
import resource
import statistics
import subprocess
import sys

BOUND_S = 0.2
MAX_MODULES = 160
HELP = "import sys; sys.argv = ['scrimp', '--help']; from scrimp.cli.main import main; main()"
MODULES = HELP.replace("main()", "") + (
    "\ntry: main()\nexcept SystemExit: pass\nsys.stdout.write('\\n#modules ' + ' '.join(sys.modules))"
)
HEAVY = {"torch", "transformers", "peft", "numpy", "pydantic", "rich", "sqlalchemy", "yaml", "jinja2", "tokenizers"}


def cpu_s(code: str) -> float:
    """User and system seconds of one interpreter that runs `code`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Measure, print, and say by the exit code whether the bounds hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=11)
    runs = parser.parse_args().runs
    pairs = [(cpu_s("pass"), cpu_s(HELP)) for _ in range(runs)]
    bare = statistics.median(first for first, _ in pairs)
    whole = statistics.median(second for _, second in pairs)
    out = subprocess.run([sys.executable, "-c", MODULES], check=True, capture_output=True, text=True).stdout
    modules = out.split("#modules ")[1].split()
    heavy = sorted({name.split(".")[0] for name in modules} & HEAVY)
    print(f"scrimp --help: {whole:.3f} s CPU (bare interpreter {bare:.3f} s), bound {BOUND_S} s; median of {runs}")
    print(f"modules: {len(modules)}, bound {MAX_MODULES}; heavy: {', '.join(heavy) or 'none'}")
    return int(whole > BOUND_S or len(modules) > MAX_MODULES or bool(heavy))


if __name__ == "__main__":
    sys.exit(main())
