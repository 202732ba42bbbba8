"""Real processes: eight at once on a new file lose nothing, and kill -9 loses nothing that was committed."""

import signal
import subprocess
import sys

import pytest

from scrimp.ledger.queries import EntryQuery
from scrimp.ledger.store import Ledger

WRITERS = 8
EACH = 12

# Writes entries one transaction at a time and says so after each commit.
WRITER = """
import sys
from datetime import UTC, datetime
from decimal import Decimal
from scrimp.core.run import LedgerEntry
from scrimp.ledger.store import Ledger

url, run_id, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
ledger, now = Ledger(url), datetime(2025, 1, 1, tzinfo=UTC)
for number in range(count):
    amount = Decimal(number + 1) / 1000
    ledger.record(LedgerEntry(entry_id=f"{run_id}/{number}", run_id=run_id, project="p", attempt=1, kind="machine",
        amount_usd=amount, quantity=Decimal(1), unit="h", unit_usd=amount, started_at=now, ended_at=now, source="test"))
    print(number, flush=True)
"""


def _writer(url, run_id, count):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, url, run_id, str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_eight_writers_at_once_lose_nothing(url):
    writers = [_writer(url, f"run-{number}", EACH) for number in range(WRITERS)]
    for writer in writers:
        _, errors = writer.communicate(timeout=60)
        assert writer.returncode == 0, errors
    ledger = Ledger(url)
    assert len(ledger.entries()) == WRITERS * EACH
    assert ledger.spent_usd() * 1000 == WRITERS * EACH * (EACH + 1) // 2


@pytest.mark.parametrize("killed_after", [1, 7, 20])
def test_kill_9_loses_nothing_that_was_committed(url, nouns, killed_after):
    with _writer(url, "run-1", 100_000) as writer:
        said = [int(writer.stdout.readline()) for _ in range(killed_after)]
        writer.send_signal(signal.SIGKILL)
        said += [int(line) for line in writer.stdout.read().splitlines()]
    ledger = Ledger(url)
    kept = {entry.entry_id for entry in ledger.entries(EntryQuery(run_id="run-1"))}
    assert kept >= {f"run-1/{number}" for number in said}
    # At most one commit more than was said: the one whose line the kill cut off.
    assert len(kept) - len(said) in (0, 1)
    total = ledger.spent_usd()
    assert ledger.record(nouns.priced("after the kill", "1")) == 1
    assert Ledger(url).spent_usd() == total + 1
