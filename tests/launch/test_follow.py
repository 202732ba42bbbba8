"""Reading a growing events file: every whole event once, in order, and nothing that was torn."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrimp.core.run import RunEvent
from scrimp.launch.follow import follow
from scrimp.spec.events import event_line


def _event(step):
    return RunEvent(at_s=1.0, attempt=1, kind="step", step=step, values={"text": "größe ☂"})


def test_events_come_as_they_are_written_and_the_last_ones_after_the_end(tmp_path):
    path = tmp_path / "events.jsonl"
    writes = [event_line(_event(1)), event_line(_event(2))[:9], event_line(_event(2))[9:] + event_line(_event(3))[:5]]
    naps = []

    def wait(seconds):
        naps.append(seconds)
        if not writes:
            return True
        with path.open("a", encoding="utf-8") as file:
            file.write(writes.pop(0))
        return False

    assert [event.step for event in follow(path, wait=wait)] == [1, 2]
    assert naps == [0.25] * 4


def test_a_job_that_ends_at_once_is_still_read(tmp_path):
    path = tmp_path / "events.jsonl"

    def wait(_seconds):
        path.write_text(event_line(_event(1)), encoding="utf-8")
        return True

    assert [event.step for event in follow(path, wait=wait)] == [1]


def test_no_file_at_all(tmp_path):
    assert list(follow(tmp_path / "none.jsonl", wait=lambda seconds: True)) == []


@given(cuts=st.lists(st.integers(1, 400), max_size=12), events=st.integers(0, 8))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_way_of_being_written_gives_the_same_events(tmp_path, cuts, events):
    path = tmp_path / "events.jsonl"
    old = event_line(_event(99)).encode()
    path.write_bytes(old)
    rest = b"".join(event_line(_event(step)).encode() for step in range(events))
    pieces = []
    for cut in cuts:
        pieces.append(rest[:cut])
        rest = rest[cut:]
    pieces.append(rest)

    def wait(_seconds):
        if not pieces:
            return True
        with path.open("ab") as file:
            file.write(pieces.pop(0))
        return False

    found = [event.step for event in follow(path, wait=wait, start_bytes=len(old))]
    assert found == list(range(events))
