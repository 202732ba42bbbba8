"""The event log: append-only, attempts counted, torn lines survived."""

from scrimp.spec.events import EVENTS_FILE, read_events
from scrimp.train.events import EventLog


def _log(folder, turned_clock, seen=None):
    return EventLog(folder, clock=turned_clock().clock(), on_event=(seen if seen is not None else []).append)


def test_every_event_is_in_the_file_before_it_is_handed_on(tmp_path, turned_clock):
    in_file = []
    log = EventLog(
        tmp_path,
        clock=turned_clock().clock(),
        on_event=lambda event: in_file.append(read_events(tmp_path / EVENTS_FILE)[-1]),
    )
    with log:
        log.step = 4
        told = log.emit("step", loss=1.5, spent_usd=None)
    assert in_file == [told]
    assert (told.attempt, told.step, told.values) == (1, 4, {"loss": 1.5, "spent_usd": None})


def test_attempts_count_up_and_earlier_events_are_kept(tmp_path, turned_clock):
    with _log(tmp_path, turned_clock) as log:
        log.emit("started")
    with _log(tmp_path, turned_clock) as log:
        log.note("again")
        assert [event.kind for event in log.earlier] == ["started"]
    assert [(event.attempt, event.kind) for event in read_events(tmp_path / EVENTS_FILE)] == [
        (1, "started"),
        (2, "note"),
    ]


def test_half_a_line_of_a_killed_attempt_spoils_nothing(tmp_path, turned_clock):
    with _log(tmp_path, turned_clock) as log:
        log.emit("started")
    with (tmp_path / EVENTS_FILE).open("a") as file:
        file.write('{"at_s": 17, "attem')
    with _log(tmp_path, turned_clock) as log:
        assert log.attempt == 2
        log.emit("started")
    assert [event.attempt for event in read_events(tmp_path / EVENTS_FILE)] == [1, 2]


def test_an_attempt_starts_when_its_log_is_opened(tmp_path, turned_clock):
    clock = turned_clock()
    with EventLog(tmp_path, clock=clock.clock(), on_event=lambda _event: None) as log:
        opened_s = clock.at_s
        clock.at_s += 8  # the imports
        assert log.emit("started").at_s == opened_s
        assert log.emit("loaded").at_s == opened_s + 8


def test_a_loss_that_is_no_number_is_written_as_unknown(tmp_path, turned_clock):
    with _log(tmp_path, turned_clock) as log:
        log.emit("step", loss=float("nan"))
    assert read_events(tmp_path / EVENTS_FILE)[0].values["loss"] is None
