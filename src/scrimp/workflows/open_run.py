"""A prepared run folder, and who looks on while it is worked on."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from scrimp.core.plan import Plan
from scrimp.core.probe import Probed
from scrimp.core.recipe import ResolvedJob
from scrimp.core.run import RunEvent

SPEC_FILE = "spec.yaml"
PLAN_FILE = "plan.yaml"
# What a run was planned as before memory ran out and it was planned again.
FIRST_PLAN_FILE = "plan.1.yaml"
ADAPTER_FOLDER = "adapter"


def _nobody_listens(probed: Probed) -> None:
    """A probe that nobody wants to hear of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Who looks on: told the plan before the job starts, every event, and what a probe makes of the forecasts."""

    on_plan: Callable[[Plan, Path], None]
    on_event: Callable[[RunEvent], None]
    on_probe: Callable[[Probed], None] = _nobody_listens


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """A run folder with what it was planned as and what it is told to do."""

    folder: Path
    plan: Plan
    job: ResolvedJob
    created_at: datetime
