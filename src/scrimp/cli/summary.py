"""What a run ends with, for people: loss before and after, answers, cost, forecast against measured, files."""

from dataclasses import replace
from math import exp
from typing import TYPE_CHECKING

from scrimp.core.probe import PROBED
from scrimp.core.run import Graded, RunRecord, RunSummary
from scrimp.core.units import format_quantity, format_usd, plural

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

LABELS = {
    "peak_bytes": "memory",
    "step_s": "step",
    "train_s": "training time",
    "total_s": "whole time",
    "cost_usd": "cost",
    "gpu_kwh": "GPU energy",
    "energy_kwh": "energy",
}
# A longer answer says no more about style, and the report has it whole.
_ANSWER_CHARS = 220


def summary_renderables(summary: RunSummary) -> "list[RenderableType]":
    """The whole summary, top to bottom in the order of interest."""
    from rich.text import Text

    record = summary.record
    parts: list[RenderableType] = [Text(headline(record), style="bold")]
    if record.graded:
        planned, probed = split_graded(record.graded)
        parts.append(graded_table(planned))
        if probed:
            parts.append(graded_table(probed, title="forecast corrected by the probe against measured"))
    for prompt, before, after in summary.samples[:2]:
        parts.append(_sample(prompt, before, after))
    parts.append(_files(summary))
    return parts


def headline(record: RunRecord) -> str:
    """`quickstart: held-out loss 4.294 -> 3.866 (perplexity 73.3 -> 47.7) for $0.0048`."""
    before, after = record.eval_loss_before, record.eval_loss_after
    cost = format_usd(record.spent_usd)
    if before is None or after is None:
        steps = f"{record.steps_done} of {record.steps_planned} {plural(record.steps_planned, 'step')}"
        return f"{record.name}: {record.state}, {steps} for {cost}"
    return (
        f"{record.name}: held-out loss {before:.3f} -> {after:.3f} "
        f"(perplexity {exp(min(before, 700)):.1f} -> {exp(min(after, 700)):.1f}) for {cost}"
    )


def split_graded(graded: tuple[Graded, ...]) -> tuple[tuple[Graded, ...], tuple[Graded, ...]]:
    """Lines of the plan, and of what a probe had corrected it to, under the plan's names."""
    planned = tuple(line for line in graded if not line.quantity.startswith(PROBED))
    probed = (line for line in graded if line.quantity.startswith(PROBED))
    return planned, tuple(replace(line, quantity=line.quantity.removeprefix(PROBED)) for line in probed)


def graded_table(graded: tuple[Graded, ...], *, title: str = "forecast against measured") -> "Table":
    """Forecast with its range beside what was measured."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name, justify in (("", "left"), ("forecast", "right"), ("80% range", "right"), ("measured", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type] # a literal by construction
    table.add_column("error", justify="right")
    table.add_column("held")
    for line in graded:
        table.add_row(
            LABELS.get(line.quantity, line.quantity),
            format_quantity(line.quantity, line.forecast),
            f"{format_quantity(line.quantity, line.low)} - {format_quantity(line.quantity, line.high)}",
            format_quantity(line.quantity, line.measured),
            f"{line.error_ratio:+.0%}",
            "yes" if line.inside else "no",
        )
    return table


def _sample(prompt: str, before: str, after: str) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, style="dim")
    table.add_column()
    for label, text in (("asked", prompt), ("before", before), ("after", after)):
        table.add_row(label, Text(_shortened(text)))
    return table


def _shortened(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _ANSWER_CHARS else flat[:_ANSWER_CHARS].rsplit(" ", 1)[0] + " ..."


def _files(summary: RunSummary) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    if summary.adapter_folder:
        table.add_row("adapter", summary.adapter_folder)
    if summary.report_path:
        table.add_row("report", summary.report_path)
    table.add_row("ledger", summary.ledger_url)
    table.add_row("next", summary.next_step or f"scrimp show {summary.record.run_id}")
    return table
