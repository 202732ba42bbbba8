"""What is particular to the local engine: the log, the environment, nothing left behind."""

import os
import signal

from scrimp.launch.attend import attend
from scrimp.launch.engine import LOG_FILE
from scrimp.launch.environment import training_environment
from scrimp.launch.follow import log_tail
from scrimp.launch.lock import holder, process_mark

ENV = dict(os.environ)


def test_output_goes_to_the_log_attempt_after_attempt(make_engine, job, order):
    engine, folder = make_engine(), order(print="first")
    engine.wait(engine.start(job, folder=folder, env=ENV))
    order(print="second")
    engine.wait(engine.start(job, folder=folder, env=ENV))
    assert log_tail(folder / LOG_FILE) == "first\nsecond"
    assert log_tail(folder / LOG_FILE, lines=1) == "second"
    assert log_tail(folder / "none.txt") == ""


def test_the_log_tells_why_a_command_did_not_start(make_engine, job, order):
    engine = make_engine()
    engine._command = ("/no/such/command",)
    folder = order()
    assert engine.wait(engine.start(job, folder=folder, env=ENV)) == 1
    assert "/no/such/command" in log_tail(folder / LOG_FILE)


def test_what_the_job_leaves_behind_is_ended_with_it(make_engine, job, order):
    engine, children = make_engine(), []
    handle = engine.start(job, folder=order(child=True), env=ENV)
    attend(engine, handle, on_event=lambda event: children.append(event.values.get("child")))
    assert process_mark(children[0]) == "" or _ends(children[0])


def _ends(pid):
    """Wait for a process that is no child of ours."""
    import select

    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], 30)[0])
    finally:
        os.close(watched)


def test_kill_9_of_the_whole_job_leaves_no_stale_lock(make_engine, job, order):
    engine, folder = make_engine(), order(hang=True)
    handle = engine.start(job, folder=folder, env=ENV)
    assert holder(folder).pid == handle.pid
    os.killpg(handle.pid, signal.SIGKILL)
    assert engine.wait(handle) == -signal.SIGKILL
    order(steps=1)
    assert engine.wait(engine.start(job, folder=folder, env=ENV)) == 0
    assert holder(folder) is None


def test_the_environment_for_training():
    base = {"HOME": "/h", "OMP_NUM_THREADS": "5", "MY_TOKEN": "t"}
    made = training_environment(base, threads=2, offline=True)
    assert made["OMP_NUM_THREADS"] == "2"
    assert made["OMP_WAIT_POLICY"] == "PASSIVE"
    assert made["TOKENIZERS_PARALLELISM"] == "false"
    assert made["HF_HUB_OFFLINE"] == "1"
    assert made["MY_TOKEN"] == "t"
    assert set(made) - set(base) == {
        "OMP_WAIT_POLICY", "TOKENIZERS_PARALLELISM", "PYTHONUNBUFFERED", "HF_HUB_OFFLINE"
    }  # fmt: skip
    assert training_environment(base, threads=None, offline=False)["OMP_NUM_THREADS"] == "5"
    assert "OMP_NUM_THREADS" not in training_environment({}, threads=None, offline=False)
    assert "HF_HUB_OFFLINE" not in training_environment(base, threads=None, offline=False)
