"""Whatever stops the making of a folder, there is a whole one or none; and two makers do the work once."""

import json
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from scrimp.core.errors import ResourceError
from scrimp.models import atomic_folder
from scrimp.models.atomic_folder import MANIFEST, damaged_files, is_whole, make_folder

FACTS = {"from": "test", "version": 1}
# A maker that says when it is in the middle, and goes on only when told to.
MAKER = """
import sys
from pathlib import Path
from scrimp.models.atomic_folder import make_folder

def fill(folder):
    (folder / "half").write_bytes(b"x" * 1000)
    print("filling", flush=True)
    sys.stdin.readline()
    (folder / "whole").write_bytes(b"y")

make_folder(Path(sys.argv[1]), facts={"from": "test", "version": 1}, size_bytes=10, fill=fill)
print("done", flush=True)
"""


def _start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", MAKER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _fill(folder: Path) -> None:
    (folder / "a").write_bytes(b"one")
    (folder / "sub").mkdir()
    (folder / "sub" / "b").write_bytes(b"two")


def test_the_manifest_lists_every_file_and_where_they_come_from(tmp_path: Path):
    folder = tmp_path / "models" / "m"
    make_folder(folder, facts=FACTS, size_bytes=10, fill=_fill)
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["version"] == 1
    assert set(manifest["files"]) == {"a", "sub/b"}
    assert is_whole(folder, facts=FACTS)
    assert damaged_files(folder) == ()


def test_it_is_made_once_and_again_when_the_facts_change(tmp_path: Path):
    folder, made = tmp_path / "m", []
    for version in (1, 1, 2, 2):
        make_folder(
            folder, facts={**FACTS, "version": version}, size_bytes=10, fill=lambda f: (made.append(1), _fill(f))
        )
    assert len(made) == 2
    assert is_whole(folder, facts={**FACTS, "version": 2})
    assert sorted(p.name for p in tmp_path.iterdir()) == [".m.lock", "m"]


@pytest.mark.parametrize("harm", ["missing", "shorter", "manifest"])
def test_a_harmed_folder_is_made_again(tmp_path: Path, harm: str):
    folder = tmp_path / "m"
    make_folder(folder, facts=FACTS, size_bytes=10, fill=_fill)
    if harm == "missing":
        (folder / "a").unlink()
    elif harm == "shorter":
        (folder / "sub" / "b").write_bytes(b"t")
    else:
        (folder / MANIFEST).write_text("{")
    assert not is_whole(folder, facts=FACTS)
    make_folder(folder, facts=FACTS, size_bytes=10, fill=_fill)
    assert (folder / "sub" / "b").read_bytes() == b"two"


def test_changed_bytes_of_the_same_length_are_found_by_their_hash(tmp_path: Path):
    folder = tmp_path / "m"
    make_folder(folder, facts=FACTS, size_bytes=10, fill=_fill)
    (folder / "a").write_bytes(b"eno")
    assert damaged_files(folder) == ("a",)


def test_an_error_while_filling_leaves_nothing(tmp_path: Path):
    def fail(folder: Path) -> None:
        (folder / "a").write_bytes(b"one")
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        make_folder(tmp_path / "m", facts=FACTS, size_bytes=10, fill=fail)
    assert [p.name for p in tmp_path.iterdir()] == [".m.lock"]


def test_a_kill_in_the_middle_leaves_no_folder_and_the_next_call_cleans_up(tmp_path: Path):
    folder = tmp_path / "m"
    with _start(folder) as maker:
        assert maker.stdout is not None
        assert maker.stdout.readline() == "filling\n"
        maker.kill()
    assert not folder.exists()
    assert list(tmp_path.glob(".m.new-*"))
    make_folder(folder, facts=FACTS, size_bytes=10, fill=_fill)
    assert is_whole(folder, facts=FACTS)
    assert not list(tmp_path.glob(".m.new-*"))


def test_of_two_processes_at_once_one_works_and_the_other_waits(tmp_path: Path):
    folder = tmp_path / "m"
    with _start(folder) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "filling\n"
        with _start(folder) as second:
            first.communicate("go on\n")
            said, _ = second.communicate()
    assert (first.returncode, second.returncode) == (0, 0)
    assert said == "done\n"
    assert (folder / "whole").read_bytes() == b"y"


def test_a_full_disk_is_refused_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(atomic_folder.shutil, "disk_usage", lambda path: usage(100, 95, 5))
    with pytest.raises(ResourceError, match="5 B free, 10 B are needed"):
        make_folder(tmp_path / "m", facts=FACTS, size_bytes=10, fill=_fill)
    assert [p.name for p in tmp_path.iterdir()] == [".m.lock"]
