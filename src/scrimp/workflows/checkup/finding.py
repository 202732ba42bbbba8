"""What one check found, and how secrets are kept out of it."""

import re
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


def hide_secrets(text: str) -> str:
    """`text` with the passwords of every URL in it, and what its query calls a key or token, as `***`.

    Rather too much is hidden than too little: a password may hold @ and /, and the address may be misspelt.
    """
    text = re.sub(r"(https?://)[^\s/]*@", r"\1***@", text)
    text = re.sub(r"(://[^\s:/@]*):\S*@", r"\1:***@", text)
    text = re.sub(r"^([^\s:/@]*):(?!//)\S*@", r"\1:***@", text)
    return re.sub(r"([?&][^=&\s]*(?:pass|pwd|secret|token|key)[^=&\s]*=)[^&\s]*", r"\1***", text, flags=re.IGNORECASE)
