"""The report's tables and drawn rows: graded forecasts, attempts in time, ledger lines, the machine."""

from dataclasses import dataclass
from datetime import UTC, datetime

from scrimp.core.run import Graded, LedgerEntry
from scrimp.core.units import format_bytes, format_count, format_duration, format_quantity, format_usd
from scrimp.ledger.history import Attempt, RunHistory
from scrimp.report.source import ReportSource
from scrimp.report.words import error_words, quantity_words

# Values of a `started` event that the page has in another place.
_TOLD_ELSEWHERE = {"run_id", "price_usd_per_hour", "device"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedBar:
    """One forecast against its measurement; positions are shares of the bar's width."""

    name: str
    forecast: str
    interval: str
    measured: str
    verdict: str
    inside: bool
    basis: str
    low_share: float
    high_share: float
    forecast_share: float
    measured_share: float


def graded_bars(lines: tuple[Graded, ...]) -> list[GradedBar]:
    """Every graded line with the places of its interval, its forecast and its measurement on a common scale from 0."""
    bars: list[GradedBar] = []
    for line in lines:
        scale = 1.08 * max(line.high, line.measured, line.forecast) or 1.0
        bars.append(
            GradedBar(
                name=quantity_words(line.quantity),
                forecast=format_quantity(line.quantity, line.forecast),
                interval=f"{format_quantity(line.quantity, line.low)} to {format_quantity(line.quantity, line.high)}",
                measured=format_quantity(line.quantity, line.measured),
                verdict=error_words(line),
                inside=line.inside,
                basis=line.basis,
                low_share=line.low / scale,
                high_share=line.high / scale,
                forecast_share=line.forecast / scale,
                measured_share=line.measured / scale,
            )
        )
    return bars


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptBar:
    """One attempt on the run's time line; positions are shares of its width."""

    number: int
    started: str
    duration: str
    steps: str
    ending: str
    host: str
    checkpoints: str
    start_share: float
    width_share: float
    checkpoint_shares: tuple[float, ...]


def attempt_bars(history: RunHistory, *, is_running: bool) -> list[AttemptBar]:
    """The attempts from the first sign of life to the last."""
    if not history.attempts:
        return []
    begin_s = history.attempts[0].started_at_s
    span_s = max(attempt.last_at_s for attempt in history.attempts) - begin_s or 1.0
    return [
        _attempt_bar(attempt, history, begin_s=begin_s, span_s=span_s, is_running=is_running)
        for attempt in history.attempts
    ]


def _attempt_bar(
    attempt: Attempt, history: RunHistory, *, begin_s: float, span_s: float, is_running: bool
) -> AttemptBar:
    saved = [event for event in history.checkpoints if event.attempt == attempt.number]
    silent = "running" if is_running and attempt is history.attempts[-1] else "ended without a word"
    names = ", ".join(str(event.values.get("checkpoint", f"step {event.step}")) for event in saved[-3:])
    return AttemptBar(
        number=attempt.number,
        started=moment(attempt.started_at_s),
        duration=format_duration(attempt.duration_s),
        steps=f"{attempt.first_step} to {attempt.last_step}",
        ending=attempt.ending.replace("_", " ") if attempt.ending else silent,
        host=attempt.host,
        checkpoints=f"{len(saved)}: {'… ' if len(saved) > 3 else ''}{names}" if saved else "none",
        start_share=(attempt.started_at_s - begin_s) / span_s,
        width_share=attempt.duration_s / span_s,
        checkpoint_shares=tuple(max(0.0, event.at_s - begin_s) / span_s for event in saved),
    )


def entry_rows(entries: tuple[LedgerEntry, ...]) -> list[tuple[str, ...]]:
    """Ledger lines: when, what, how much at which price, how much money, why."""
    return [
        (
            entry.started_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M"),
            f"{entry.kind}, attempt {entry.attempt}",
            f"{entry.quantity:.6g} {entry.unit} x ${entry.unit_usd:f}",
            f"${entry.amount_usd:f}" if entry.kind == "adjustment" else format_usd(entry.amount_usd),
            "; ".join(part for part in (entry.source, entry.note) if part),
        )
        for entry in entries
    ]


def environment_rows(source: ReportSource) -> list[tuple[str, str]]:
    """The machine, the model in memory and the versions, as far as the events and the caller tell."""
    record, history = source.record, source.history
    rows = [("run", record.run_id), ("folder", record.folder), ("model", record.model), ("method", record.method)]
    rows += [("machine", f"{record.device}, {record.provider}, {record.market.replace('_', '-')}")]
    if history.peak_bytes is not None:
        rows.append(("memory at its peak", f"{format_bytes(history.peak_bytes)} ({history.peak_kind})"))
    for name in ("params", "trainable_params", "rows", "eval_rows"):
        value = history.loaded.get(name)
        if isinstance(value, int | float):
            rows.append((name.replace("_", " ").replace("params", "parameters"), format_count(value)))
    if source.plan is not None:
        rows.append(("scrimp", source.plan.scrimp_version))
    told = {name: value for name, value in history.started.items() if name not in _TOLD_ELSEWHERE}
    rows += [(name.replace("_", " "), str(value)) for name, value in {**told, **source.environment}.items()]
    return rows


def moment(at_s: float) -> str:
    """`2025-06-01 12:00:05 UTC`."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
