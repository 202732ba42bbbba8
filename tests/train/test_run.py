"""A whole run on a tiny model, and every other way in which it can end."""

import json
import shutil
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from scrimp.core.errors import BudgetError, DataError, InterruptedRunError, ResourceError, SpecError, TrainingError
from scrimp.core.job import DataSpec, MethodChoice
from scrimp.spec.events import EVENTS_FILE, read_events
from scrimp.train.stop import StopSignals

pytestmark = pytest.mark.train


def test_a_run_ends_with_a_lower_loss_and_a_result_that_loads(make_job, train_job):
    job = make_job(epochs=3.0, learning_rate=5e-3, job={"sample_prompts": ("Define hope.",), "probe": "off"})
    outcome, watch = train_job(job, catch=())
    kinds = [event.kind for event in watch.events]
    assert kinds[:4] == ["started", "loaded", "evaluated", "sampled"]
    assert kinds[-4:] == ["evaluated", "sampled", "measured", "finished"]
    before, after = watch.of("evaluated")
    assert after.values["loss"] < before.values["loss"]
    assert read_events(Path(job.run_folder) / EVENTS_FILE) == tuple(watch.events)
    assert outcome.steps == job.steps.steps == watch.events[-1].step
    assert outcome.trained_tokens == job.steps.trained_tokens
    measured = watch.of("measured")[0].values
    assert measured["peak_bytes"] > 100e6
    assert 0 < measured["train_s"] < measured["total_s"]


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # peft asks under the old name
def test_the_adapter_answers_in_peft_as_it_did_here(make_job, train_job):
    """Loaded by PEFT on a fresh base it has the very loss that the run ended with."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    from scrimp.data.dataset import load_dataset
    from scrimp.data.tokenizer import ChatTokenizer

    job = make_job(epochs=3.0, learning_rate=5e-3)
    outcome, watch = train_job(job, catch=())
    base = AutoModelForCausalLM.from_pretrained(job.recipe.model, dtype=torch.float32)
    model = PeftModel.from_pretrained(base, outcome.adapter).eval()
    total, tokens = 0.0, 0
    # The template and the tokenizer lie beside the adapter.
    for row in load_dataset(job.data, ChatTokenizer.from_folder(Path(outcome.adapter)), base=Path.cwd()).evaluation:
        ids = torch.tensor(list(row.tokens))
        trains = torch.tensor(list(row.labels_mask)).bool()[1:]
        with torch.no_grad():
            logits = model(input_ids=ids[None], use_cache=False).logits[0, :-1]
        total += float(torch.nn.functional.cross_entropy(logits[trains], ids[1:][trains], reduction="sum"))
        tokens += int(trains.sum())
    assert watch.of("evaluated")[-1].values["loss"] == pytest.approx(total / tokens, abs=1e-5)


def test_the_result_names_its_base_for_other_machines_and_says_what_it_is(make_job, train_job, tiny_model, tmp_path):
    """Trained from the hub's cache, and again from it in another place: the same bytes, and the id of the hub."""
    found = []
    for machine in ("here", "there"):
        model = tmp_path / machine / "models--owner--tiny" / "snapshots" / "0123abcd"
        shutil.copytree(tiny_model(), model)
        outcome, watch = train_job(make_job(folder=machine, model=model, max_steps=2), catch=())
        adapter = Path(outcome.adapter)
        assert json.loads((adapter / "adapter_config.json").read_text())["base_model_name_or_path"] == "owner/tiny"
        found.append({path.name: path.read_bytes() for path in adapter.iterdir()})
    assert found[0] == found[1]
    text = found[0]["README.md"].decode()
    assert "base_model: owner/tiny" in text
    assert f"{watch.of('evaluated')[-1].values['loss']:.4f} after" in text
    assert str(tmp_path).encode() not in b"".join(found[0].values())


def test_a_full_fine_tune_ends_with_a_whole_model(make_job, train_job):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    job = make_job(method=MethodChoice(name="full"), max_steps=2)
    outcome, _ = train_job(job, catch=())
    model = AutoModelForCausalLM.from_pretrained(outcome.adapter)
    assert model.num_parameters() == 176_576
    assert AutoTokenizer.from_pretrained(outcome.adapter).chat_template
    config = json.loads((Path(outcome.adapter) / "config.json").read_text())
    assert config.get("use_cache", True) is True, "what training switched off stays out of the result"
    assert "scrimp" not in json.dumps(config)
    assert job.recipe.model not in json.dumps(config), "no path of this machine"


def test_without_prompts_the_first_evaluation_rows_are_asked(make_job, train_job):
    _, watch = train_job(make_job(max_steps=1), catch=())
    told = watch.of("sampled")
    assert [event.values["when"] for event in told] == ["before", "before", "after", "after"]
    assert all(event.values["prompt"].startswith("Define the word") for event in told)


@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM"])
def test_a_signal_while_loading_ends_at_once_and_loses_nothing(make_job, train_job, onlooker, signal):
    stop = StopSignals()
    watch = onlooker().at("started", lambda: stop.ask(signal))
    error, _ = train_job(make_job(), watch=watch, stop=stop)
    assert isinstance(error, InterruptedRunError)
    assert [event.kind for event in watch.events] == ["started", "interrupted"]
    assert watch.events[-1].values == {"signal": signal, "checkpoint": None}


def test_a_signal_during_a_save_does_not_break_it(make_job, train_job, onlooker, monkeypatch):
    from scrimp.train import durable

    stop = StopSignals()
    seal = durable.seal

    def asking(folder, **kwargs):
        stop.ask("SIGINT")
        stop.ask("SIGINT")
        return seal(folder, **kwargs)

    monkeypatch.setattr(durable, "seal", asking)
    monkeypatch.setattr("scrimp.train.prepare.check_disk", lambda *_, **__: None)
    watch = onlooker()
    error, _ = train_job(make_job(), watch=watch, stop=stop)
    assert isinstance(error, InterruptedRunError)
    assert error.exit_code == 130
    assert error.next_step == "scrimp resume tiny-run"
    folder = Path(make_job().run_folder) / "checkpoints" / "step-000002"
    assert durable.damage(folder) is None
    assert [event.kind for event in watch.events[-3:]] == ["checkpointed", "measured", "interrupted"]


@pytest.fixture
def slow_world(turned_clock, monkeypatch):
    """Every micro-batch takes half a second and every save one; nothing else takes time. Makes its clock."""
    from scrimp.train.checkpoint import CheckpointStore
    from scrimp.train.forward import Forward

    turned = turned_clock()
    loss, save = Forward.loss, CheckpointStore.save

    def slow_loss(self, batch, **k):
        turned.at_s += 0.5
        return loss(self, batch, **k)

    def slow_save(self, state, groups):
        turned.at_s += 1
        return save(self, state, groups)

    monkeypatch.setattr(Forward, "loss", slow_loss)
    monkeypatch.setattr(CheckpointStore, "save", slow_save)
    return turned


def test_the_budget_is_held_and_a_higher_one_goes_on_to_the_same_bytes(make_job, train_job, slow_world, result_bytes):
    """At a dollar a second about half of the run fits."""
    whole = make_job(folder="whole")
    train_job(whole, catch=())
    job = make_job(job={"price_usd_per_hour": Decimal(3600), "budget_usd": Decimal(12)})
    error, watch = train_job(job, clock=slow_world.clock())
    assert isinstance(error, BudgetError)
    assert error.exit_code == 6
    told = watch.events[-1]
    assert told.kind == "stopped_at_cap"
    assert 10 < Decimal(told.values["spent_usd"]) <= 12, "held, and not much given away"
    assert told.values["budget_usd"] == "12"
    assert 2 < told.step < job.steps.steps
    assert told.values["checkpoint"] == f"step-{told.step:06d}"
    assert watch.of("step")[-1].values["projected_usd"] > watch.of("step")[-1].values["spent_usd"]
    again, second = train_job(replace(job, budget_usd=Decimal(10)), clock=slow_world.clock())
    assert isinstance(again, BudgetError)
    assert [event.kind for event in second.events] == ["started", "stopped_at_cap"], "not a cent for loading"
    _, third = train_job(replace(job, budget_usd=Decimal(1000)), clock=slow_world.clock(), catch=())
    assert Decimal(third.of("step")[0].values["spent_usd"]) > Decimal(told.values["spent_usd"])
    assert result_bytes(job) == result_bytes(whole)


def test_the_deadline_is_held(make_job, train_job, slow_world):
    error, watch = train_job(make_job(job={"deadline_s": 12.0}), clock=slow_world.clock())
    assert isinstance(error, BudgetError)
    assert "deadline" in error.what
    told = watch.events[-1]
    assert (told.kind, told.values["limit"], told.values["budget_usd"]) == ("stopped_at_cap", "deadline", None)
    assert 10 < told.at_s - watch.events[0].at_s <= 12


def test_a_loss_that_is_no_number_stops_before_it_does_harm(make_job, train_job, monkeypatch):
    from scrimp.train.forward import Forward

    plain, calls = Forward.loss, []

    def failing(self, batch, **k):
        calls.append(batch)
        loss = plain(self, batch, **k)
        return loss * float("nan") if loss.requires_grad and len(calls) > 16 else loss

    monkeypatch.setattr(Forward, "loss", failing)
    job = make_job()
    error, watch = train_job(job)
    assert isinstance(error, TrainingError)
    assert error.exit_code == 10
    assert "is nan" in error.what
    assert watch.events[-1].kind == "failed"
    assert watch.events[-1].values["exit_code"] == 10
    assert watch.of("checkpointed"), "what was good is kept"
    monkeypatch.setattr(Forward, "loss", plain)
    train_job(job, catch=())


def test_tensors_without_a_gradient_are_found_after_two_steps(make_job, train_job, monkeypatch):
    from scrimp.train.forward import Forward

    plain = Forward.loss

    def cut(self, batch, **k):
        layer = self.loaded.base.model.layers[1].self_attn.q_proj.lora_B["default"].weight
        handle = layer.register_hook(lambda grad: grad * 0)
        loss = plain(self, batch, **k)
        loss.register_hook(lambda _grad: None) if loss.requires_grad else handle.remove()
        return loss

    monkeypatch.setattr(Forward, "loss", cut)
    error, watch = train_job(make_job())
    assert isinstance(error, TrainingError)
    assert "layers.1.self_attn.q_proj.lora_B" in error.what or "layers.1.self_attn.q_proj.lora_A" in error.what
    assert [event.step for event in watch.of("step")] == [1]


def test_a_method_that_trains_what_it_does_not_save_is_refused(make_job, train_job, monkeypatch):
    from scrimp.methods.lora import METHOD

    plain = type(METHOD).apply

    def leaky(self, model, options):
        made = plain(self, model, options)
        made.get_base_model().model.norm.weight.requires_grad_(True)
        return made

    monkeypatch.setattr(type(METHOD), "apply", leaky)
    error, watch = train_job(make_job())
    assert isinstance(error, TrainingError)
    assert "model.norm.weight" in error.what
    assert "trained and not saved" in error.what
    assert watch.of("step") == []


def test_adapters_that_are_not_fp32_are_refused(make_job, train_job, monkeypatch):
    from scrimp.methods.lora import METHOD

    plain = type(METHOD).apply
    monkeypatch.setattr(type(METHOD), "apply", lambda self, model, options: plain(self, model, options).bfloat16())
    error, _ = train_job(make_job())
    assert isinstance(error, TrainingError)
    assert "not fp32" in error.what


def test_rows_without_labels_are_an_error(make_job, train_job, write_rows):
    path = write_rows([{"prompt": "a", "completion": ""}] * 4)
    job = replace(make_job(), data=DataSpec(path=str(path)))
    error, watch = train_job(job)
    assert isinstance(error, DataError)
    assert error.exit_code == 3
    assert watch.events[-1].kind == "failed"


def test_other_steps_than_planned_are_refused(make_job, train_job):
    job = make_job()
    error, watch = train_job(replace(job, steps=replace(job.steps, steps=13)))
    assert isinstance(error, DataError)
    assert "12 steps here, the plan says 13" in error.what
    assert watch.of("loaded") == []


def test_a_full_disk_is_found_before_the_first_step(make_job, train_job, monkeypatch):
    from collections import namedtuple

    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage(1, 1, 2**20))
    error, watch = train_job(make_job())
    assert isinstance(error, ResourceError)
    assert error.exit_code == 8
    assert "room for 3 checkpoints" in error.expected
    assert watch.of("step") == []


def test_a_disk_that_fills_later_keeps_the_older_checkpoint(make_job, train_job, monkeypatch):
    from scrimp.train import checkpoint

    plain, saves = checkpoint.save_file, []

    def filling(tensors, path):
        saves.append(path)
        if len(saves) > 4:
            raise OSError(28, "No space left on device")
        plain(tensors, path)

    monkeypatch.setattr(checkpoint, "save_file", filling)
    job = make_job()
    error, watch = train_job(job)
    assert isinstance(error, ResourceError)
    assert "No space left" in error.what
    names = sorted(path.name for path in (Path(job.run_folder) / "checkpoints").iterdir())
    assert names == ["step-000002", "step-000004"]
    monkeypatch.setattr(checkpoint, "save_file", plain)
    _, watch = train_job(job, catch=())
    assert watch.of("resumed")[0].values["from_step"] == 4


def test_memory_that_runs_out_says_what_to_try(make_job, train_job, monkeypatch):
    import torch

    from scrimp.train.forward import Forward

    def full(self, batch, **k):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr(Forward, "loss", full)
    error, watch = train_job(make_job())
    assert isinstance(error, ResourceError)
    assert "micro_batch_tokens" in error.next_step
    assert watch.events[-1].values["exit_code"] == 8


def test_an_error_of_ours_nobody_foresaw_is_in_the_log_too(make_job, train_job, monkeypatch):
    monkeypatch.setattr("scrimp.train.prepare.check_disk", lambda *_, **__: 1 // 0)
    error, watch = train_job(make_job(), catch=ZeroDivisionError)
    assert isinstance(error, ZeroDivisionError)
    assert watch.events[-1].values == {"error": "ZeroDivisionError: integer division or modulo by zero", "exit_code": 1}


def test_what_this_trainer_does_not_do_is_refused_before_loading(make_job, train_job):
    for changes, error_class in (
        ({"sharding": "fsdp"}, SpecError),
        ({"compute_dtype": "fp16"}, ResourceError),
        ({"weight_dtype": "int8"}, SpecError),
    ):
        error, watch = train_job(make_job(folder=str(changes), **changes))
        assert isinstance(error, error_class), changes
        assert watch.of("loaded") == []


def test_a_model_that_brings_code_is_not_run(make_job, train_job, tiny_model):
    folder = tiny_model()
    marker = folder / "executed"
    (folder / "modeling_evil.py").write_text(f"from pathlib import Path\nPath({str(marker)!r}).touch()\n")
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "evil",
        "auto_map": {"AutoModelForCausalLM": "modeling_evil.Evil", "AutoConfig": "modeling_evil.Evil"},
    }
    job = make_job(model=folder)
    (folder / "config.json").write_text(json.dumps(config))
    error, _ = train_job(job)
    assert isinstance(error, SpecError)
    assert not marker.exists()


def test_pickled_weights_are_not_read(make_job, train_job, tiny_model):
    import torch

    folder = tiny_model()
    job = make_job(model=folder)
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")
    error, _ = train_job(job)
    assert isinstance(error, SpecError)
