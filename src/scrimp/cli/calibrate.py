"""Learn from your own runs how far the forecasts are off on your hardware."""

from typing import TYPE_CHECKING, Any

import click

from scrimp.cli.options import json_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from scrimp.calibrate.own_runs import Judged
    from scrimp.cli.output import Column
    from scrimp.core.correction import Correction
    from scrimp.workflows.calibrate import Calibration

PIPED_WIDTH = 160
QUANTITY_WORDS = {
    "peak_bytes": "memory",
    "train_s": "time in steps",
    "around_s": "time around steps",
    "power_w": "power",
}
MOST_LEFT_OUT = 5


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would be learnt and change nothing.")
@click.option("--reset", "forget", is_flag=True, help="Forget what was learnt: plans by the formulas alone again.")
@json_option
def command(dry_run: bool, forget: bool, as_json: bool) -> None:
    """Correct the forecasts for your hardware by what your finished runs measured.

    \b
    scrimp calibrate            learn, show the errors before and after, use it in every later plan
    scrimp calibrate --dry-run  show it and change nothing
    scrimp calibrate --reset    forget it

    Errors "after" are those of runs forecast without themselves. A correction needs three runs on a device, is drawn
    towards none while runs are few, and is used only where it made the error smaller.
    """
    from scrimp.cli.output import print_json, print_note, print_renderables, stdout_console
    from scrimp.workflows.calibrate import calibrate, reset
    from scrimp.workflows.world import real_world

    if dry_run and forget:
        raise click.UsageError("--dry-run and --reset do not go together: --reset only removes a file.")
    world = real_world(note=print_note)
    if forget:
        forgotten = reset(world=world)
        if as_json:
            print_json({"path": str(forgotten.path), "removed": forgotten.removed})
        else:
            click.echo(f"removed {forgotten.path}" if forgotten.removed else "nothing was learnt, nothing to forget")
        return
    found = calibrate(dry_run=dry_run, world=world)
    if as_json:
        print_json(document(found))
        return
    console = stdout_console(piped_width=PIPED_WIDTH)
    print_renderables(*screen(found, width=console.width), console=console)


def document(found: "Calibration") -> dict[str, Any]:
    """What was learnt and judged as plain JSON values."""
    from scrimp.spec.codec import dump

    return {
        "runs": found.runs,
        "judged": [{**dump(item), "used": item.helps} for item in found.judged],
        "corrections": [dump(item) for item in found.corrections],
        "left_out": [dump(item) for item in found.left_out],
        "path": str(found.path),
        "written": found.written,
        "ledger": found.ledger_url,
    }


def screen(found: "Calibration", *, width: int) -> "list[RenderableType]":
    """Before and after, what plans are corrected by from now on, and what was left out."""
    from rich.text import Text

    from scrimp.cli.output import fitted_table

    if not found.judged:
        return [
            Text("no finished run to learn from yet"),
            *_left_out(found),
            Text("next: scrimp run examples/quickstart.yaml"),
        ]
    judged, hidden = fitted_table(judged_columns(found.judged), width=width)
    parts: list[RenderableType] = [Text(headline(found), style="bold"), "", judged]
    if found.corrections:
        learnt, also_hidden = fitted_table(correction_columns(found.corrections), width=width)
        parts += ["", Text("Forecasts are multiplied by", style="bold"), learnt]
        hidden = [*hidden, *(name for name in also_hidden if name not in hidden)]
    if hidden:
        text = f"not shown at this width: {', '.join(hidden)} (a wider terminal or --json has them)"
        parts.append(Text(text, style="dim"))
    return [*parts, *_left_out(found), *_ending(found)]


def headline(found: "Calibration") -> str:
    """`12 runs teach 3 corrections`, or why nothing is corrected."""
    runs = f"{found.runs} finished {'run' if found.runs == 1 else 'runs'}"
    helped = sum(item.helps for item in found.judged)
    if helped:
        return f"{runs}: {helped} of {len(found.judged)} forecasts are better when corrected"
    if any(item.after is not None for item in found.judged):
        return f"{runs}: no correction would have made the forecasts better, so none is used"
    return f"{runs}: three on one device are needed before anything is corrected"


def judged_columns(judged: "Sequence[Judged]") -> "Sequence[Column]":
    """Errors and intervals before and after, a line for each quantity of a device."""
    from scrimp.cli.output import Column

    return (
        Column(heading="device", cells=[item.device for item in judged], shrinks_to=16),
        Column(heading="forecast of", cells=[QUANTITY_WORDS[item.quantity] for item in judged]),
        Column(heading="runs", cells=[str(item.runs) for item in judged], justify="right"),
        Column(heading="error now", cells=[f"{item.before:.1%}" for item in judged], justify="right"),
        Column(heading="error corrected", cells=[_percent(item.after, digits=1) for item in judged], justify="right"),
        Column(heading="used", cells=[_verdict(item) for item in judged]),
        Column(
            heading="range held",
            cells=[f"{item.held_before:.0%}" for item in judged],
            justify="right",
            gives_way=1,
        ),
        Column(
            heading="held corrected",
            cells=[_percent(item.held_after, digits=0) for item in judged],
            justify="right",
            gives_way=2,
        ),
    )


def correction_columns(corrections: "Sequence[Correction]") -> "Sequence[Column]":
    """What plans are multiplied by, the most particular line first to count."""
    from scrimp.cli.output import Column

    return (
        Column(heading="device", cells=[item.device for item in corrections], shrinks_to=16),
        Column(heading="method", cells=[item.method or "any" for item in corrections]),
        Column(heading="model", cells=[item.model or "any" for item in corrections], shrinks_to=16, gives_way=2),
        Column(heading="forecast of", cells=[QUANTITY_WORDS[item.quantity] for item in corrections]),
        Column(heading="by", cells=[f"{item.value:.2f}" for item in corrections], justify="right"),
        Column(heading="8 in 10", cells=[_range(item) for item in corrections], gives_way=1),
        Column(heading="runs", cells=[str(item.runs) for item in corrections], justify="right", gives_way=3),
    )


def _range(item: "Correction") -> str:
    return "moves along" if item.low is None or item.high is None else f"{item.low:.2f}-{item.high:.2f}"


def _percent(value: float | None, *, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}%}"


def _verdict(item: "Judged") -> str:
    if item.after is None:
        return "no: needs 3 runs"
    return "yes" if item.helps else "no: not better"


def _left_out(found: "Calibration") -> "list[RenderableType]":
    """Finished runs that taught nothing, the first few by name."""
    from rich.text import Text

    lines = [f"left out: {item.run_id}: {item.reason}" for item in found.left_out[:MOST_LEFT_OUT]]
    more = len(found.left_out) - MOST_LEFT_OUT
    return [Text(line, style="dim") for line in [*lines, *([f"and {more} more (--json)"] if more > 0 else [])]]


def _ending(found: "Calibration") -> "list[RenderableType]":
    from rich.text import Text

    if not found.written:
        return ["", Text(f"nothing was written ({found.path})"), Text("next: scrimp calibrate")]
    kept = "in the place of what was learnt before" if found.replaced else "for every later plan"
    return ["", Text(f"written to {found.path}, {kept}"), Text("forget it: scrimp calibrate --reset", style="dim")]
