"""Interrupt anywhere, damage anything, resume: the same bytes; or a refusal that says what differs."""

import json
import os
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from scrimp.core.errors import CheckpointError, InterruptedRunError
from scrimp.core.job import DataSpec, MethodChoice
from scrimp.train.stop import StopSignals

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def whole(tmp_path_factory, tiny_model_folder, tiny_rows_path):
    """An uninterrupted run with dropout over one and a half epochs (12 steps), with its files and losses."""
    return tmp_path_factory.mktemp("whole")


@pytest.fixture
def uninterrupted(whole, make_job, train_job, result_bytes):
    """Files and losses of the uninterrupted run, trained once for this module."""
    job = replace(make_job(), run_folder=str(whole / "run"))
    kept = whole / "losses.json"
    if not kept.exists():
        _, watch = train_job(job, catch=())
        kept.write_text(json.dumps(_losses(watch)))
    return result_bytes(job), {int(step): loss for step, loss in json.loads(kept.read_text()).items()}


QLORA = pytest.param(
    {
        "method": MethodChoice(name="qlora", options={"rank": 4, "dropout": 0.1}),
        "weight_dtype": "nf4",
        "compute_dtype": "bf16",
    },
    marks=pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="needs the quant extra"),
)


def _losses(watch):
    return {event.step: event.values["loss"] for event in watch.of("step")}


def _interrupt(job, train_job, onlooker, *, after_step):
    stop = StopSignals()
    watch = onlooker().at("step", lambda: stop.ask("SIGTERM"), step=after_step)
    error, _ = train_job(job, watch=watch, stop=stop)
    assert isinstance(error, InterruptedRunError)
    return watch


def test_two_uninterrupted_runs_are_the_same_bytes(make_job, train_job, uninterrupted, result_bytes):
    job = make_job(folder="second")
    _, watch = train_job(job, catch=())
    assert len(uninterrupted[1]) == 12
    assert result_bytes(job) == uninterrupted[0]
    assert _losses(watch) == uninterrupted[1]


def test_two_threads_repeat_themselves_too(make_job, train_job, result_bytes):
    jobs = [make_job(folder=name, max_steps=4, job={"threads": 2}) for name in ("one", "other")]
    for job in jobs:
        _, watch = train_job(job, catch=())
        assert watch.of("started")[0].values["threads"] == 2
    assert result_bytes(jobs[0]) == result_bytes(jobs[1])


@pytest.mark.parametrize("after_step", [1, 2, 5, 7, 8, 11, 12])
def test_interrupted_after_any_step_it_ends_with_the_same_bytes(
    make_job, train_job, onlooker, uninterrupted, result_bytes, after_step
):
    """Before the first checkpoint, on one, between two, in the last of epoch 1, in epoch 2, after the last step."""
    job = make_job()
    first = _interrupt(job, train_job, onlooker, after_step=after_step)
    told = first.events[-1]
    assert (told.kind, told.values["signal"]) == ("interrupted", "SIGTERM")
    assert told.values["checkpoint"] == f"step-{after_step:06d}"
    _, second = train_job(job, catch=())
    assert second.of("resumed")[0].values == {"checkpoint": f"step-{after_step:06d}", "from_step": after_step}
    assert [event.step for event in second.of("step")] == list(range(after_step + 1, 13))
    assert _losses(first) | _losses(second) == uninterrupted[1]
    assert result_bytes(job) == uninterrupted[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"checkpointing": "selective"},
        # The tied embedding and the feed-forward matrices are large enough for 8-bit states, norms are not.
        pytest.param(
            {"optimizer": "adamw_8bit", "method": MethodChoice(name="full"), "learning_rate": 1e-4},
            marks=pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="needs the quant extra"),
        ),
    ],
    ids=["selective", "adamw_8bit"],
)
def test_every_kind_of_step_ends_with_the_same_bytes(make_job, train_job, onlooker, result_bytes, changes):
    whole, job = make_job(folder="whole", **changes), make_job(**changes)
    train_job(whole, catch=())
    for step in (3, 8):
        _interrupt(job, train_job, onlooker, after_step=step)
    train_job(job, catch=())
    assert result_bytes(job) == result_bytes(whole)


def test_interrupted_at_every_step_in_turn_it_ends_with_the_same_bytes(
    make_job, train_job, onlooker, uninterrupted, result_bytes
):
    job = make_job()
    for step in range(1, 13):
        watch = _interrupt(job, train_job, onlooker, after_step=step)
        assert [event.step for event in watch.of("step")] == [step]
    train_job(job, catch=())
    assert result_bytes(job) == uninterrupted[0]


def test_rates_samples_and_evaluations_are_those_of_one_run(make_job, train_job, onlooker):
    job = make_job(eval_every_steps=4)
    _, whole = train_job(replace(job, run_folder=job.run_folder + "-whole"), catch=())
    first = _interrupt(job, train_job, onlooker, after_step=8)
    _, second = train_job(job, catch=())
    together = [*first.events, *second.events]

    def told(events, kind, *keys):
        return [(event.step, *(event.values[key] for key in keys)) for event in events if event.kind == kind]

    for kind, keys in (
        ("step", ("learning_rate", "gradient_norm", "total_tokens", "trained_tokens")),
        ("evaluated", ("when", "loss")),
        ("sampled", ("when", "prompt", "answer")),
    ):
        assert told(together, kind, *keys) == told(whole.events, kind, *keys)


def test_an_evaluation_that_a_signal_cut_short_is_made_up_for(make_job, train_job, onlooker):
    stop = StopSignals()
    job = make_job(eval_every_steps=4)
    watch = onlooker().at("checkpointed", lambda: stop.ask("SIGINT"), step=4)
    error, _ = train_job(job, watch=watch, stop=stop)
    assert error.exit_code == 130
    assert [event.step for event in watch.of("evaluated")] == [0]
    _, second = train_job(job, catch=())
    assert [event.step for event in second.of("evaluated")] == [4, 8, 12]


def _damaged(folder: Path, how: str) -> None:
    files = list(folder.iterdir())
    if how == "empty":
        for path in files:
            os.truncate(path, 0)
    elif how == "no manifest":
        (folder / "manifest.json").unlink()
    elif how == "half a file":
        path = folder / "optimizer.safetensors"
        os.truncate(path, path.stat().st_size // 2)
    elif how == "a flipped bit":
        path = folder / "trainable.safetensors"
        content = bytearray(path.read_bytes())
        content[-5] ^= 1
        path.write_bytes(bytes(content))
    elif how == "a missing file":
        (folder / "state.json").unlink()
    elif how == "another version":
        import hashlib

        (folder / "state.json").write_text('{"format": 99}')
        manifest = json.loads((folder / "manifest.json").read_text())
        content = (folder / "state.json").read_bytes()
        manifest["files"]["state.json"] = {"size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        (folder / "manifest.json").write_text(json.dumps(manifest))
    else:
        raise AssertionError(how)


HOW = {
    "empty": "manifest.json is damaged",
    "no manifest": "never finished",
    "half a file": "optimizer.safetensors has",
    "a flipped bit": "trainable.safetensors is damaged",
    "a missing file": "state.json cannot be read",
    "another version": "another version",
}


@pytest.mark.parametrize("how", HOW)
def test_a_damaged_checkpoint_is_named_and_an_older_one_taken(
    make_job, train_job, onlooker, uninterrupted, result_bytes, how
):
    job = make_job()
    _interrupt(job, train_job, onlooker, after_step=7)
    checkpoints = Path(job.run_folder) / "checkpoints"
    _damaged(checkpoints / "step-000007", how)
    _, second = train_job(job, catch=())
    (skipped,) = second.of("skipped_checkpoint")
    assert skipped.values["checkpoint"] == "step-000007"
    assert HOW[how] in skipped.values["reason"]
    assert second.of("resumed")[0].values["from_step"] == 6
    assert result_bytes(job) == uninterrupted[0]


def test_any_number_of_bad_checkpoints_are_skipped(make_job, train_job, onlooker, uninterrupted, result_bytes):
    """Two folders of zero bytes, as after a power cut; the third is whole."""
    job = make_job(keep_checkpoints=3)
    _interrupt(job, train_job, onlooker, after_step=7)
    checkpoints = Path(job.run_folder) / "checkpoints"
    assert [path.name for path in sorted(checkpoints.iterdir())] == ["step-000004", "step-000006", "step-000007"]
    for name in ("step-000006", "step-000007"):
        _damaged(checkpoints / name, "empty")
    _, second = train_job(job, catch=())
    assert [event.values["checkpoint"] for event in second.of("skipped_checkpoint")] == ["step-000007", "step-000006"]
    assert second.of("resumed")[0].values["from_step"] == 4
    assert [path.name for path in sorted(checkpoints.iterdir())][-1] == "step-000012"
    # keep_checkpoints may change between attempts, so the result is that of the run that keeps two.
    assert result_bytes(job) == uninterrupted[0]


def test_without_a_whole_checkpoint_the_run_begins_again(make_job, train_job, onlooker, uninterrupted, result_bytes):
    job = make_job()
    _interrupt(job, train_job, onlooker, after_step=3)
    for folder in (Path(job.run_folder) / "checkpoints").iterdir():
        _damaged(folder, "no manifest")
    _, second = train_job(job, catch=())
    assert len(second.of("skipped_checkpoint")) == 2
    assert any("begins again" in event.values["text"] for event in second.of("note"))
    assert second.of("step")[0].step == 1
    assert result_bytes(job) == uninterrupted[0]


def test_leftovers_of_killed_saves_are_swept(make_job, train_job, onlooker):
    job = make_job()
    _interrupt(job, train_job, onlooker, after_step=3)
    checkpoints = Path(job.run_folder) / "checkpoints"
    shutil.copytree(checkpoints / "step-000003", checkpoints / ".step-000009.new")
    shutil.copytree(checkpoints / "step-000003", checkpoints / ".step-000001.old")
    train_job(job, catch=())
    assert sorted(path.name for path in checkpoints.iterdir()) == ["step-000010", "step-000012"]


@pytest.mark.parametrize("keep", [1, 2, 4])
def test_never_more_than_kept_and_one_in_flight(make_job, train_job, onlooker, keep):
    job = make_job(keep_checkpoints=keep, eval_every_steps=3)
    folder = Path(job.run_folder) / "checkpoints"
    counts = []
    watch = onlooker().at("checkpointed", lambda: counts.append(sum(1 for path in folder.iterdir())))
    train_job(job, watch=watch, catch=())
    assert len(counts) == 6
    assert max(counts) <= keep + 1
    assert sorted(path.name for path in folder.iterdir()) == [
        f"step-{step:06d}" for step in range(14 - 2 * keep, 13, 2)
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"learning_rate": 5e-4}, "learning_rate: 0.001 then, 0.0005 now"),
        ({"seed": 9}, "seed: 3 then, 9 now"),
        ({"micro_batch_tokens": 128}, "micro_batch_tokens: 256 then, 128 now"),
        ({"method": MethodChoice(name="lora", options={"rank": 8})}, "method: lora"),
        ({"max_steps": 10}, "steps: 12 then, 10 now"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
def test_a_changed_job_is_refused_with_old_and_new(make_job, train_job, onlooker, changes, said):
    _interrupt(make_job(), train_job, onlooker, after_step=3)
    error, watch = train_job(make_job(**changes))
    assert isinstance(error, CheckpointError)
    assert said in error.what
    assert watch.events[-1].kind == "failed"
    assert watch.of("step") == []


@pytest.mark.parametrize("changed", range(0, 36, 7))
def test_one_changed_character_in_any_row_is_refused(
    make_job, train_job, onlooker, write_rows, tiny_rows_path, changed
):
    """Rows of training and of evaluation: a loss before and one after must be of the same rows."""
    rows = [json.loads(line) for line in tiny_rows_path.read_text().splitlines()]
    data = DataSpec(path=str(write_rows(rows)), eval_share=0.2, max_length_tokens=256)
    job = make_job(data=data, max_steps=3)
    _interrupt(job, train_job, onlooker, after_step=1)
    rows[changed]["completion"] = rows[changed]["completion"][:-1] + "?"
    write_rows(rows)
    error, _ = train_job(job)
    assert isinstance(error, CheckpointError)
    assert "rows: " in error.what


def test_another_base_model_is_refused(make_job, train_job, onlooker, tiny_model):
    folder = tiny_model()
    _interrupt(make_job(model=folder), train_job, onlooker, after_step=3)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"rms_norm_eps": 1e-4}))
    error, _ = train_job(make_job(model=folder))
    assert isinstance(error, CheckpointError)
    assert "base model: " in error.what


def test_what_no_trained_bit_depends_on_may_change(make_job, train_job, onlooker, uninterrupted, result_bytes):
    job = make_job()
    _interrupt(job, train_job, onlooker, after_step=3)
    changed = replace(job, recipe=replace(job.recipe, checkpoint_every_steps=5, eval_every_steps=4, keep_checkpoints=1))
    train_job(changed, catch=())
    assert result_bytes(job) == uninterrupted[0]


def test_other_versions_and_threads_are_noted(make_job, train_job, onlooker):
    job = make_job()
    _interrupt(job, train_job, onlooker, after_step=3)
    _rewrite_state(job, "step-000003", versions={"torch": "1.0"}, threads=8)
    _, second = train_job(job, catch=())
    notes = [event.values["text"] for event in second.of("note")]
    assert any("torch" in note and "instead of 1.0" in note for note in notes)
    assert any("threads 1 instead of 8" in note for note in notes)


def test_tensors_that_are_not_what_was_saved_are_refused(make_job, train_job, onlooker):
    """The files are whole, but what is loaded is not what the state says was trained."""
    job = make_job()
    _interrupt(job, train_job, onlooker, after_step=3)
    state = json.loads((Path(job.run_folder) / "checkpoints" / "step-000003" / "state.json").read_text())
    _rewrite_state(job, "step-000003", groups=state["groups"] | {"exp_avg": "0" * 64})
    error, _ = train_job(job)
    assert isinstance(error, CheckpointError)
    assert "exp_avg" in error.what


def test_another_set_of_trained_tensors_is_refused_by_name(make_job, train_job, onlooker):
    from safetensors.torch import load_file, save_file

    job = make_job()
    _interrupt(job, train_job, onlooker, after_step=3)
    file = Path(job.run_folder) / "checkpoints" / "step-000003" / "trainable.safetensors"
    tensors = load_file(file)
    gone = sorted(tensors)[0]
    del tensors[gone]
    save_file(tensors, file)
    _rewrite_state(job, "step-000003")
    error, _ = train_job(job)
    assert isinstance(error, CheckpointError)
    assert f"1 only in the model, the first is {gone}" in error.what


def test_a_finished_run_is_left_alone(make_job, train_job, result_bytes):
    job = make_job(max_steps=3)
    first, _ = train_job(job, catch=())
    before = {path: path.stat().st_mtime_ns for path in Path(job.run_folder).rglob("*")}
    again, watch = train_job(job, catch=())
    assert again == replace(first, already_finished=True)
    assert watch.events == []
    assert {path: path.stat().st_mtime_ns for path in Path(job.run_folder).rglob("*")} == before


def test_a_finished_run_whose_result_is_damaged_makes_it_again(make_job, train_job, result_bytes):
    job = make_job(max_steps=3)
    train_job(job, catch=())
    expected = result_bytes(job)
    os.truncate(Path(job.run_folder) / "adapter" / "adapter_model.safetensors", 10)
    again, watch = train_job(job, catch=())
    assert not again.already_finished
    assert watch.of("step") == []
    assert watch.of("evaluated") == []
    assert again.final_loss is not None
    assert result_bytes(job) == expected


@pytest.mark.parametrize(
    "changes",
    [
        {"method": MethodChoice(name="full")},
        {"optimizer": "sgd"},
        {"weight_dtype": "bf16", "compute_dtype": "bf16"},
        QLORA,
    ],
    ids=str,
)
def test_other_methods_and_optimizers_resume_exactly_too(make_job, train_job, onlooker, result_bytes, changes):
    whole = make_job(folder="whole", max_steps=6, **changes)
    train_job(whole, catch=())
    job = make_job(max_steps=6, **changes)
    _interrupt(job, train_job, onlooker, after_step=3)
    train_job(job, catch=())
    assert result_bytes(job) == result_bytes(whole)


def test_the_loss_scale_of_fp16_is_carried_over(recipe):
    from scrimp.train.optimizer import LossScale

    scale = LossScale.of(replace(recipe(), compute_dtype="fp16"))
    assert scale.scale > 1
    halved = scale.after(overflowed=True)
    assert halved.scale == scale.scale / 2
    grown = halved
    for _ in range(1000):
        grown = grown.after(overflowed=False)
    assert (grown.scale, grown.good_steps) == (scale.scale, 0)
    assert LossScale.of(recipe()).after(overflowed=True) == LossScale()


def _rewrite_state(job, name, **changes):
    """Change state.json and make the manifest true again."""
    import hashlib

    folder = Path(job.run_folder) / "checkpoints" / name
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps(state | changes))
    files = {
        path.name: {"size_bytes": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for path in folder.iterdir()
        if path.name != "manifest.json"
    }
    (folder / "manifest.json").write_text(json.dumps({"files": files}))
