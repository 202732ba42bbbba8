"""What the events of a run become: a record, a bill, a page; and what must not hide it."""

from datetime import UTC, datetime

from scrimp.ledger.store import Ledger
from scrimp.workflows.execute import OpenRun, settle
from scrimp.workflows.job_file import read_job


def test_a_page_that_cannot_be_written_does_not_hide_how_the_run_ended(interrupted_run, monkeypatch):
    from dataclasses import replace

    folder, plan, world = interrupted_run
    notes = []
    world = replace(world, note=notes.append)
    # A folder in the place of the page: no right of any user writes over it.
    (folder / "report.html").mkdir()
    opened = OpenRun(
        folder=folder, plan=plan, job=read_job(folder / "resolved.json"), created_at=datetime(2025, 6, 2, tzinfo=UTC)
    )
    summary = settle(opened, ledger=Ledger(world.ledger_url), world=world)
    assert (summary.record.state, summary.record.steps_done) == ("interrupted", 7)
    assert summary.report_path is None
    assert summary.next_step == f"scrimp resume {folder.name}"
    assert any("report.html" in note and "scrimp report" in note for note in notes)
