"""Writes the report of a run: one HTML file that opens anywhere, without a network."""

import base64
import hashlib
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scrimp.core.units import format_usd
from scrimp.ledger.sums import total_usd
from scrimp.report import tables, words
from scrimp.report.curves import spending, training_curves
from scrimp.report.figure import Figure
from scrimp.report.plots import money_against_time, row_lengths
from scrimp.report.source import ReportSource

REPORT_FILE = "report.html"
MAX_REJECTED = 40
_ASSETS = Path(__file__).parent / "assets"


def write_report(source: ReportSource, *, path: Path) -> Path:
    """Write the page to `path`; a page that was there is replaced at once or not at all.

    Raises:
        OSError: the folder cannot be written.
    """
    html = render_report(source)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, half = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(html)
        Path(half).chmod(0o644)
        Path(half).replace(path)
    except BaseException:
        Path(half).unlink(missing_ok=True)
        raise
    return path


def render_report(source: ReportSource) -> str:
    """The page as text. Everything that came from outside is escaped, and no script runs but the page's own."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    pages = Environment(
        loader=FileSystemLoader(_ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    scripts = [_asset("uplot.js"), _asset("figures.js")]
    return pages.get_template("page.html.jinja").render(
        **_content(source),
        style=_asset("uplot.css") + _asset("style.css"),
        scripts=scripts,
        script_hashes=[_hash(script) for script in scripts],
    )


def _content(source: ReportSource) -> dict[str, Any]:
    record, plan = source.record, source.plan
    entries = source.entries + source.running
    is_running = record.state == "running"
    figures = _figures(source)
    return {
        "record": record,
        "made_at": tables.moment(source.made_at.timestamp()),
        "state": words.STATE_WORDS[record.state],
        "headline": words.headline(record),
        "facts": words.headline_facts(source),
        "failure": source.history.failure,
        "figures": figures,
        "figure_data": [asdict(figure) for figure in figures.values()],
        "graded": tables.graded_bars(record.graded),
        "samples": source.history.samples,
        "plan_words": words.plan_words(plan) if plan is not None else [],
        "replanned": words.replanned_words(source),
        "rejected": _rejected(source),
        "attempts": tables.attempt_bars(source.history, is_running=is_running),
        "entries": tables.entry_rows(entries),
        "entries_total": format_usd(total_usd(entry.amount_usd for entry in entries)),
        "environment": tables.environment_rows(source),
        "origins": words.origins(source),
    }


def _figures(source: ReportSource) -> dict[str, Figure]:
    """Figures by name; a run without steps or a plan has fewer."""
    found: list[Figure | None] = [*training_curves(source.history), spending(source.history, source.plan)]
    if source.plan is not None:
        found += [money_against_time(source.plan.alternatives), row_lengths(source.plan.profile)]
    return {figure.name: figure for figure in found if figure is not None}


def _rejected(source: ReportSource) -> list[tuple[str, str, str, str]]:
    """The largest classes first."""
    classes = sorted(source.rejected, key=lambda item: -item.offers)[:MAX_REJECTED]
    return [(item.kind.replace("_", " "), f"{item.offers:,}", item.subject, item.reason) for item in classes]


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """What the page's content security policy allows to run: exactly this text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
