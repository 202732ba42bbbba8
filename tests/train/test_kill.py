"""Real processes, real SIGKILL, at random moments and inside saves: the bytes of the uninterrupted run."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from scrimp.spec.codec import dump_json
from scrimp.spec.events import EVENTS_FILE, read_events

pytestmark = pytest.mark.train

ENV = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


def _start(job, *options):
    folder = Path(job.run_folder)
    folder.mkdir(exist_ok=True)
    resolved = folder / "resolved.json"
    resolved.write_text(dump_json(job))
    return subprocess.Popen(
        [sys.executable, "-m", "scrimp", "train", str(resolved), *options],
        env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _wait_until(process, condition, *, seconds=120):
    """Busy, because a save of the tiny model lasts milliseconds."""
    end = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            pytest.fail(f"ended too early: {process.communicate()}")
        assert time.monotonic() < end, "the moment never came"


def _steps(job):
    return [event for event in read_events(Path(job.run_folder) / EVENTS_FILE) if event.kind == "step"]


def _is_saving(job):
    return any((Path(job.run_folder) / "checkpoints").glob(".step-*.new"))


def test_killed_in_saves_in_steps_and_while_loading_it_ends_with_the_same_bytes(make_job, train_job, result_bytes):
    whole = make_job(folder="whole", epochs=6.0, checkpoint_every_steps=3)
    train_job(whole, catch=())
    job = replace(whole, run_folder=whole.run_folder.replace("whole", "killed"))
    chance = random.Random(5)
    steps = chance.randint(8, 20)
    ends = (
        lambda: _is_saving(job),
        lambda: len(_steps(job)) >= steps,
        lambda: read_events(Path(job.run_folder) / EVENTS_FILE)[-1].kind == "started",
        lambda: _steps(job)[-1].step > 20 and _is_saving(job),
    )
    for attempt, moment in enumerate(ends, start=1):
        process = _start(job)
        began = lambda n=attempt: {e.attempt for e in read_events(Path(job.run_folder) / EVENTS_FILE)} >= {n}  # noqa: E731
        _wait_until(process, lambda began=began, moment=moment: began() and moment())
        time.sleep(chance.uniform(0, 0.004))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    process = _start(job, "--json")
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    told = json.loads(out)
    assert told["steps"] == 48
    assert told["already_finished"] is False
    assert result_bytes(job) == result_bytes(whole)
    again, _ = _start(job).communicate(timeout=60)
    assert again.startswith("tiny-run has finished: nothing left to do; its result is in")
    last_taken = {event.step: event.values["loss"] for event in _steps(job)}
    assert last_taken == {event.step: event.values["loss"] for event in _steps(whole)}


def test_sigterm_checkpoints_says_how_to_go_on_and_exits_130(make_job, result_bytes):
    job = make_job(epochs=40.0)
    process = _start(job)
    _wait_until(process, lambda: len(_steps(job)) >= 3)
    for _ in range(3):
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "scrimp resume tiny-run" in err
    last = read_events(Path(job.run_folder) / EVENTS_FILE)[-1]
    assert last.kind == "interrupted"
    assert (Path(job.run_folder) / "checkpoints" / last.values["checkpoint"] / "manifest.json").is_file()


def test_sigint_while_it_starts_exits_130_without_a_trace(make_job):
    job = make_job()
    process = _start(job)
    _wait_until(process, lambda: (Path(job.run_folder) / EVENTS_FILE).exists())
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert not (Path(job.run_folder) / "checkpoints").exists()


def test_two_trainers_of_one_folder_are_one_too_many(make_job):
    job = make_job(epochs=40.0)
    process = _start(job)
    try:
        _wait_until(process, lambda: len(_steps(job)) >= 1)
        second = _start(job)
        _, err = second.communicate(timeout=60)
        assert second.returncode == 8
        assert "is being trained already" in err
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 130


def test_a_missing_or_damaged_file_is_refused_in_three_lines(tmp_path):
    for content, code in ((None, 2), ("{", 2), ('{"run_id": 3}', 2)):
        path = tmp_path / "resolved.json"
        if content is not None:
            path.write_text(content)
        done = subprocess.run(
            [sys.executable, "-m", "scrimp", "train", str(path)], env=ENV, capture_output=True, text=True
        )
        assert done.returncode == code, done.stderr
        assert "next" in done.stderr
        assert "Traceback" not in done.stderr
