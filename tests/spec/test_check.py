"""What is possible, for specs that were made without a file."""

from dataclasses import replace
from decimal import Decimal

import pytest

from scrimp.core.job import DataSpec, JobSpec, LimitsSpec, MarketSpec, TrainingSpec
from scrimp.spec.check import BOUNDS, FORMS, Bound, check_spec
from scrimp.spec.options import spec_options

SPEC = JobSpec(model="m", data=DataSpec(path="d"))


def keys(spec):
    return [fault.key for fault in check_spec(spec)]


def test_a_spec_of_defaults_is_possible():
    assert check_spec(SPEC) == ()


def test_faults_of_all_kinds_are_found_together():
    spec = replace(
        SPEC,
        name="a/b",
        data=DataSpec(path="", eval_share=1.0),
        training=TrainingSpec(epochs=0.0, batch_tokens=64),
        limits=LimitsSpec(budget_usd=Decimal(-5)),
        market=MarketSpec(where="local", spot="only", gpus=("A100", "")),
    )
    found = {"name", "data.path", "data.eval_share", "training.epochs", "limits.budget_usd", "market.gpus"}
    assert set(keys(spec)) == found | {"training.batch_tokens", "market.spot"}


@pytest.mark.parametrize(
    ("bound", "inside", "outside"),
    [
        (Bound(low=0, high=1), (0, 0.5, 1, Decimal("0.5")), (-0.001, 1.001, float("nan"), float("inf"))),
        (Bound(low=0, high=1, above=True), (0.001, 1), (0, Decimal(0))),
        (Bound(low=0, high=1, below=True), (0, 0.999), (1, Decimal(1), Decimal("NaN"))),
        (Bound(low=0, high=2**32 - 1), (2**32 - 1,), (2**32, 10**400, -(10**400))),
    ],
)
def test_bounds(bound, inside, outside):
    assert all(bound.holds(value) for value in inside)
    assert not any(bound.holds(value) for value in outside)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("training.epochs", "above 0, at most 10000"),
        ("data.eval_share", "0 or more, below 1"),
        ("training.batch_rows", "from 1 to 1000000"),
        ("limits.deadline_s", "from 60.0 s to 3,650 d"),
    ],
)
def test_bounds_are_said_in_the_unit_of_their_key(key, words):
    assert BOUNDS[key].in_words(key) == words


def test_every_default_is_possible_and_every_bound_belongs_to_a_key():
    assert set(BOUNDS) | set(FORMS) <= set(spec_options())
    for key, bound in BOUNDS.items():
        default = spec_options()[key].default
        assert default is None or bound.holds(default), key


@pytest.mark.parametrize("name", ["job", "Job-1.2_x", "7b"])
def test_names_that_are_file_names(name):
    assert keys(replace(SPEC, name=name, project=name)) == []


@pytest.mark.parametrize("name", ["", ".", "..", "-x", "a b", "a/b", "a\\b", "é", "x" * 65, "a\n"])
def test_names_that_are_not(name):
    assert keys(replace(SPEC, name=name)) == ["name"]


def test_a_step_must_hold_the_longest_row():
    spec = replace(SPEC, training=TrainingSpec(batch_tokens=2048))
    assert keys(spec) == []
    assert keys(replace(spec, data=DataSpec(path="d", max_length_tokens=2049))) == ["training.batch_tokens"]
