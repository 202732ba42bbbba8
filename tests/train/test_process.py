"""Threads and settings of the training process."""

import pytest

from scrimp.core.data import StepPlan
from scrimp.core.job import DataSpec
from scrimp.core.recipe import ResolvedJob
from scrimp.train.process import settle_process, thread_count, usable_cores

STEPS = StepPlan(
    steps=1, epochs=1, rows=1, total_tokens=1, trained_tokens=1, largest_step_tokens=1, longest_row_tokens=1
)


@pytest.fixture
def job(recipe):
    return lambda threads=None: ResolvedJob(
        run_id="r", name="n", recipe=recipe(), data=DataSpec(path="x"), steps=STEPS, run_folder="f", threads=threads
    )


def test_the_job_decides_then_the_environment_then_the_machine(job):
    assert thread_count(job(3), {"OMP_NUM_THREADS": "5"}) == 3
    assert thread_count(job(), {"OMP_NUM_THREADS": "5"}) == 5
    assert thread_count(job(), {"OMP_NUM_THREADS": "4,2"}) == 4
    for useless in ({}, {"OMP_NUM_THREADS": ""}, {"OMP_NUM_THREADS": "many"}, {"OMP_NUM_THREADS": "0"}):
        assert thread_count(job(), useless) == usable_cores() >= 1


def test_threads_sleep_unless_told_otherwise(job):
    environ = {}
    settle_process(job(2), environ)
    assert environ["OMP_WAIT_POLICY"] == "PASSIVE"
    assert 0 < int(environ["GOMP_SPINCOUNT"]) <= 10_000, "long enough to bridge two operators, short beside others"
    assert environ["OMP_NUM_THREADS"] == "2"
    environ = {"OMP_WAIT_POLICY": "ACTIVE", "OMP_NUM_THREADS": "7"}
    settle_process(job(), environ)
    assert environ["OMP_WAIT_POLICY"] == "ACTIVE"
    assert "GOMP_SPINCOUNT" not in environ
    assert environ["OMP_NUM_THREADS"] == "7"
    asked = {"GOMP_SPINCOUNT": "0"}
    settle_process(job(), asked)
    assert asked["GOMP_SPINCOUNT"] == "0"


def test_cuda_segments_grow_unless_the_user_has_settings_of_their_own(job):
    environ = {}
    settle_process(job(), environ)
    assert environ["PYTORCH_ALLOC_CONF"] == environ["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"
    theirs = {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128"}
    settle_process(job(), theirs)
    assert "PYTORCH_ALLOC_CONF" not in theirs
    assert theirs["PYTORCH_CUDA_ALLOC_CONF"] == "max_split_size_mb:128"


def test_few_kernels_are_kept_unless_told_otherwise(job):
    environ: dict[str, str] = {}
    settle_process(job(), environ)
    assert 0 < int(environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"]) < 1024
    asked = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "512"}
    settle_process(job(), asked)
    assert asked["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "512"
