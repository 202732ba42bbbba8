"""What every engine must do, run over each file in launch/engines."""

import os
import signal

import pytest

from scrimp.core.errors import ResourceError, UnknownNameError
from scrimp.launch.attend import attend
from scrimp.launch.engines import get, names
from scrimp.launch.follow import follow
from scrimp.spec.events import EVENTS_FILE

ENV = dict(os.environ)


def _until(engine, handle, text):
    """Watch a job until it notes that; then it runs on unwatched."""

    def wait(timeout_s):
        return engine.wait(handle, timeout_s=timeout_s) is not None

    for event in follow(handle.folder / EVENTS_FILE, wait=wait):
        if event.values.get("text") == text:
            return
    raise AssertionError(f"the job ended before it noted {text}")


def test_its_name_is_its_file():
    assert all(get(name).name == name for name in names())
    with pytest.raises(UnknownNameError, match="Did you mean local"):
        get("lokal")


def test_it_says_what_and_how_dear_the_machine_is(engine):
    assert engine.machine().engine == engine.name
    assert engine.machine().host
    assert engine.rate.price_usd_per_hour is not None


def test_a_job_runs_to_its_end_and_all_its_events_come_out(engine, job, order):
    seen = []
    handle = engine.start(job, folder=order(steps=3), env=ENV)
    outcome = attend(engine, handle, on_event=seen.append)
    assert (outcome.exit_code, outcome.killed, outcome.signals) == (0, False, 0)
    assert [event.kind for event in seen] == ["started", "step", "step", "step", "finished"]
    assert (seen[0].values["threads"], seen[0].values["has_lock"]) == ("3", True)


def test_a_resumed_job_gives_out_only_its_own_events(engine, job, order):
    folder = order(steps=3)
    attend(engine, engine.start(job, folder=folder, env=ENV), on_event=lambda event: None)
    with (folder / "events.jsonl").open("a") as file:
        file.write('{"torn')
    seen = []
    order(steps=1, attempt=2)
    with (folder / "events.jsonl").open("a") as file:
        file.write("\n")
    attend(engine, engine.start(job, folder=folder, env=ENV), on_event=seen.append)
    assert {event.attempt for event in seen} == {2}
    assert [event.kind for event in seen] == ["started", "step", "finished"]


def test_exit_codes_and_deaths_come_through(engine, job, order):
    for orders, expected in (({"exit_code": 7}, 7), ({"die_by": 9}, -9), ({"die_by": 11}, -11)):
        handle = engine.start(job, folder=order(**orders), env=ENV)
        assert engine.wait(handle) == expected
        assert engine.poll(handle) == expected


def test_waiting_for_a_running_job_times_out(engine, job, order):
    handle = engine.start(job, folder=order(hang=True), env=ENV)
    assert engine.poll(handle) is None
    assert engine.wait(handle, timeout_s=0.0) is None


def test_stop_asks_for_a_checkpoint(engine, job, order):
    folder = order(hang=True)
    handle = engine.start(job, folder=folder, env=ENV)
    _until(engine, handle, "hanging")
    assert engine.stop(handle, grace_s=30.0) == 130
    assert '"SIGTERM"' in (folder / "events.jsonl").read_text()
    engine.signal(handle, signal.SIGTERM)
    assert engine.stop(handle, grace_s=30.0) == 130, "stopping twice changes nothing"


def test_stop_kills_what_does_not_end_within_the_grace(engine, job, order):
    handle = engine.start(job, folder=order(stubborn=True), env=ENV)
    _until(engine, handle, "hanging")
    assert engine.stop(handle, grace_s=0.05) == -signal.SIGKILL


def test_two_jobs_never_train_one_folder(engine, job, order):
    folder = order(hang=True)
    handle = engine.start(job, folder=folder, env=ENV)
    with pytest.raises(ResourceError, match=rf"trained already \(process {handle.pid} on") as caught:
        engine.start(job, folder=folder, env=ENV)
    assert f"kill {handle.pid}" in caught.value.next_step
    engine.kill(handle)
    assert engine.wait(handle) == -signal.SIGKILL
    order(steps=1)
    assert engine.wait(engine.start(job, folder=folder, env=ENV)) == 0


def test_a_folder_without_a_job_is_refused(engine, job, tmp_path):
    with pytest.raises(ResourceError, match=r"no resolved\.json"):
        engine.start(job, folder=tmp_path, env=ENV)


def test_what_goes_wrong_in_the_display_stops_the_job(engine, job, order):
    folder = order(steps=1, hang=True)
    handle = engine.start(job, folder=folder, env=ENV)

    def broken(event):
        if event.values.get("text") == "hanging":
            raise RuntimeError("display")

    with pytest.raises(RuntimeError, match="display"):
        attend(engine, handle, on_event=broken)
    assert engine.poll(handle) == 130
    assert '"interrupted"' in (folder / "events.jsonl").read_text()
