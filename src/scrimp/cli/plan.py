"""Say what a job will need, take and cost, on which machine, before a cent is spent."""

import shlex
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scrimp.cli.options import json_option, overrides_argument
from scrimp.core.plan import PlanSet

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from scrimp.planner.carbon import CarbonComparison
    from scrimp.planner.explain import PlanRow
    from scrimp.workflows.plan import Planned

# From this width on a plan takes one line of the table; below it two.
WIDE = 132
PIPED_WIDTH = 160
PLOT_HEIGHT = 8
PLOT_WIDTH = 78
MIN_PLOT_POINTS = 3


@click.command()
@click.argument("spec", metavar="SPEC")
@overrides_argument
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write the plan to this file, for scrimp run.")
@click.option("--pick", default=1, show_default=True, type=click.IntRange(min=1), help="Which plan to write, by rank.")
@click.option("--top", default=8, show_default=True, type=click.IntRange(min=1), help="How many plans to show.")
@click.option("--all", "every", is_flag=True, help="Show every plan and every class of rejected offers.")
@click.option("--exact", is_flag=True, help="Trace the picked plan's memory (extra: train) and plan with that.")
@json_option
def command(
    spec: str,
    overrides: tuple[str, ...],
    output: str | None,
    pick: int,
    top: int,
    every: bool,
    exact: bool,
    as_json: bool,
) -> None:
    """Plan the job in SPEC: will it fit, on what, where, how long, how much, how sure, and what was rejected.

    KEY=VALUE changes single values of the spec, for example training.epochs=2 limits.budget=5.

    \b
    scrimp plan job.yaml                    the cheapest plans
    scrimp plan job.yaml -o plan.yaml       and the best one as a file that scrimp run takes
    scrimp plan job.yaml --pick 3 -o p.yaml the third instead
    scrimp plan job.yaml market.where=any market.spot=never
    scrimp plan job.yaml --exact            memory of the picked plan by a trace of its training step
    """
    from scrimp.cli.output import print_json, print_note, print_renderables, stdout_console
    from scrimp.workflows.plan import PlanRequest, plan_file
    from scrimp.workflows.world import real_world

    world = real_world(note=print_note)
    request = PlanRequest(spec=spec, overrides=overrides, pick=pick, output=Path(output) if output else None)
    answer = None
    if exact:
        from scrimp.workflows.trace import trace_spec

        found = trace_spec(request, world=world)
        planned, answer = found.planned, found.answer
    else:
        planned = plan_file(request, world=world)
    top_shown = None if every else top
    if as_json:
        from scrimp.cli.traced import traced_document

        print_json(
            {**document(planned, top=top_shown), **({} if answer is None else {"exact": traced_document(answer)})}
        )
        return
    console = stdout_console(piped_width=PIPED_WIDTH)
    today = world.now().date()
    print_renderables(*screen(planned, today=today, width=console.width, top=top_shown), console=console)
    if answer is not None:
        from scrimp.cli.traced import traced_screen

        print_renderables("", *traced_screen(answer, width=console.width), console=console)


def document(planned: "Planned", *, top: int | None) -> dict[str, Any]:
    """The whole answer as plain JSON values: the plan set, `top` of its candidates, and what was written."""
    from dataclasses import replace

    from scrimp.planner.carbon import compare_carbon
    from scrimp.spec.codec import dump

    plans = planned.plans
    shown = replace(plans, candidates=plans.candidates[:top])
    return {
        **dump(shown),
        "carbon_comparison": dump(compare_carbon(plans.candidates)),
        "candidates_found": len(plans.candidates),
        "picked": planned.rank,
        "written": None if planned.written is None else str(planned.written),
    }


def screen(planned: "Planned", *, today: date, width: int, top: int | None) -> "list[RenderableType]":
    """Everything for people, the answer first. `top` None shows all plans and every class of the rejected."""
    from scrimp.planner import explain
    from scrimp.planner.carbon import compare_carbon, comparison_words

    plans = planned.plans
    carbon = compare_carbon(plans.candidates)
    return [
        *_verdict(planned, today),
        "",
        _fields(("job", explain.job_words(plans)), ("data", explain.data_words(plans))),
        "",
        *_plan_table(plans, carbon, today=today, width=width, top=top),
        *_plot(plans, width=width),
        "",
        _line(f"Plan {planned.rank} in detail", style="bold"),
        _fields(("recipe", explain.recipe_words(planned.chosen)), *explain.dominant_words(planned.chosen)),
        *_rejected(plans, every=top is None),
        "",
        _fields(
            *([("CO2e", comparison_words(carbon, plans.candidates))] if len(plans.candidates) > 1 else []),
            ("prices", explain.price_words(plans, today)),
            *_next(planned),
        ),
    ]


def _verdict(planned: "Planned", today: date) -> "list[RenderableType]":
    """The answer in words, what else is on offer, what may go wrong."""
    from scrimp.planner import explain

    plans, chosen = planned.plans, planned.chosen
    by_money = plans.spec.market.objective == "cheapest"
    best, other = ("Cheapest", "Fastest") if by_money else ("Fastest", "Cheapest")
    lines = [_line(f"{best if planned.rank == 1 else f'Plan {planned.rank}'}: {explain.verdict(chosen)}", style="bold")]
    alternative = plans.front[-1 if by_money else 0]
    if alternative != chosen:
        lines.append(_line(f"{other}: {explain.verdict(alternative)}"))
    tight = explain.better_but_tight(plans, chosen)
    if tight is not None:
        lines.append(_line(f"{'Cheaper' if by_money else 'Faster'}, but may not fit: {explain.verdict(tight)}"))
    lines += [_line(f"Note: {text}", style="yellow") for text in explain.doubts(chosen, plans.spec.limits, today)]
    return [*lines]


def _plan_table(
    plans: PlanSet, carbon: "CarbonComparison", *, today: date, width: int, top: int | None
) -> "list[RenderableType]":
    """The best plans and the front, by rank, and a line that reads the marks."""
    from scrimp.planner.carbon import APART
    from scrimp.planner.explain import plan_row
    from scrimp.planner.order import is_tight

    front = {id(item) for item in plans.front}
    shown = [
        (rank, item)
        for rank, item in enumerate(plans.candidates, start=1)
        if top is None or rank <= top or id(item) in front
    ]
    rows = [
        plan_row(item, rank=rank, on_front=id(item) in front, today=today, counted_by=carbon.method)
        for rank, item in shown
    ]
    hidden = len(plans.candidates) - len(shown)
    legend = [
        "* on the front: nothing else is both cheaper and faster",
        *(["? may not fit"] if any(is_tight(item) for _, item in shown) else []),
        *([f"{APART} not to be compared"] if any(row.carbon.endswith(APART) for row in rows) else []),
        "ranges hold 8 times in 10",
        *([f"{hidden:,} more with --all"] if hidden else []),
    ]
    return [_one_line_table(rows) if width >= WIDE else _two_line_table(rows), _line("; ".join(legend), style="dim")]


def _one_line_table(rows: "list[PlanRow]") -> "Table":
    """A plan on a line: what grep and wide terminals want."""
    headings = "#", "method", "machine~", "price>", "at~", "memory, GiB>", "time", "cost", "energy>", "CO2e>", "age>"
    table = _table(*headings)
    for row in rows:
        table.add_row(
            f"{row.rank}{row.mark}",
            row.method,
            _cut(row.machine),
            row.price,
            _cut(" ".join(filter(None, (row.provider, row.region, row.market)))),
            f"{row.memory_need.replace(' GiB', '')} of {row.memory_has.removesuffix(' GiB')}",
            f"{row.time} ({row.time_range})",
            f"{row.cost} ({row.cost_range})",
            row.energy,
            row.carbon,
            row.price_age,
        )
    return table


def _two_line_table(rows: "list[PlanRow]") -> "Table":
    """A plan on two lines, values above what qualifies them: what 80 columns hold."""
    table = _table("#", "method", "machine~", "at~", "memory", "time", "cost")
    table.add_row("", "age", "price, CO2e", "market, region", "of", "8 in 10", "8 in 10", style="dim")
    for row in rows:
        table.add_row(
            f"{row.rank}{row.mark}", row.method, _cut(row.machine), _cut(row.provider), row.memory_need, row.time,
            row.cost,
        )  # fmt: skip
        table.add_row(
            "", row.price_age, f"{row.price}, {row.carbon}", _cut(f"{row.market} {row.region}"),
            row.memory_has.removesuffix(" GiB"), row.time_range, row.cost_range, style="dim",
        )  # fmt: skip
    return table


def _plot(plans: PlanSet, *, width: int) -> "list[RenderableType]":
    """Money against time of everything that meets the limits; nothing for a single plan."""
    from rich.text import Text

    from scrimp.core.units import format_duration, format_usd
    from scrimp.planner.order import cost_usd, duration_s
    from scrimp.planner.scatter import Frame, Point, scatter

    if len(plans.candidates) < MIN_PLOT_POINTS:
        return []
    front = {id(item) for item in plans.front}
    points = [Point(x=duration_s(item), y=float(cost_usd(item)), marked=id(item) in front) for item in plans.candidates]
    costs, times = [cost_usd(item) for item in plans.candidates], [point.x for point in points]
    frame = Frame(
        width=min(width, PLOT_WIDTH), height=PLOT_HEIGHT, x_low=format_duration(min(times)),
        x_high=format_duration(max(times)), y_low=format_usd(min(costs)), y_high=format_usd(max(costs)),
    )  # fmt: skip
    title = "Money (up) against time (right), both logarithmic; ● on the front"
    return ["", _line(title, style="bold"), *(Text(line, no_wrap=True) for line in scatter(points, frame))]


def _rejected(plans: PlanSet, *, every: bool) -> "list[RenderableType]":
    from rich.text import Text

    from scrimp.core.units import format_count
    from scrimp.planner.explain import rejected_rows

    rows = rejected_rows(plans.rejected, every=every)
    table = _table("rejected", "offers>", "what and why~")
    for row in rows:
        table.add_row(row.kind, format_count(row.offers), Text(row.words))
    return ["", table] if rows else []


def _next(planned: "Planned") -> list[tuple[str, str]]:
    """What to type. This version trains where it is started, so a rented machine has to be rented by hand first."""
    request = planned.request
    written = [] if planned.written is None else [("written", str(planned.written))]
    if planned.chosen.offer.market != "local":
        rent = [f"local.price={planned.chosen.offer.price_usd_per_hour} USD/h", "local.electricity=0 USD/kWh"]
        again = shlex.join(["scrimp", "run", request.spec, *request.overrides, "market.where=local", *rent])
        return [*written, ("next", f"rent that machine, install scrimp on it, and there: {again}")]
    if planned.written is not None:
        return [*written, ("next", f"scrimp run {planned.written}")]
    again = shlex.join(["scrimp", "plan", request.spec, *request.overrides])
    return [("next", f"{again} -o plan.yaml, then scrimp run plan.yaml")]


def _table(*headings: str) -> "Table":
    """A table without rules. Headings ending in > are set right, those ending in ~ give way where space is short."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for heading in headings:
        justify = "right" if heading.endswith(">") else "left"
        table.add_column(heading.rstrip(">~"), justify=justify, no_wrap=not heading.endswith("~"))
    return table


def _cut(text: str) -> "Text":
    """A cell that is cut off rather than wrapped."""
    from rich.text import Text

    return Text(text, no_wrap=True, overflow="ellipsis")


def _fields(*pairs: tuple[str, str]) -> "Table":
    """Headings in a column of their own, so that long lines wrap beside them."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, width=7, style="bold")
    table.add_column()
    for heading, words in pairs:
        table.add_row(heading, Text(words))
    return table


def _line(text: str, *, style: str = "") -> "RenderableType":
    from rich.text import Text

    return Text(text, style=style)
