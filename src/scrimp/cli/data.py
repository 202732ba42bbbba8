"""Look at a data set: single rows as tokens with their mask, or the counts of all rows."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from scrimp.cli.options import json_option, overrides_argument
from scrimp.core.data import DataProfile

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

    from scrimp.workflows.data import ShownData, ShownRow

TRAINED_STYLE = "bold green"
CONTEXT_STYLE = "dim"
# Piped text is not wrapped: a line end in it is one of the data.
PIPED_WIDTH = 100_000
HISTOGRAM_BINS = 12
HISTOGRAM_WIDTH = 40


@click.group()
def command() -> None:
    """Look at a data set as the model will see it.

    DATA is a file (json, jsonl, csv, tsv, parquet; .gz too), a folder of them, the id of a hub data set
    (owner/name or owner/name:config), or a spec that names one.

    \b
    scrimp data show rows.jsonl --model smollm2-135m-instruct --row 7
    scrimp data profile rows.jsonl --model smollm2-135m-instruct data.max_length_tokens=512
    scrimp data profile job.yaml
    """


@command.command(short_help="Print rows as tokens, with what is trained set off.")
@click.argument("data", metavar="DATA")
@overrides_argument
@click.option("--model", metavar="NAME", help="Whose tokenizer and template: as model in a spec.")
@click.option("--row", default=1, show_default=True, type=click.IntRange(min=1), help="First row to show, from 1.")
@click.option("--rows", default=1, show_default=True, type=click.IntRange(min=1), help="How many rows.")
@click.option("--tokens", "by_token", is_flag=True, help="One token a line, with its id.")
@json_option
def show(
    data: str, overrides: tuple[str, ...], model: str | None, row: int, rows: int, by_token: bool, as_json: bool
) -> None:
    """Print rows of DATA as the model reads them, with what is trained on set off.

    Special tokens are shown as they are. Trained tokens are green, all others dim; without colour brackets stand
    around trained ones. KEY=VALUE changes values of the spec, for example data.train_on=last_answer.
    """
    from scrimp.cli.output import print_json, print_note, print_renderables, stdout_console
    from scrimp.workflows.data import DataRequest, show_data
    from scrimp.workflows.world import real_world

    request = DataRequest(data=data, model=model, overrides=overrides)
    shown = show_data(request, first_row=row, rows=rows, world=real_world(note=print_note))
    if as_json:
        print_json(asdict(shown))
        return
    console = stdout_console(piped_width=PIPED_WIDTH)
    print_renderables(*rows_screen(shown, by_token=by_token, console=console), console=console)


@command.command(short_help="Count lengths, trained share, duplicates, dropped rows.")
@click.argument("data", metavar="DATA")
@overrides_argument
@click.option("--model", metavar="NAME", help="Whose tokenizer counts; without one, tokens are estimated.")
@json_option
def profile(data: str, overrides: tuple[str, ...], model: str | None, as_json: bool) -> None:
    """Count DATA: lengths, trained share, duplicates, rows that will not train and why.

    KEY=VALUE changes values of the spec, for example data.max_length_tokens=512 data.eval_share=0.1.
    """
    from scrimp.cli.output import print_json, print_note, print_renderables, stdout_console
    from scrimp.workflows.data import DataRequest, profile_data
    from scrimp.workflows.world import real_world

    request = DataRequest(data=data, model=model, overrides=overrides)
    found = profile_data(request, world=real_world(note=print_note))
    if as_json:
        print_json(profile_document(found))
        return
    console = stdout_console(piped_width=PIPED_WIDTH)
    print_renderables(*profile_screen(found, console=console), console=console)


def profile_document(profile: DataProfile) -> dict[str, Any]:
    """The profile with the values that follow from it, as plain JSON values."""
    from scrimp.spec.codec import dump

    return {
        **dump(profile),
        "longest_row_tokens": profile.longest_row_tokens,
        "mean_row_tokens": profile.mean_row_tokens,
        "trained_share": profile.trained_share,
    }


def profile_screen(profile: DataProfile, *, console: "Console") -> "list[RenderableType]":
    """The profile for people, the answer first."""
    from rich.text import Text

    dropped_rows = sum(group.rows for group in profile.dropped)
    head = f"{profile.rows_trained:,} rows train, {profile.eval_rows:,} evaluate, {dropped_rows:,} are dropped"
    tokens = f"{profile.total_tokens:,}, of which {profile.trained_tokens:,} trained ({profile.trained_share:.1%})"
    lengths = f"mean {profile.mean_row_tokens:,.0f}, longest {profile.longest_row_tokens:,}"
    fields = [
        ("data", f"{profile.path}, shape {profile.shape}"),
        ("tokens", tokens),
        ("", f"{profile.token_basis}; tokenizer: {profile.tokenizer}"),
        ("mask", mask_words(profile.mask_method)),
        *([("roles", ", ".join(profile.roles))] if profile.roles else []),
        ("duplicates", f"{profile.duplicate_rows:,} exact copies of other rows"),
        *([("truncated", f"{profile.truncated_rows:,} rows")] if profile.truncated_rows else []),
        ("evaluation", f"{profile.eval_rows:,} rows, {profile.eval_total_tokens:,} tokens"),
        ("sha256", profile.sha256[:16]),
    ]
    lines: list[RenderableType] = [Text(head, style="bold"), *_fields(fields), Text()]
    lines += [Text(f"Tokens of a row: {lengths}", style="bold"), *_histogram(profile, console=console)]
    if profile.dropped:
        lines += [Text(), Text(f"Dropped: {profile.rows_in:,} rows in = {profile.rows_trained:,} trained + "
                               f"{dropped_rows:,} dropped", style="bold")]  # fmt: skip
        for group in profile.dropped:
            more = ", ..." if group.rows > len(group.first_rows) else ""
            where = f"rows {', '.join(map(str, group.first_rows))}{more}"
            lines.append(Text(f"  {group.rows:,} {group.reason}: {group.detail} ({where})"))
    return [*lines, *(Text(f"Note: {note}", style="yellow") for note in profile.notes)]


def rows_screen(shown: "ShownData", *, by_token: bool, console: "Console") -> "list[RenderableType]":
    """Rows for people; brackets instead of colour where there is none."""
    from rich.text import Text

    coloured = console.color_system is not None and not console.no_color
    legend = "green: trained, dim: context" if coloured else f"{'⟦⟧' if _utf8(console) else '[[]]'}: trained"
    lines: list[RenderableType] = _fields(
        [
            ("data", f"{shown.path}, shape {shown.shape}, {shown.rows_in_all:,} rows"),
            ("tokenizer", f"{shown.tokenizer}, template of {shown.template}"),
            ("mask", f"{mask_words(shown.mask_method)}; {legend}"),
            *([("roles", ", ".join(shown.roles))] if shown.roles else []),
        ]
    )
    for row in shown.rows:
        lines += [Text(), Text(_row_words(row), style="bold")]
        if by_token:
            lines += _token_lines(row, coloured=coloured)
        else:
            brackets = ("", "") if coloured else ("⟦", "⟧") if _utf8(console) else ("[[", "]]")
            lines.append(_running_text(row, brackets=brackets))
    return lines


def mask_words(method: str) -> str:
    """How the labels were found, in words."""
    return {
        "template_markers": "answers as the chat template's generation tags mark them",
        "prefix_rendering": "answers found by rendering the conversation up to each of them",
        "all_tokens": "every token is trained",
    }[method]


def visible(text: str) -> str:
    """The text with control characters spelt out, so that data cannot steer the terminal."""
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)


def histogram_bins(lengths: Sequence[tuple[int, int]], *, most: int) -> list[tuple[int, int, int]]:
    """(from, to, rows) in bins of equal round width, at most `most` of them, empty ones between included."""
    if not lengths:
        return []
    low, high = lengths[0][0], lengths[-1][0]
    widths = (step * 10**power for power in range(10) for step in (1, 2, 5))
    width = next(width for width in widths if high // width - low // width < most)
    rows = dict.fromkeys(range(low // width, high // width + 1), 0)
    for length, count in lengths:
        rows[length // width] += count
    return [(index * width, (index + 1) * width - 1, count) for index, count in rows.items()]


def _histogram(profile: DataProfile, *, console: "Console") -> "list[RenderableType]":
    from rich.text import Text

    bins = histogram_bins(profile.length_histogram, most=HISTOGRAM_BINS)
    most = max((rows for _, _, rows in bins), default=1)
    label = max((len(f"{low:,}-{high:,}") for low, high, _ in bins), default=0)
    mark = "█" if _utf8(console) else "#"
    lines: list[RenderableType] = []
    for low, high, rows in bins:
        bar = mark * max(round(rows / most * HISTOGRAM_WIDTH), 1 if rows else 0)
        lines.append(Text(f"  {f'{low:,}-{high:,}':>{label}} {bar} {rows:,}".rstrip()))
    return lines


def _fields(fields: Sequence[tuple[str, str]]) -> "list[RenderableType]":
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    for name, value in fields:
        table.add_row(name, _plain(value))
    return [table]


def _plain(text: str) -> "Text":
    from rich.text import Text

    return Text(visible(text))


def _row_words(row: "ShownRow") -> str:
    from scrimp.core.units import format_count

    share = f" ({row.trained_tokens / row.total_tokens:.0%})" if row.total_tokens else ""
    parts = [
        f"row {row.number}",
        row.place,
        f"{format_count(row.total_tokens)} tokens, {format_count(row.trained_tokens)} trained{share}",
        *(["held out for evaluation"] if row.held_out else []),
        *([f"dropped: {row.dropped}"] if row.dropped else []),
        *(["truncated"] if row.truncated else []),
    ]
    return " · ".join(parts)


def _running_text(row: "ShownRow", *, brackets: tuple[str, str]) -> "Text":
    from rich.text import Text

    text = Text()
    for trained, tokens in groupby(row.tokens, key=lambda token: token.trained):
        part = visible("".join(token.text for token in tokens))
        if trained:
            text.append(f"{brackets[0]}{part}{brackets[1]}", style=TRAINED_STYLE)
        else:
            text.append(part, style=CONTEXT_STYLE)
    return text


def _token_lines(row: "ShownRow", *, coloured: bool) -> "list[RenderableType]":
    from rich.text import Text

    lines: list[RenderableType] = []
    for position, token in enumerate(row.tokens):
        label = "" if coloured else " trained" if token.trained else " -"
        text = f"{position:>6} {token.token_id:>7} {visible(token.text)!r}{label}"
        lines.append(Text(text, style=TRAINED_STYLE if token.trained else CONTEXT_STYLE))
    return lines


def _utf8(console: "Console") -> bool:
    return console.encoding.lower().startswith("utf")
