"""Room on the disk."""

import pytest

from scrimp.core.errors import ResourceError
from scrimp.core.units import GIB, MIB
from scrimp.train.preflight import check_disk


def _check(folder, *, free_bytes, there_bytes=0):
    check_disk(
        folder, checkpoint_bytes=GIB, checkpoints=3, there_bytes=there_bytes, free_bytes=lambda _folder: free_bytes
    )


def test_all_checkpoints_at_once_must_fit(tmp_path):
    _check(tmp_path, free_bytes=3 * GIB + 64 * MIB)
    with pytest.raises(ResourceError, match=r"2\.00 GiB free, 3\.06 GiB are needed"):
        _check(tmp_path, free_bytes=2 * GIB)


def test_what_is_there_already_is_not_asked_for_twice(tmp_path):
    _check(tmp_path, free_bytes=GIB + 64 * MIB, there_bytes=2 * GIB)


def test_a_folder_that_cannot_be_written_to_is_found_now(tmp_path, monkeypatch):
    def refuse(_folder, *, fill):
        raise ResourceError(what="read-only")

    _check(tmp_path, free_bytes=100 * GIB)
    assert list((tmp_path / "checkpoints").iterdir()) == [], "the trial leaves nothing"
    monkeypatch.setattr("scrimp.train.preflight.publish", refuse)
    with pytest.raises(ResourceError, match="read-only"):
        _check(tmp_path, free_bytes=100 * GIB)
