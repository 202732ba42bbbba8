"""The outside world as one argument: environment, clock, working directory."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from scrimp.core.paths import ledger_url
from scrimp.core.redact import hide_secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What workflows may touch besides their arguments. Tests hand in their own.

    `note` takes a line for people (stderr on the command line).
    """

    env: Mapping[str, str]
    now: Callable[[], datetime]
    cwd: Path
    note: Callable[[str], None]

    @property
    def ledger_url(self) -> str:
        """The ledger of this environment."""
        return ledger_url(self.env)

    @property
    def shown_ledger(self) -> str:
        """Its address as people and logs may see it."""
        return hide_secrets(self.ledger_url)


def real_world(*, note: Callable[[str], None]) -> World:
    """This process's environment and clock."""
    return World(env=dict(os.environ), now=lambda: datetime.now(UTC), cwd=Path.cwd(), note=note)
