"""Train three real steps of a job here and correct its forecast by them."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from scrimp.cli.options import json_option, overrides_argument

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from scrimp.core.probe import Probed


@click.command("probe")
@click.argument("target", type=click.Path(path_type=Path), metavar="SPEC_OR_PLAN")
@overrides_argument
@click.option("--trace", is_flag=True, help="Run nothing: trace one step without weights, on a card or here.")
@json_option
def command(target: Path, overrides: tuple[str, ...], trace: bool, as_json: bool) -> None:
    """Measure memory and speed of a job by three steps on this machine, and correct the plan's forecast.

    The fullest micro-batch of the whole run comes first, so what fits the probe fits the run. Nothing is kept, nothing
    is billed. `scrimp run` does the same by itself before its first step (training.probe=off leaves it out).

    \b
    scrimp probe examples/quickstart.yaml
    scrimp probe plan.yaml --json
    scrimp probe plan.yaml --trace          memory alone, of the plan's machine, without weights or a GPU
    """
    if trace:
        _trace(target, overrides, as_json=as_json)
        return
    from scrimp.cli.attended import Onlooker
    from scrimp.cli.output import print_json, print_note, print_renderables, stdout_console
    from scrimp.spec.codec import dump
    from scrimp.workflows.open_run import Watch
    from scrimp.workflows.probe import probe
    from scrimp.workflows.world import real_world

    onlooker = Onlooker(quiet=as_json)
    watch = Watch(on_plan=onlooker.on_plan_alone, on_event=onlooker.on_event)
    try:
        found = probe(target, overrides=overrides, world=real_world(note=print_note), watch=watch)
    finally:
        onlooker.close()
    if as_json:
        print_json({"reading": dump(found.reading), "replanned": list(found.replanned), "forecasts": rows(found)})
    else:
        print_renderables(*renderables(found, target), console=stdout_console(piped_width=100))


def _trace(target: Path, overrides: tuple[str, ...], *, as_json: bool) -> None:
    from scrimp.cli.output import print_json, print_note, print_renderables, stdout_console
    from scrimp.cli.traced import traced_document, traced_screen
    from scrimp.workflows.trace import trace_target
    from scrimp.workflows.world import real_world

    answer = trace_target(target, overrides=overrides, world=real_world(note=print_note))
    if as_json:
        print_json(traced_document(answer))
        return
    console = stdout_console(piped_width=100)
    print_renderables(*traced_screen(answer, width=console.width), console=console)


def renderables(found: "Probed", target: Path) -> "list[RenderableType]":
    """What was measured, what the forecasts become, and how to go on."""
    from rich.text import Text

    from scrimp.core.units import format_bytes, format_duration

    reading = found.reading
    sizes = [f"{format_bytes(reading.peak_bytes)} at the peak"]
    if reading.reserved_bytes is not None:
        sizes.append(f"{format_bytes(reading.reserved_bytes)} reserved")
    if reading.driver_bytes is not None:
        sizes.append(f"{format_bytes(reading.driver_bytes)} by the driver")
    head = (
        f"{reading.steps} steps in {format_duration(reading.probe_s)}, the fullest micro-batch "
        f"{reading.micro_batch_tokens:,} tokens: {', '.join(sizes)}"
    )
    changed = [f"memory ran out, planned again: {change}" for change in found.replanned]
    return [Text("\n".join([*changed, head])), probe_table(found), Text(f"next: scrimp run {target}")]


def rows(found: "Probed") -> list[dict[str, object]]:
    """One row a quantity: what was planned, what the probe measured, what is to be expected now."""
    from scrimp.ledger.grade import forecasts

    kind = "rss" if found.reading.device_kind == "cpu" else "allocated"
    planned = forecasts(found.plan, peak_kind=kind)
    corrected = forecasts(found.corrected_plan, peak_kind=kind)
    measured = {"peak_bytes": found.reading.peak_bytes, "step_s": found.reading.step_s}
    return [
        {
            "quantity": name,
            "forecast": planned[name].value,
            "forecast_low": planned[name].low,
            "forecast_high": planned[name].high,
            "measured": measured.get(name),
            "corrected": now.value,
            "low": now.low,
            "high": now.high,
            "basis": now.basis,
        }
        for name, now in corrected.items()
        if name in planned
    ]


def probe_table(found: "Probed") -> "Table":
    """Forecast, measured, corrected, each with its range."""
    from rich.table import Table

    from scrimp.cli.summary import LABELS
    from scrimp.core.units import format_quantity

    table = Table(box=None, pad_edge=False)
    for name in ("", "forecast", "80% range", "measured", "corrected", "80% range"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for row in rows(found):
        name = str(row["quantity"])
        shown = {key: format_quantity(name, float(str(row[key]))) for key in row if _is_figure(row[key])}
        table.add_row(
            LABELS.get(name, name),
            shown["forecast"],
            f"{shown['forecast_low']} - {shown['forecast_high']}",
            shown.get("measured", ""),
            shown["corrected"],
            f"{shown['low']} - {shown['high']}",
        )
    return table


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float)
