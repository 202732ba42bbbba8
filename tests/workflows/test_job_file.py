"""resolved.json: what is written is read, moved folders are followed, damage is told in three lines."""

import pytest

from scrimp.core.errors import SpecError
from scrimp.workflows.job_file import read_job, write_job


def test_a_job_comes_back_as_it_was_and_follows_its_folder(interrupted_run, tmp_path):
    folder, _, _ = interrupted_run
    job = read_job(folder / "resolved.json")
    write_job(job, folder / "resolved.json")
    assert read_job(folder / "resolved.json") == job
    assert not list(folder.glob("*.tmp"))
    moved = folder.rename(tmp_path / "moved")
    assert read_job(moved / "resolved.json").run_folder == str(moved)


def test_a_missing_and_a_damaged_file_say_what_to_do(tmp_path):
    with pytest.raises(SpecError, match="no file") as caught:
        read_job(tmp_path / "resolved.json")
    assert "scrimp run" in caught.value.next_step
    (tmp_path / "resolved.json").write_text('{"run_id": 3')
    with pytest.raises(SpecError, match=r"resolved\.json"):
        read_job(tmp_path / "resolved.json")
