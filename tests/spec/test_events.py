"""events.jsonl survives its own round trip and every way of being torn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrimp.core.run import RunEvent
from scrimp.spec.events import event_line, parse_event, parse_events, read_events

VALUES = st.one_of(st.text(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none())
EVENTS = st.builds(
    RunEvent,
    at_s=st.floats(0, 1e10),
    attempt=st.integers(1, 9),
    kind=st.sampled_from(["started", "step", "note"]),
    step=st.integers(0, 99),
    values=st.dictionaries(st.text(), VALUES, max_size=4),
)


@given(event=EVENTS)
def test_an_event_comes_back_as_it_was_written(event):
    line = event_line(event)
    assert line.count("\n") == 1
    assert parse_event(line) == event


@given(event=EVENTS, data=st.data())
def test_a_torn_line_is_no_event_and_hides_no_other(event, data):
    line = event_line(event).encode()
    cut = data.draw(st.integers(0, len(line) - 3))
    assert parse_event(line[:cut]) is None
    whole = line + line[:cut]
    assert parse_events(whole.splitlines(keepends=True)) == (event,)


@pytest.mark.parametrize(
    "line",
    ["", "7", "[]", "{}", '{"at_s": 1, "attempt": 1, "kind": "of tomorrow", "step": 1}', '{"at_s": "1"}', b"\xff\xfe"],
)
def test_what_is_no_event_is_none(line):
    assert parse_event(line) is None


def test_a_number_that_is_none_is_written_as_unknown():
    values = {"loss": float("nan"), "perplexity": float("inf")}
    event = RunEvent(at_s=1.0, attempt=1, kind="step", step=1, values=values)
    assert parse_event(event_line(event)).values == {"loss": None, "perplexity": None}


def test_no_file_yet_is_no_events(tmp_path):
    assert read_events(tmp_path / "events.jsonl") == ()


def test_a_killed_run_is_read_to_its_last_whole_line(tmp_path):
    event = RunEvent(at_s=1.0, attempt=1, kind="note", step=1, values={"text": "zeile ☂"})
    path = tmp_path / "events.jsonl"
    path.write_text(event_line(event) * 3 + event_line(event)[:20])
    assert read_events(path) == (event,) * 3
