"""Forecasts for the CPU of this machine against what its runs measured: the plan's, and after the probe.

    python benchmarks/cpu_forecast.py [--only quickstart|longer|checkpointing|fp32|full] [--steps 32]

Runs examples/quickstart.yaml as it stands and variants of it, each as `scrimp run` runs it, and prints memory
(the process's resident set), seconds of a step and of the whole job beside both forecasts. `cores busy` are CPU seconds
of the steps over their wall-clock seconds: few of them mean that other work was on the machine.

Bound: every forecast after the probe within 10% of what was measured.
"""

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from scrimp.core.probe import PROBED
from scrimp.core.run import Graded, RunSummary
from scrimp.core.units import format_quantity
from scrimp.spec.events import EVENTS_FILE, read_events
from scrimp.workflows.open_run import Watch
from scrimp.workflows.run import run
from scrimp.workflows.world import real_world

BOUND = 0.10
SPEC = Path(__file__).parents[1] / "examples" / "quickstart.yaml"
VARIANTS: dict[str, tuple[str, ...]] = {
    "quickstart": (),
    "longer": ("training.batch_rows=16",),
    "checkpointing": ("training.checkpointing=full",),
    "fp32": ("training.precision=fp32",),
    "full": ("method=full", "method.options={}", "training.learning_rate=1e-5"),
}
QUANTITIES = ("peak_bytes", "step_s", "total_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run: graded lines of the plan and of the probe by quantity, and CPU over wall seconds of its steps."""

    name: str
    plan: dict[str, Graded]
    probe: dict[str, Graded]
    cores: float


def main() -> int:
    """Run, print, and judge the bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=tuple(VARIANTS), action="append")
    parser.add_argument(
        "--steps", type=int, help="of all jobs; else 32 of the variants, and the quickstart keeps its own"
    )
    parser.add_argument("--rows", type=int, help="at most so many rows of the data: less goes to evaluations")
    options = parser.parse_args()
    worst = 0.0
    print(f"{'job':14}{'':12}{'measured':>10}{'plan':>10}{'error':>8}{'probed':>10}{'error':>8}")
    for name in options.only or VARIANTS:
        found = measure(name, steps=options.steps, rows=options.rows)
        for quantity in QUANTITIES:
            print(line(found, quantity), flush=True)
        worst = max([worst, *(abs(_error(item)) for item in found.probe.values() if item.quantity in QUANTITIES)])
    print(f"largest error after the probe {worst:.1%}, bound {BOUND:.0%}")
    return int(worst > BOUND)


def measure(name: str, *, steps: int | None, rows: int | None) -> Measured:
    """Run one variant in a folder of its own."""
    with tempfile.TemporaryDirectory() as aside:
        world = replace(
            real_world(note=lambda text: None), env={**os.environ, "SCRIMP_LEDGER": f"sqlite:///{aside}/l.db"}
        )
        overrides = [f"output_dir={aside}/runs", *VARIANTS[name]]
        if steps or name != "quickstart":
            overrides += [f"training.max_steps={steps or 32}", "training.probe=on"]
        overrides += [f"data.max_rows={rows}"] if rows else []
        watch = Watch(on_plan=lambda *_: None, on_event=lambda _: None)
        summary = run(SPEC, overrides=overrides, world=world, watch=watch)
        return Measured(name=name, **_lines(summary), cores=_cores(Path(summary.record.folder)))


def line(found: Measured, quantity: str) -> str:
    """Measured, the plan's forecast and the probe's with their errors."""
    plan, probe = found.plan[quantity], found.probe[quantity]
    shown = [format_quantity(quantity, value) for value in (plan.measured, plan.forecast, probe.forecast)]
    note = f"   {found.cores:.2f} cores busy" if quantity == "step_s" else ""
    return (
        f"{found.name:14}{quantity:12}{shown[0]:>10}{shown[1]:>10}{_error(plan):>+8.1%}{shown[2]:>10}"
        f"{_error(probe):>+8.1%}{note}"
    )


def _error(item: Graded) -> float:
    return item.forecast / item.measured - 1


def _lines(summary: RunSummary) -> dict[str, dict[str, Graded]]:
    graded = summary.record.graded
    return {
        "plan": {item.quantity: item for item in graded if not item.quantity.startswith(PROBED)},
        "probe": {
            item.quantity.removeprefix(PROBED): replace(item, quantity=item.quantity.removeprefix(PROBED))
            for item in graded
            if item.quantity.startswith(PROBED)
        },
    }


def _cores(folder: Path) -> float:
    steps = [event.values for event in read_events(folder / EVENTS_FILE) if event.kind == "step"]
    return sum(float(item["cpu_s"]) for item in steps) / sum(float(item["step_s"]) for item in steps)  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.exit(main())
