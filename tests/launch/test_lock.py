"""The lock of a run folder, on file systems with and without locks of their own."""

import errno
import json
import os
import socket

import pytest

from scrimp.core.errors import ResourceError
from scrimp.launch import lock


def _no_locks(_file, _how):
    raise OSError(errno.ENOSYS, "Function not implemented")


def test_a_free_folder_has_no_holder(tmp_path):
    assert lock.holder(tmp_path) is None
    with lock.take(tmp_path):
        pass
    assert lock.holder(tmp_path) is None


def test_a_taken_folder_names_its_holder(tmp_path):
    with lock.take(tmp_path) as held:
        assert lock.holder(tmp_path) == lock.Holder(pid=0, mark="", host=""), "before it was written down"
        held.name_holder(os.getpid())
        found = lock.holder(tmp_path)
        assert (found.pid, found.host) == (os.getpid(), socket.gethostname())
        with pytest.raises(ResourceError, match=f"process {os.getpid()}"):
            lock.take(tmp_path)


def test_looking_does_not_get_in_the_way_of_taking(tmp_path):
    import fcntl

    with lock.take(tmp_path):
        pass
    looks = iter([BlockingIOError, BlockingIOError])

    def busy_twice(file, how):
        if error := next(looks, None):
            raise error
        fcntl.flock(file, how)

    with lock.take(tmp_path, flock=busy_twice):
        assert lock.holder(tmp_path) is not None


def test_without_locks_the_written_process_counts(tmp_path):
    with lock.take(tmp_path, flock=_no_locks) as held:
        held.name_holder(os.getpid())
    assert lock.holder(tmp_path, flock=_no_locks).pid == os.getpid()
    with pytest.raises(ResourceError, match="trained already"):
        lock.take(tmp_path, flock=_no_locks)


@pytest.mark.parametrize("changes", [{"mark": "another boot/1"}, {"pid": 2**22 + 1}, {"pid": 2**22 + 1, "mark": ""}])
def test_without_locks_a_dead_or_other_process_does_not_count(tmp_path, changes):
    mine = {"pid": os.getpid(), "mark": lock.process_mark(os.getpid()), "host": socket.gethostname()}
    (tmp_path / lock.LOCK_FILE).write_text(json.dumps(mine | changes))
    assert lock.holder(tmp_path, flock=_no_locks) is None
    with lock.take(tmp_path, flock=_no_locks):
        pass


def test_without_locks_another_machine_cannot_be_asked(tmp_path):
    (tmp_path / lock.LOCK_FILE).write_text(json.dumps({"pid": 1, "mark": "", "host": "elsewhere"}))
    assert lock.holder(tmp_path, flock=_no_locks).host == "elsewhere"
    with pytest.raises(ResourceError) as caught:
        lock.take(tmp_path, flock=_no_locks)
    assert "kill" not in caught.value.next_step


def test_another_fault_is_not_swallowed(tmp_path):
    def broken(_file, _how):
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(OSError, match="Input/output"):
        lock.take(tmp_path, flock=broken)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}'])
def test_a_damaged_lock_file_is_no_holder(tmp_path, text):
    (tmp_path / lock.LOCK_FILE).write_text(text)
    assert lock.holder(tmp_path) is None
    with lock.take(tmp_path) as held:
        held.name_holder(os.getpid())
        assert lock.holder(tmp_path).pid == os.getpid()


def test_a_trainer_started_by_hand_takes_the_lock_and_one_started_by_an_engine_has_it(tmp_path):
    with lock.hold(tmp_path, env={}):
        assert lock.holder(tmp_path).pid == os.getpid()
    with lock.take(tmp_path) as held:
        with lock.hold(tmp_path, env={lock.LOCK_VARIABLE: str(held.fileno())}):
            pass
        for stale in ("999", "0", "x"):
            with pytest.raises(ResourceError, match="trained already"):
                lock.hold(tmp_path, env={lock.LOCK_VARIABLE: stale})
