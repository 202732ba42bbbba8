"""From a run's events and the machine's price to ledger entries: one for each attempt and kind of usage.

Entry ids are made of run, attempt and kind, so recording a bill twice changes nothing. Time is billed from an
attempt's first sign of life to its last; an attempt that was killed is billed to its last event. The time between
attempts belongs to no one: the machine of a stopped local run works for its owner.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal

from scrimp.core.run import EntryKind, LedgerEntry
from scrimp.core.units import HOUR_S, usd
from scrimp.ledger.history import Attempt, RunHistory
from scrimp.ledger.sums import product_usd, total_usd

# 10^-9 h is 3.6 microseconds, 10^-9 kWh is 3.6 J: finer than any clock or meter behind the figures.
_FINEST = Decimal("1e-9")
_WATTS_PER_KW = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRate:
    """What an hour of a machine costs, all in. `price_usd_per_hour` None: not known.

    `power_w` and `electricity_usd_per_kwh` are for machines whose owner pays the electricity, None elsewhere. The
    electricity is part of the price, as it is in the offer of such a machine, and billed as a line of its own: by what
    meters measured, and by the forecast draw for what they do not cover. `forecast_w` is that of the machine (None: it
    draws `power_w`), `cards_w` that of its cards alone. `source` says where the price comes from, for the entries.
    """

    price_usd_per_hour: Decimal | None
    power_w: float | None = None
    electricity_usd_per_kwh: Decimal | None = None
    forecast_w: float | None = None
    cards_w: float | None = None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """`entries` are closed and go into the ledger; `running` is what the open attempt has used so far, never recorded.

    `unpriced` says in words which usage has no known price: it is not zero, it is missing from the sum.
    """

    entries: tuple[LedgerEntry, ...]
    running: tuple[LedgerEntry, ...]
    unpriced: tuple[str, ...]

    @property
    def total_usd(self) -> Decimal:
        """Closed and running together."""
        return total_usd(entry.amount_usd for entry in (*self.entries, *self.running))


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledRun:
    """Whose bill it is."""

    run_id: str
    project: str
    rate: MachineRate


def bill(history: RunHistory, *, run: BilledRun, process_ended: bool) -> Bill:
    """Price every attempt. An attempt is closed by its last word, by a later attempt, or because its process ended.

    The price an attempt was started with goes before the run's rate: three machines may have three prices.
    """
    closed: list[LedgerEntry] = []
    running: list[LedgerEntry] = []
    unpriced: list[str] = []
    for attempt in history.attempts:
        is_open = attempt is history.attempts[-1] and attempt.ending is None and not process_ended
        (running if is_open else closed).extend(_entries(attempt, run=run, is_open=is_open))
        if attempt.price_usd_per_hour is None and run.rate.price_usd_per_hour is None:
            unpriced.append(f"{attempt.duration_s:.0f} s of machine time (attempt {attempt.number})")
    return Bill(entries=tuple(closed), running=tuple(running), unpriced=tuple(unpriced))


def unrecorded(entries: Iterable[LedgerEntry], recorded: Iterable[LedgerEntry]) -> tuple[LedgerEntry, ...]:
    """What to append so that the ledger holds `entries`, given what it holds of the run already.

    New entries as they are. Of one that was recorded when less had been used (a process that was taken for dead went
    on for a while), the rest, at the price that was recorded. A price that was changed since changes no old entry.
    """
    known = {entry.entry_id: entry for entry in recorded}
    missing: list[LedgerEntry] = []
    for entry in entries:
        base = known.get(entry.entry_id)
        if base is None:
            missing.append(entry)
            continue
        parts = [base, *(item for name, item in known.items() if name.startswith(f"{entry.entry_id}/more-"))]
        rest = entry.quantity - sum((part.quantity for part in parts), Decimal(0))
        if rest > 0:
            more = replace(
                entry,
                entry_id=f"{entry.entry_id}/more-{len(parts)}",
                quantity=rest,
                unit_usd=base.unit_usd,
                amount_usd=product_usd(rest, base.unit_usd),
                started_at=max(part.ended_at for part in parts),
                note="went on after it was billed",
            )
            missing.append(more)
    return tuple(missing)


def billed_kwh(entries: Iterable[LedgerEntry]) -> float | None:
    """The electricity among the entries; None where none was billed."""
    used = [entry.quantity for entry in entries if entry.kind == "electricity" and entry.unit == "kWh"]
    return float(sum(used)) if used else None


def _entries(attempt: Attempt, *, run: BilledRun, is_open: bool) -> list[LedgerEntry]:
    usages = [usage for usage in (_machine_time(attempt, run.rate), _electricity(attempt, run.rate)) if usage]
    return [
        LedgerEntry(
            entry_id=f"{run.run_id}/{attempt.number}/{usage.kind}",
            run_id=run.run_id,
            project=run.project,
            attempt=attempt.number,
            kind=usage.kind,
            amount_usd=product_usd(usage.quantity, usage.unit_usd),
            quantity=usage.quantity,
            unit=usage.unit,
            unit_usd=usage.unit_usd,
            started_at=datetime.fromtimestamp(attempt.started_at_s, UTC),
            ended_at=datetime.fromtimestamp(attempt.last_at_s, UTC),
            source=usage.source,
            note=_note(attempt, is_open=is_open),
        )
        for usage in usages
        if usage.quantity
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Usage:
    """What one attempt used of one thing, and the price of a unit of it."""

    kind: EntryKind
    quantity: Decimal
    unit: str
    unit_usd: Decimal
    source: str


def _machine_time(attempt: Attempt, rate: MachineRate) -> _Usage | None:
    own_price = attempt.price_usd_per_hour
    price = rate.price_usd_per_hour if own_price is None else own_price
    if price is None:
        return None
    if rate.power_w is not None and rate.electricity_usd_per_kwh is not None:
        price = max(Decimal(0), price - usd(rate.power_w) / _WATTS_PER_KW * rate.electricity_usd_per_kwh)
    known = own_price is None or own_price == rate.price_usd_per_hour
    source = rate.source if known else "the price this attempt was started with"
    return _Usage(kind="machine", quantity=_fine(_hours(attempt)), unit="h", unit_usd=price, source=source)


def _electricity(attempt: Attempt, rate: MachineRate) -> _Usage | None:
    if rate.power_w is None or rate.electricity_usd_per_kwh is None:
        return None
    energy_kwh, source = _energy(attempt, rate, power_w=rate.power_w)
    return _Usage(
        kind="electricity",
        quantity=_fine(energy_kwh),
        unit="kWh",
        unit_usd=rate.electricity_usd_per_kwh,
        source=source,
    )


def _energy(attempt: Attempt, rate: MachineRate, *, power_w: float) -> tuple[Decimal, str]:
    """kWh of one attempt and where they come from: meters as far as they reach, the forecast draw for the rest."""
    draw_w = power_w if rate.forecast_w is None else rate.forecast_w
    reading = attempt.energy
    if reading is None:
        words = "as configured" if rate.forecast_w is None else "as forecast"
        return _hours(attempt) * usd(draw_w) / _WATTS_PER_KW, f"{draw_w:.4g} W {words} x time"
    measured = f"measured by {reading.source or 'a meter'}: {reading.covers}"
    if reading.gpu_kwh is None or rate.cards_w is None or reading.scope not in ("gpus", "gpus_and_cpu"):
        return usd(reading.energy_kwh), measured
    rest_w = max(0.0, draw_w - rate.cards_w)
    rest_kwh = max(_hours(attempt) * usd(rest_w) / _WATTS_PER_KW, usd(reading.cpu_kwh or 0.0))
    return usd(reading.gpu_kwh) + rest_kwh, f"{measured}; everything else {rest_w:.4g} W as forecast x time"


def _hours(attempt: Attempt) -> Decimal:
    return Decimal(str(attempt.duration_s)) / HOUR_S


def _fine(quantity: Decimal) -> Decimal:
    return quantity.quantize(_FINEST, rounding=ROUND_HALF_UP)


def _note(attempt: Attempt, *, is_open: bool) -> str:
    if is_open:
        return "still running"
    if attempt.ending is None:
        return "ended without a word; billed to its last event"
    return attempt.ending.replace("_", " ")
