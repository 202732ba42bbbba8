"""Run or resume with someone looking on: the plan in a line, the live meter, the summary."""

from collections.abc import Callable
from pathlib import Path

from scrimp.cli.live import RunDisplay
from scrimp.cli.output import print_json, print_note, print_renderables
from scrimp.cli.summary import summary_renderables
from scrimp.core.plan import Candidate, Plan
from scrimp.core.probe import PROBE_STEPS, Probed
from scrimp.core.run import RunEvent, RunSummary
from scrimp.core.units import format_bytes, format_duration, format_usd, plural
from scrimp.spec.codec import dump
from scrimp.workflows.open_run import Watch
from scrimp.workflows.world import World, real_world


class Onlooker:
    """Opens the display when the plan is known, for only then the number of steps is."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._display: RunDisplay | None = None

    def on_plan(self, plan: Plan, folder: Path) -> None:
        """Say what is about to run, and open the display."""
        if not self._quiet:
            print_note(plan_line(plan))
            print_note(f"run folder {folder}")
        self._display = RunDisplay(steps=plan.steps.steps, quiet=self._quiet).__enter__()

    def on_plan_alone(self, plan: Plan, _folder: Path) -> None:
        """Of a run whose folder nobody will look for."""
        if not self._quiet:
            print_note(plan_line(plan))
        self._display = RunDisplay(steps=PROBE_STEPS, quiet=self._quiet).__enter__()

    def on_probe(self, found: Probed) -> None:
        """What a probe makes of the plan."""
        if not self._quiet and self._display is not None:
            self._display.note(
                f"probe: now {forecast_words(found.corrected)}; the plan said {forecast_words(found.plan.chosen)}"
            )

    def on_event(self, event: RunEvent) -> None:
        """Show an event."""
        if self._display is not None:
            self._display(event)

    def close(self) -> None:
        """Leave the last state of the display standing."""
        if self._display is not None:
            self._display.__exit__(None, None, None)


def attended(start: Callable[[World, Watch], RunSummary], *, as_json: bool) -> None:
    """Call `start` with the real world and a display, and print what it returns."""
    onlooker = Onlooker(quiet=as_json)
    try:
        summary = start(
            real_world(note=print_note),
            Watch(on_plan=onlooker.on_plan, on_event=onlooker.on_event, on_probe=onlooker.on_probe),
        )
    finally:
        onlooker.close()
    if as_json:
        print_json(dump(summary))
    else:
        print_renderables(*summary_renderables(summary))


def plan_line(plan: Plan) -> str:
    """`plan: lora on CPU 2 cores: 40 steps, 2.1 min (1.5 min to 3.0 min), $0.0042 (...), 2.3 GiB of memory`."""
    chosen = plan.chosen
    steps = f"{plan.steps.steps} {plural(plan.steps.steps, 'step')}"
    head = f"plan: {chosen.recipe.method.name} on {chosen.device.name}: {steps}"
    return f"{head}, {forecast_words(chosen)} of memory"


def forecast_words(chosen: Candidate) -> str:
    """Time, money and memory of a candidate, the first two with their ranges."""
    total = chosen.time.total_s
    cost = "unknown cost"
    if chosen.money is not None:
        money = chosen.money.total_usd
        cost = f"{format_usd(money.value)} ({format_usd(money.low)} to {format_usd(money.high)})"
    return (
        f"{format_duration(total.value)} ({format_duration(total.low)} to {format_duration(total.high)}), {cost}, "
        f"{format_bytes(chosen.memory.device_bytes.value)}"
    )
