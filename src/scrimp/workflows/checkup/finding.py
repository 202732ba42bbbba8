"""What one check found, and how secrets are kept out of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["ok", "note", "problem"]
Group = Literal["machine", "packages", "disk", "model", "ledger", "prices", "hub", "environment"]
Value = str | int | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One finding. `values` are the same facts for programs, units in their names; `next_step` is a command."""

    group: Group
    name: str
    status: Status
    found: str
    next_step: str = ""
    values: Mapping[str, Value] = field(default_factory=dict[str, Value])
