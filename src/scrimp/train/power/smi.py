"""Power of NVIDIA cards by the nvidia-smi command, for machines without its Python library."""

import subprocess
from collections.abc import Callable, Sequence

from scrimp.train.power.nvml import SampledPower

_QUERY = ("--query-gpu=uuid,power.draw", "--format=csv,noheader,nounits")
# Starting the command takes a twentieth of a second of one core: at this rate one part in a hundred.
_SAMPLE_S = 5.0
_TIMEOUT_S = 10.0


def open_smi(
    command: Sequence[str], cards: Sequence[str], *, clock_s: Callable[[], float], period_s: float = _SAMPLE_S
) -> tuple[SampledPower | None, str]:
    """A meter on the cards with these UUIDs (none: the only card there is); else None and why not, in words."""

    def read_w() -> float | None:
        return power_of(ask(command), cards)

    answer = ask(command)
    if answer is None:
        return None, "nvidia-smi does not answer"
    if power_of(answer, cards) is None:
        return None, "nvidia-smi does not tell the power of the card that trains"
    source = f"nvidia-smi power, sampled every {period_s:g} s"
    return SampledPower(read_w, clock_s=clock_s, period_s=period_s, source=source), ""


def ask(command: Sequence[str]) -> str | None:
    """The command's answer; None where it is missing, fails or hangs."""
    try:
        done = subprocess.run(
            [*command, *_QUERY],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def power_of(answer: str | None, cards: Sequence[str]) -> float | None:
    """Watts of these cards together in an answer of `uuid, watts` lines; None unless every one of them tells."""
    lines = [line.partition(",") for line in (answer or "").splitlines() if "," in line]
    told = {uuid.strip(): _watts(text) for uuid, _, text in lines}
    wanted = list(cards) or (list(told) if len(told) == 1 else [])
    found = [told.get(card) for card in wanted]
    known = [watts for watts in found if watts is not None]
    return sum(known) if known and len(known) == len(found) else None


def _watts(text: str) -> float | None:
    """None for `[N/A]` and the like."""
    try:
        return float(text)
    except ValueError:
        return None
