"""Folders that are whole or not there."""

import os
from pathlib import Path

import pytest

from scrimp.core.errors import ResourceError
from scrimp.train.durable import MANIFEST, damage, publish, remove, sweep


def _fill(folder):
    (folder / "a.bin").write_bytes(b"a" * 1000)
    (folder / "sub").mkdir()
    (folder / "sub" / "b.txt").write_text("b")


@pytest.fixture
def published(tmp_path):
    return publish(tmp_path / "runs" / "thing", fill=_fill)


def test_what_is_published_is_whole(published):
    assert damage(published.folder) is None
    assert published.size_bytes == sum(p.stat().st_size for p in published.folder.rglob("*") if p.is_file())
    assert [path.name for path in published.folder.parent.iterdir()] == ["thing"], "nothing else is left"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda f: (f / "a.bin").unlink(), "a.bin cannot be read"),
        (lambda f: os.truncate(f / "a.bin", 0), "a.bin has 0 of 1,000 bytes"),
        (lambda f: os.truncate(f / "a.bin", 999), "a.bin has 999 of 1,000 bytes"),
        (lambda f: (f / "a.bin").write_bytes(b"a" * 999 + b"b"), "a.bin is damaged"),
        (lambda f: (f / "sub" / "b.txt").write_text("c"), "sub/b.txt is damaged"),
        (lambda f: (f / MANIFEST).unlink(), "never finished"),
        (lambda f: os.truncate(f / MANIFEST, 20), "manifest.json is damaged"),
        (lambda f: (f / MANIFEST).write_text("[]"), "manifest.json is damaged"),
        (lambda f: (f / MANIFEST).write_text('{"files": {"a.bin": 3}}'), "manifest.json is damaged"),
    ],
)
def test_any_damage_is_seen_and_named(published, spoil, said):
    spoil(published.folder)
    assert said in damage(published.folder)


def test_the_manifest_is_written_last_and_everything_is_flushed_before_the_rename(tmp_path, monkeypatch):
    order = []
    flush, rename = os.fsync, os.rename
    monkeypatch.setattr(
        "scrimp.core.sealed.os.fsync",
        lambda fd: (order.append(str(Path(f"/proc/self/fd/{fd}").readlink())), flush(fd)),
    )
    monkeypatch.setattr("pathlib.Path.rename", lambda self, to: (order.append("rename"), rename(self, to))[1])
    publish(tmp_path / "thing", fill=_fill)
    names = [entry.rpartition("/")[2] for entry in order]
    assert names == ["a.bin", "b.txt", MANIFEST, "sub", ".thing.new", "rename", tmp_path.name]


def test_a_full_disk_leaves_nothing_half_and_touches_nothing_old(tmp_path, published):
    def full(folder):
        (folder / "a.bin").write_bytes(b"x")
        raise OSError(28, "No space left on device")

    with pytest.raises(ResourceError, match="No space left") as caught:
        publish(published.folder, fill=full)
    assert caught.value.exit_code == 8
    assert damage(published.folder) is None
    assert [path.name for path in published.folder.parent.iterdir()] == ["thing"]


def test_publishing_again_replaces(published):
    publish(published.folder, fill=lambda folder: (folder / "new").write_text("n") and None)
    assert sorted(path.name for path in published.folder.iterdir()) == [MANIFEST, "new"]


def test_sweeping_removes_what_killed_processes_left(tmp_path):
    for name in (".step-000003.new", ".step-000001.old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text("x")
    (tmp_path / ".keep").mkdir()
    assert sweep(tmp_path) == (".step-000001.old", ".step-000003.new")
    assert [path.name for path in tmp_path.iterdir()] == [".keep"]
    assert sweep(tmp_path / "missing") == ()


def test_removing_what_is_not_there_is_no_error(tmp_path):
    remove(tmp_path / "nothing")
    assert not list(tmp_path.iterdir())
