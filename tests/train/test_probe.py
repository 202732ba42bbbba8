"""A probe measures real steps and leaves no trace: the same bytes with and without."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from scrimp.core.errors import InterruptedRunError, ResourceError
from scrimp.core.job import MethodChoice
from scrimp.train.run import is_out_of_memory
from scrimp.train.stop import StopSignals

pytestmark = pytest.mark.train
FULL_IN_BF16 = {"method": MethodChoice(name="full"), "weight_dtype": "fp32", "compute_dtype": "bf16"}
QLORA = pytest.param(
    {
        "method": MethodChoice(name="qlora", options={"rank": 4, "dropout": 0.1}),
        "weight_dtype": "nf4",
        "compute_dtype": "bf16",
    },
    marks=pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="needs the quant extra"),
)
PACKED_STATES = pytest.param(
    {"optimizer": "adamw_8bit"},
    marks=pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="needs the quant extra"),
)


@pytest.mark.parametrize(
    "changes",
    [{}, FULL_IN_BF16, {"optimizer": "sgd"}, {"weight_decay": 0.3}, {"checkpointing": "full"}, QLORA, PACKED_STATES],
    ids=str,
)
def test_a_probed_run_ends_with_the_bytes_of_one_without(make_job, train_job, result_bytes, changes):
    """Dropout is on, micro-batches are several, weights decay: all that could carry a trace."""
    settings = {"max_steps": 4, "micro_batch_tokens": 150, **changes}
    plain = make_job(folder="plain", job={"probe": "off"}, **settings)
    probed = make_job(folder="probed", job={"probe": "on"}, **settings)
    _, without = train_job(plain, catch=())
    _, watch = train_job(probed, catch=())
    (told,) = watch.of("probed")
    assert without.of("probed") == []
    assert told.values["steps"] == 3
    assert result_bytes(probed) == result_bytes(plain)
    assert _losses(watch) == _losses(without)


def test_a_probed_run_that_was_interrupted_ends_with_the_same_bytes_too(make_job, train_job, onlooker, result_bytes):
    plain = make_job(folder="plain", job={"probe": "off"})
    train_job(plain, catch=())
    job, stop = make_job(job={"probe": "on"}), StopSignals()
    watch = onlooker().at("step", lambda: stop.ask("SIGTERM"), step=5)
    train_job(job, watch=watch, stop=stop)
    _, second = train_job(job, catch=())
    assert watch.of("probed")
    assert second.of("probed") == []
    assert result_bytes(job) == result_bytes(plain)


def test_the_reading_is_of_this_run(make_job, train_job):
    job = make_job(job={"probe": "on"}, micro_batch_tokens=300)
    _, watch = train_job(job, catch=())
    found = watch.of("probed")[0].values
    steps = watch.of("step")
    assert found["device_kind"] == "cpu"
    assert 100 * 2**20 < found["peak_bytes"] <= watch.of("measured")[-1].values["peak_bytes"]
    # 188,864 weights in fp32, of which the adapters have two moments and a counter.
    assert 188_864 * 4 < found["tensor_bytes"] < 188_864 * 4 * 2
    assert (found["reserved_bytes"], found["driver_bytes"]) == (None, None)
    assert found["micro_batch_tokens"] <= 300
    mean_s = sum(event.values["step_s"] for event in steps) / len(steps)
    assert mean_s / 4 < found["step_s"] < mean_s * 4
    assert found["evaluation_s"] > 0 < found["sampling_s"]
    assert found["probe_s"] < watch.of("measured")[-1].values["total_s"]


def test_the_probe_begins_with_the_fullest_micro_batch(make_job, train_job, monkeypatch):
    from scrimp.train import probe as subject

    sizes = []
    plain = subject.backward

    def seen(session, groups, *, factor):
        sizes.append([session.memory_tokens(group) for group in groups])
        return plain(session, groups, factor=factor)

    monkeypatch.setattr(subject, "backward", seen)
    job = make_job(job={"probe": "only"}, micro_batch_tokens=150, batch_rows=16)
    train_job(job, catch=())
    assert len(sizes) == 3
    assert max(sizes[0]) == max(map(max, sizes))
    assert all(len(groups) <= 4 for groups in sizes)


@pytest.mark.parametrize(("choice", "probes"), [("auto", False), ("on", True), ("off", False)])
def test_a_short_run_is_probed_only_when_asked_and_says_so(make_job, train_job, choice, probes):
    """Three steps are a quarter of these twelve."""
    _, watch = train_job(make_job(job={"probe": choice}), catch=())
    assert bool(watch.of("probed")) is probes
    notes = [event.values["text"] for event in watch.of("note")]
    assert any("training.probe=on" in note for note in notes) is (choice == "auto")


def test_a_long_run_is_probed_by_itself(make_job, train_job):
    job = make_job(batch_rows=1, epochs=2.0, max_steps=31)
    assert job.steps.steps == 31
    _, watch = train_job(job, catch=())
    assert [event.kind for event in watch.events].index("probed") < [event.kind for event in watch.events].index("step")


def test_a_probe_alone_takes_no_step_and_keeps_nothing(make_job, train_job):
    job = make_job(job={"probe": "only"})
    outcome, watch = train_job(job, catch=())
    assert outcome.probed_only
    assert watch.of("step") == [] == watch.of("checkpointed")
    assert not (Path(job.run_folder) / "adapter").exists()


def test_a_signal_ends_a_probe_at_once(make_job, train_job, onlooker, monkeypatch):
    from scrimp.train import probe as subject

    stop = StopSignals()
    plain = subject.seed_step
    monkeypatch.setattr(subject, "seed_step", lambda *some: (plain(*some), stop.ask("SIGINT")))
    error, watch = train_job(make_job(job={"probe": "on"}), stop=stop)
    assert isinstance(error, InterruptedRunError)
    assert watch.events[-1].kind == "interrupted"
    assert watch.events[-1].values["checkpoint"] is None


def test_weights_that_a_probe_has_changed_stop_the_run(make_job, train_job, monkeypatch):
    import torch

    from scrimp.core.errors import TrainingError
    from scrimp.train import probe as subject

    def moved(session, zeros):
        with torch.no_grad():
            next(iter(session.forward.loaded.trainable.values())).view(-1)[5] += 1e-6
        return session

    monkeypatch.setattr(subject, "_undone", moved)
    error, _ = train_job(make_job(job={"probe": "on"}))
    assert isinstance(error, TrainingError)
    assert "training.probe=off" in error.next_step


def test_zeros_get_their_signs_back():
    import torch

    from scrimp.train.probe import _fingerprint, _negative_zeros

    weights = torch.tensor([[-0.0, 1.0], [0.0, -0.0]])
    before, places = _fingerprint(weights), _negative_zeros(weights)
    assert places.tolist() == [0, 3]
    assert _fingerprint(weights.abs()) != before
    assert _fingerprint(torch.tensor([[1.0, -0.0], [0.0, -0.0]])) != before


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("unable to mmap 4 bytes from file <f>: Cannot allocate memory (12)"),
        OSError(12, "Cannot allocate memory"),
        RuntimeError("std::bad_alloc"),
    ],
    ids=str,
)
def test_running_out_of_memory_is_known_by_all_its_names(make_job, train_job, monkeypatch, error):
    from scrimp.train import engine

    def dies(session):
        raise error

    assert is_out_of_memory(error)
    monkeypatch.setattr(engine, "rehearse", dies)
    ended, watch = train_job(make_job(job={"probe": "off"}))
    assert isinstance(ended, ResourceError)
    assert watch.events[-1].values["out_of_memory"] is True


def test_other_errors_are_not_out_of_memory():
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not is_out_of_memory(OSError(2, "No such file"))


def _losses(watch):
    return [(event.step, event.values["loss"], event.values["gradient_norm"]) for event in watch.of("step")]


def test_a_tensor_of_many_pieces_has_one_fingerprint(monkeypatch):
    import torch

    from scrimp.train.probe import _fingerprint

    wide = torch.arange(2**22 + 7, dtype=torch.int16).view(torch.bfloat16)
    moved = wide.clone()
    moved[-1], moved[0] = wide[0], wide[-1]
    assert _fingerprint(wide) != _fingerprint(moved)
    assert _fingerprint(wide) == _fingerprint(wide.clone())
