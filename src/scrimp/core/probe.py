"""A probe: a few real optimizer steps before the paid part, and what they say about the forecasts."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal

from scrimp.core.data import StepPlan
from scrimp.core.job import ProbeChoice
from scrimp.core.plan import Candidate, Plan
from scrimp.core.run import EventValue

PROBE_STEPS = 3
# More micro-batches of a step say nothing new about its memory or its speed.
PROBED_MICRO_BATCHES = 4
# A probe that costs more of a run than this is left out.
MOST_OF_THE_RUN = 0.10
# Graded lines of what a probe had corrected carry the plan's names behind this.
PROBED = "probed_"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReading:
    """What a probe measured on the machine that trains.

    peak_bytes          on a card what the allocator handed out at most, on a CPU the resident set of the process
    reserved_bytes      what the allocator held at most; None on a CPU
    driver_bytes        what the driver shows more than before the process began; None on a CPU or where it says nothing
    tensor_bytes        weights, adapters and optimizer states as they lie in memory
    step_s              a mean step of the run at the speed of the probe's warm steps
    evaluation_s        all held-out rows once, from one micro-batch of them; None without rows
    sampling_s          all samples of the run, from a few tokens; None without prompts
    load_s              from the start of the attempt to the probe
    probe_s             the probe itself
    micro_batch_tokens  tokens of the fullest micro-batch of the run, which the probe has trained on
    """

    steps: int
    device_kind: Literal["gpu", "cpu"]
    peak_bytes: int
    reserved_bytes: int | None
    driver_bytes: int | None
    tensor_bytes: int
    step_s: float
    evaluation_s: float | None
    sampling_s: float | None
    load_s: float
    probe_s: float
    micro_batch_tokens: int

    @classmethod
    def of(cls, values: Mapping[str, EventValue]) -> "ProbeReading | None":
        """Out of the values of a `probed` event; None when they are not those of a reading."""
        found = {item.name: values.get(item.name) for item in fields(cls)}
        optional = {"reserved_bytes", "driver_bytes", "evaluation_s", "sampling_s"}
        if any(value is None for name, value in found.items() if name not in optional):
            return None
        return cls(**found)  # type: ignore[arg-type] # the fields of the event are those of this class


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """A plan, what a probe of it measured, and the same candidate with the forecasts that follow from that.

    `replanned` says in words what was changed before the probe fitted into memory; empty when the plan stands.
    """

    plan: Plan
    reading: ProbeReading
    corrected: Candidate
    replanned: tuple[str, ...] = ()

    @property
    def corrected_plan(self) -> Plan:
        """The plan with the corrected candidate."""
        return replace(self.plan, chosen=self.corrected)


def costs_too_much(steps: StepPlan) -> bool:
    """Whether the probe's steps are more of the run than a look ahead is worth."""
    return steps.steps * MOST_OF_THE_RUN < PROBE_STEPS


def is_probed(choice: ProbeChoice, steps: StepPlan) -> bool:
    """Whether a run of these steps is probed before its first."""
    return choice in ("on", "only") or (choice == "auto" and not costs_too_much(steps))
