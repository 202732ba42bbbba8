"""Run or resume with someone looking on: the plan in a line, the live meter, the summary."""

from collections.abc import Callable
from pathlib import Path

from scrimp.cli.live import RunDisplay
from scrimp.cli.output import print_json, print_note, print_renderables
from scrimp.cli.summary import summary_renderables
from scrimp.core.plan import Plan
from scrimp.core.run import RunEvent, RunSummary
from scrimp.core.units import format_bytes, format_duration, format_usd
from scrimp.spec.codec import dump
from scrimp.workflows.execute import Watch
from scrimp.workflows.world import World, real_world


class _Onlooker:
    """Opens the display when the plan is known, for only then the number of steps is."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._display: RunDisplay | None = None

    def on_plan(self, plan: Plan, folder: Path) -> None:
        if not self._quiet:
            print_note(plan_line(plan))
            print_note(f"run folder {folder}")
        self._display = RunDisplay(steps=plan.steps.steps, quiet=self._quiet).__enter__()

    def on_event(self, event: RunEvent) -> None:
        if self._display is not None:
            self._display(event)

    def close(self) -> None:
        if self._display is not None:
            self._display.__exit__(None, None, None)


def attended(start: Callable[[World, Watch], RunSummary], *, as_json: bool) -> None:
    """Call `start` with the real world and a display, and print what it returns."""
    onlooker = _Onlooker(quiet=as_json)
    try:
        summary = start(real_world(note=print_note), Watch(on_plan=onlooker.on_plan, on_event=onlooker.on_event))
    finally:
        onlooker.close()
    if as_json:
        print_json(dump(summary))
    else:
        print_renderables(*summary_renderables(summary))


def plan_line(plan: Plan) -> str:
    """`lora on CPU 2 cores: 40 steps, about 2.1 min (1.5-3.0), $0.0042 (0.0030-0.0061), 2.3 GiB`."""
    chosen = plan.chosen
    total = chosen.time.total_s
    cost = "unknown cost"
    if chosen.money is not None:
        money = chosen.money.total_usd
        cost = f"{format_usd(money.value)} ({format_usd(money.low)} to {format_usd(money.high)})"
    return (
        f"plan: {chosen.recipe.method.name} on {chosen.device.name}: {plan.steps.steps} steps, "
        f"{format_duration(total.value)} ({format_duration(total.low)} to {format_duration(total.high)}), "
        f"{cost}, {format_bytes(chosen.memory.device_bytes.value)} of memory"
    )
