"""What happens while a job runs, and what is kept of it: events, ledger entries, the record of a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Literal

EventKind = Literal[
    "started",
    "loaded",
    "resumed",
    "skipped_checkpoint",
    "probed",
    "replanned",
    "step",
    "evaluated",
    "sampled",
    "checkpointed",
    "measured",
    "interrupted",
    "stopped_at_cap",
    "finished",
    "failed",
    "note",
]
EventValue = str | int | float | bool | None
RunState = Literal["planned", "running", "interrupted", "stopped_at_cap", "finished", "failed"]
EntryKind = Literal["machine", "electricity", "disk", "egress", "api", "adjustment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """One line of events.jsonl. `at_s` is Unix time, `attempt` counts from 1, `step` is the last finished step.

    values by kind (units in the keys):
      started            pid, host, device, threads, run_id, price_usd_per_hour
      loaded             load_s, params, trainable_params, rows, eval_rows, layout
      resumed            checkpoint, from_step
      skipped_checkpoint checkpoint, reason
      probed             the fields of a ProbeReading
      replanned          reason, change, micro_batch_tokens, checkpointing; written by whoever starts the next attempt
      step               loss, learning_rate, gradient_norm, total_tokens, trained_tokens, step_s, cpu_s,
                         tokens_per_s, spent_usd, and the energy of this attempt so far (below)
      evaluated          loss, perplexity, eval_tokens, when ("before" | "during" | "after"), eval_s
      sampled            prompt, answer, when ("before" | "after")
      checkpointed       checkpoint, size_bytes, save_s
      measured           peak_bytes (RSS or device), peak_kind, train_s, total_s; energy_kwh, gpu_kwh, cpu_kwh,
                         process_kwh, energy_source, energy_covers where this machine has meters (core/energy.py)
      interrupted        signal, checkpoint
      stopped_at_cap     spent_usd, budget_usd, checkpoint
      finished           adapter, steps, total_tokens, trained_tokens, final_loss
      failed             error, exit_code, out_of_memory
      note               text
    """

    at_s: float
    attempt: int
    kind: EventKind
    step: int
    values: Mapping[str, EventValue] = field(default_factory=dict[str, EventValue])


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One immutable line of spending; what was spent is the sum of such lines and nothing else.

    `quantity` is in `unit` (s, kWh, GB), `unit_usd` the price of one unit; amount_usd = quantity x unit_usd.
    """

    entry_id: str
    run_id: str
    project: str
    attempt: int
    kind: EntryKind
    amount_usd: Decimal
    quantity: Decimal
    unit: str
    unit_usd: Decimal
    started_at: datetime
    ended_at: datetime
    source: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """One forecast against what was measured.

    `quantity` carries its unit: peak_bytes, step_s, train_s, total_s, cost_usd, energy_kwh. `forecast` is what the plan
    said; `formula` what the formulas alone said, before anything learnt from other runs was folded in (None in ledgers
    that did not keep it). Calibration learns from `measured` over `formula`.
    """

    quantity: str
    forecast: float
    low: float
    high: float
    measured: float
    basis: str
    formula: float | None = None

    @property
    def error_ratio(self) -> float:
        """measured / forecast - 1: positive when reality was more than forecast."""
        return self.measured / self.forecast - 1 if self.forecast else float("inf")

    @property
    def inside(self) -> bool:
        """Whether the interval held."""
        return self.low <= self.measured <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run as the ledger keeps it.

    `scrimp_version` is whose formulas foretold it, `features` what of its recipe, data and software they depend on:
    with the graded lines they are a measured run that can still be learnt from when its folder is gone.
    """

    run_id: str
    name: str
    project: str
    state: RunState
    created_at: datetime
    ended_at: datetime | None
    folder: str
    model: str
    method: str
    device: str
    provider: str
    market: str
    attempts: int
    steps_done: int
    steps_planned: int
    spent_usd: Decimal
    forecast_usd: Decimal | None
    eval_loss_before: float | None
    eval_loss_after: float | None
    graded: tuple[Graded, ...] = ()
    scrimp_version: str = ""
    features: Mapping[str, EventValue] = field(default_factory=dict[str, EventValue])


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What `scrimp run` ends with: the record, the samples before and after, where the results lie."""

    record: RunRecord
    samples: tuple[tuple[str, str, str], ...]
    adapter_folder: str | None
    report_path: str | None
    ledger_url: str
    next_step: str | None = None
