"""Folding events: attempts, repeated steps, last words."""

from datetime import UTC, datetime

from scrimp.core.run import RunEvent
from scrimp.ledger.history import history_of


def test_no_events_is_an_empty_history():
    history = history_of([])
    assert history.attempts == ()
    assert history.state(process_ended=False) == "running"
    assert history.state(process_ended=True) == "failed"


def test_a_whole_run(nouns):
    history = history_of(nouns.make_events(steps=4))
    assert history.state(process_ended=False) == "finished"
    assert (history.loss_before, history.loss_after) == (4.0, 3.5)
    assert history.steps_done == 4
    assert (history.total_s, history.train_s) == (4.0, 4.0)
    assert (history.peak_bytes, history.peak_kind) == (2.1e9, "rss")
    assert history.attempts[0].host == "box"


def test_a_killed_attempt_and_its_resume(nouns):
    killed = nouns.make_events(steps=7, ending=None)
    resumed = nouns.make_events(steps=5, first=5, attempt=2, at_s=5_000.0)
    assert history_of(killed).state(process_ended=False) == "running"
    assert history_of(killed).state(process_ended=True) == "interrupted"
    history = history_of(killed + resumed)
    assert [event.step for event in history.steps] == list(range(1, 10))
    assert [event.attempt for event in history.steps] == [1] * 4 + [2] * 5
    assert history.total_s == 7 + 5, "time between the attempts is not under way"
    assert history.train_s == 9
    assert [attempt.ending for attempt in history.attempts] == [None, "finished"]
    assert history.attempts[1].first_step == 4


def test_steps_past_the_checkpoint_vanish_even_when_the_resume_ends_before_them(nouns):
    killed = nouns.make_events(steps=9, ending=None)
    resumed = nouns.make_events(steps=1, first=5, attempt=2, ending="interrupted")
    history = history_of(killed + resumed)
    assert [event.step for event in history.steps] == [1, 2, 3, 4, 5]
    assert history.steps_done == 5
    assert history.state(process_ended=True) == "interrupted"


def test_an_attempt_that_took_no_step_takes_none_away(nouns):
    stopped = nouns.make_events(steps=7, ending="interrupted")
    refused = [
        RunEvent(at_s=5_000.0, attempt=2, kind="started", step=0, values={}),
        RunEvent(at_s=5_003.0, attempt=2, kind="failed", step=0, values={"error": "another base model"}),
    ]
    history = history_of(stopped + refused)
    assert history.steps_done == 7
    assert history.ended_at == datetime.fromtimestamp(5_003.0, UTC)


def test_a_run_that_begins_again_drops_what_it_had_done(nouns):
    killed = nouns.make_events(steps=7, ending=None)
    again = nouns.make_events(steps=2, attempt=2, at_s=5_000.0, ending="interrupted")
    history = history_of(killed + again)
    assert [(event.step, event.attempt) for event in history.steps] == [(1, 2), (2, 2)]
    assert history.steps_done == 2


def test_a_run_ended_when_it_last_said_something_whenever_one_looks(nouns):
    events = nouns.make_events(steps=4, at_s=1_000.0)
    assert history_of(events).ended_at == datetime.fromtimestamp(events[-1].at_s, UTC)
    assert history_of([]).ended_at is None


def test_a_clock_that_is_set_back_does_not_shorten_an_attempt(nouns):
    events = nouns.make_events(steps=4, ending=None)
    events.append(RunEvent(at_s=events[0].at_s - 3600, attempt=1, kind="note", step=4, values={"text": "clock"}))
    assert history_of(events).attempts[0].duration_s == 4


def test_samples_pair_up_by_prompt():
    def sampled(prompt, answer, when):
        values = {"prompt": prompt, "answer": answer, "when": when}
        return RunEvent(at_s=1.0, attempt=1, kind="sampled", step=0, values=values)

    events = [sampled("a", "1", "before"), sampled("b", "2", "before"), sampled("a", "3", "after")]
    pairs = [(sample.prompt, sample.before, sample.after) for sample in history_of(events).samples]
    assert pairs == [("a", "1", "3"), ("b", "2", None)]


def test_a_probe_is_that_of_the_recipe_which_trains(nouns):
    """What was probed before memory ran out was another recipe."""

    def event(kind, **values):
        return RunEvent(at_s=1_000.0, attempt=1, kind=kind, step=0, values=values)

    started, *rest = nouns.make_events(steps=2)
    before, after = event("probed", step_s=1.0), event("probed", step_s=2.0)
    changed = event("replanned", change="micro-batch 512 instead of 1,002 tokens")
    assert history_of([started, before, *rest]).probed == {"step_s": 1.0}
    assert history_of([started, before, changed]).probed == {}
    whole = history_of([started, before, changed, after, *rest])
    assert whole.probed == {"step_s": 2.0}
    assert whole.replanned == (changed,)
    assert whole.state(process_ended=True) == "finished"
