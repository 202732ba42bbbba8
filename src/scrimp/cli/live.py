"""The live meter of a run: events in, a progress line on stderr out."""

from collections.abc import Callable
from decimal import Decimal
from types import TracebackType
from typing import TYPE_CHECKING, Any

from scrimp.cli.output import print_note, stderr_console
from scrimp.core.run import RunEvent
from scrimp.core.units import format_bytes, format_count, format_count_of, format_duration, format_usd, usd

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# Without a terminal a line is printed at these shares of the steps, so that logs stay short.
_PLAIN_SHARES = 10


class RunDisplay:
    """Shows a run while it runs: a bar with loss, tokens/s, dollars spent and projected.

    On a terminal the bar redraws in place; elsewhere plain lines are printed now and then. Use as a context manager
    and hand it every event.
    """

    def __init__(self, *, steps: int, quiet: bool) -> None:
        """`steps` is the planned number; `quiet` shows nothing at all (under --json)."""
        self._steps = steps
        self._quiet = quiet
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._last_share = -1
        self._lines: dict[str, Callable[[RunEvent], str | None]] = {
            "loaded": _loaded_line,
            "probed": _probed_line,
            "replanned": _replanned_line,
            "resumed": lambda event: f"resumed from {event.values['checkpoint']}",
            "skipped_checkpoint": lambda event: f"skipped {event.values['checkpoint']}: {event.values['reason']}",
            "evaluated": _evaluated_line,
            "interrupted": lambda event: f"stopped by {event.values['signal']} {_kept(event)}",
            "stopped_at_cap": _cap_line,
            "failed": lambda event: None,
            "note": lambda event: str(event.values.get("text", "")),
        }

    def __enter__(self) -> "RunDisplay":
        """Start the bar where there is a terminal."""
        console = stderr_console()
        if not self._quiet and console.is_terminal:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),
                MofNCompleteColumn(),
                TextColumn("{task.fields[meter]}"),
                TimeRemainingColumn(compact=True),
                console=console,
                transient=False,
            )
            self._progress.start()
            self._task = self._progress.add_task("load", total=self._steps, meter="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the last state of the bar standing."""
        if self._progress is not None:
            self._progress.stop()

    def __call__(self, event: RunEvent) -> None:
        """Show one event."""
        if self._quiet:
            return
        if event.kind == "step":
            self._step(event)
        elif event.kind in self._lines:
            line = self._lines[event.kind](event)
            if line:
                self._print(line)

    def _step(self, event: RunEvent) -> None:
        meter = step_meter(event, steps=self._steps)
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, description="train", completed=event.step, meter=meter)
            return
        share = event.step * _PLAIN_SHARES // max(1, self._steps)
        if share != self._last_share:
            self._last_share = share
            print_note(f"step {event.step}/{self._steps}  {meter}")

    def note(self, line: str) -> None:
        """Print a line above the bar."""
        self._print(line)

    def _print(self, line: str) -> None:
        if self._progress is not None:
            self._progress.console.print(line, markup=False)
        else:
            print_note(line)


def step_meter(event: RunEvent, *, steps: int) -> str:
    """`loss 3.912  412 tok/s  $0.0021 of $0.0063`: spent so far and projected at the end."""
    values = event.values
    parts = [f"loss {_number(values, 'loss'):.3f}", f"{format_count(_number(values, 'tokens_per_s'))} tok/s"]
    spent = values.get("spent_usd")
    if spent is not None:
        now = usd(str(spent))
        projected = values.get("projected_usd")
        end = usd(str(projected)) if projected is not None else now * Decimal(steps) / Decimal(max(1, event.step))
        parts.append(f"{format_usd(now)} of {format_usd(end)}")
    return "  ".join(parts)


def _number(values: Any, key: str) -> float:
    value = values.get(key)
    return float(value) if isinstance(value, int | float) else float("nan")


def _loaded_line(event: RunEvent) -> str:
    values = event.values
    return (
        f"loaded in {format_duration(_number(values, 'load_s'))}: "
        f"{format_count(_number(values, 'trainable_params'))} of {format_count(_number(values, 'params'))} parameters "
        f"train on {format_count_of(_number(values, 'rows'), 'row')}"
    )


def _probed_line(event: RunEvent) -> str:
    values = event.values
    return (
        f"probe of {values.get('steps')} steps: {format_duration(_number(values, 'step_s'))} a step, "
        f"{format_bytes(_number(values, 'peak_bytes'))} at the peak"
    )


def _replanned_line(event: RunEvent) -> str:
    return f"memory ran out, trying again: {event.values.get('change')}"


def _evaluated_line(event: RunEvent) -> str:
    values = event.values
    perplexity = _number(values, "perplexity")
    return f"held-out loss {values['when']}: {_number(values, 'loss'):.3f} (perplexity {perplexity:.1f})"


def _cap_line(event: RunEvent) -> str:
    spent, budget = event.values.get("spent_usd"), event.values.get("budget_usd")
    if spent is None or budget is None:
        return f"stopped before the deadline {_kept(event)}"
    return (
        f"stopped at {format_usd(usd(str(spent)))} before the budget of {format_usd(usd(str(budget)))} {_kept(event)}"
    )


def _kept(event: RunEvent) -> str:
    checkpoint = event.values.get("checkpoint")
    return f"after step {event.step}, {checkpoint} saved" if checkpoint else "before a step was taken"
