"""Nouns of one small run, for the tests of ledger, report and verbs."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

from scrimp.core.run import Graded, LedgerEntry, RunEvent, RunRecord

START = datetime(2025, 6, 1, 12, 0, tzinfo=UTC)


def make_entry(entry_id="run-1/1/machine", **changes):
    entry = LedgerEntry(
        entry_id=entry_id,
        run_id="run-1",
        project="default",
        attempt=1,
        kind="machine",
        amount_usd=Decimal("0.05"),
        quantity=Decimal("0.5"),
        unit="h",
        unit_usd=Decimal("0.10"),
        started_at=START,
        ended_at=START,
        source="spec",
    )
    return replace(entry, **changes)


def priced(entry_id, amount, **changes):
    """An entry of that amount: one unit of it."""
    amount = Decimal(amount)
    return make_entry(entry_id, amount_usd=amount, quantity=Decimal(1), unit_usd=amount, **changes)


def make_record(run_id="run-1", **changes):
    record = RunRecord(
        run_id=run_id,
        name="quickstart",
        project="default",
        state="finished",
        created_at=START,
        ended_at=START,
        folder="/runs/quickstart",
        model="smollm2-135m-instruct",
        method="lora",
        device="cpu",
        provider="local",
        market="local",
        attempts=1,
        steps_done=20,
        steps_planned=20,
        spent_usd=Decimal(0),
        forecast_usd=Decimal("0.06"),
        eval_loss_before=4.0,
        eval_loss_after=3.5,
        graded=(
            Graded(quantity="peak_bytes", forecast=2e9, low=1.8e9, high=2.4e9, measured=2.1e9, basis="formula"),
            Graded(quantity="total_s", forecast=120.0, low=90.0, high=150.0, measured=170.0, basis="measured"),
        ),
    )
    return replace(record, **changes)


def make_events(*, steps=4, attempt=1, first=1, at_s=1_000.0, ending="finished", price="0.10", step_s=1.0):
    """One attempt: started, steps of `step_s` each, a last word (none: it was killed)."""

    def event(kind, step, at, **values):
        return RunEvent(at_s=at, attempt=attempt, kind=kind, step=step, values=values)

    events = [event("started", first - 1, at_s, pid=7, host="box", device="cpu", threads=1, price_usd_per_hour=price)]
    if first > 1:
        events.append(event("resumed", first - 1, at_s, checkpoint=f"step-{first - 1:06d}", from_step=first - 1))
    else:
        events.append(event("evaluated", 0, at_s, loss=4.0, perplexity=54.6, eval_tokens=50, when="before", eval_s=1))
    for step in range(first, first + steps):
        at = at_s + (step - first + 1) * step_s
        values = {
            "loss": 4.0 - 0.1 * step, "learning_rate": 1e-4, "gradient_norm": 1.0, "total_tokens": 64,
            "trained_tokens": 32, "step_s": step_s, "cpu_s": step_s, "tokens_per_s": 64 / step_s,
            "spent_usd": 0.001 * step,
        }  # fmt: skip
        events.append(event("step", step, at, **values))
    last, end = first + steps - 1, at_s + steps * step_s
    if ending == "finished":
        events.append(event("evaluated", last, end, loss=3.5, perplexity=33.1, eval_tokens=50, when="after", eval_s=1))
        events.append(
            event("measured", last, end, peak_bytes=2.1e9, peak_kind="rss", train_s=steps * step_s, total_s=1)
        )
    if ending is not None:
        events.append(event(ending, last, end))
    return events
