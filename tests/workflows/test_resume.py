"""What may change between the attempts of a run, and how it is read."""

import pytest

from scrimp.core.errors import SpecError
from scrimp.launch.engine import RESOLVED_FILE
from scrimp.spec.write import dump_yaml
from scrimp.workflows import resume as subject
from scrimp.workflows.job_file import read_job
from scrimp.workflows.open_run import SPEC_FILE, Watch


@pytest.fixture
def stopped(interrupted_run, monkeypatch):
    """Resumes an interrupted run with overrides up to where the trainer would start; the job it would be told to do."""
    folder, plan, world = interrupted_run
    (folder / SPEC_FILE).write_text(dump_yaml(plan.spec, folder=folder), encoding="utf-8")
    monkeypatch.setattr(subject, "execute", lambda run, **_: run)

    def go(*overrides):
        watch = Watch(on_plan=lambda *_: None, on_event=lambda _: None)
        opened = subject.resume(str(folder), overrides=overrides, world=world, watch=watch)
        assert read_job(folder / RESOLVED_FILE) == opened.job
        return opened.job

    return go


@pytest.mark.parametrize("key", ["limits.budget", "limits.budget_usd"])
@pytest.mark.parametrize("value", ["5 USD", "5", "$5"])
def test_the_budget_is_read_as_the_spec_reads_it(stopped, key, value):
    assert stopped(f"{key}={value}").budget_usd == 5


def test_the_deadline_too_and_a_limit_can_be_lifted(stopped):
    job = stopped("limits.deadline=2h", "limits.budget=null")
    assert (job.deadline_s, job.budget_usd) == (7200, None)


def test_without_overrides_the_limits_stay(stopped):
    before = stopped("limits.budget=3 USD")
    assert stopped().budget_usd == before.budget_usd == 3


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("training.epochs=2", "training.epochs cannot change"),
        ("limits.budgets=2", "limits.budgets cannot change"),
        ("limits.budget=cheap", "budget"),
        ("limits.deadline=-3h", "deadline"),
        ("limits.budget", "limits.budget"),
    ],
)
def test_anything_else_is_refused_before_the_run_is_touched(stopped, override, said):
    before = stopped()
    with pytest.raises(SpecError, match=said) as caught:
        stopped(override)
    assert caught.value.next_step
    assert stopped() == before
