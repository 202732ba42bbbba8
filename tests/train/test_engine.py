"""The step: exact in tokens, equal to a plain loop, repeatable, dropout included."""

import math
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

from scrimp.core.job import MethodChoice

pytestmark = pytest.mark.train

NO_DROPOUT = MethodChoice(name="lora", options={"rank": 4, "alpha": 8})
FULL = MethodChoice(name="full")


def _trained(make_job, train_job, **changes):
    """Final trained tensors and losses of a run."""
    from safetensors.torch import load_file

    job = make_job(**{"checkpoint_every_steps": None, "epochs": 1.0, "method": NO_DROPOUT, **changes})
    _, watch = train_job(job, catch=())
    newest = sorted((Path(job.run_folder) / "checkpoints").iterdir())[-1]
    losses = [event.values["loss"] for event in watch.of("step")]
    return load_file(newest / "trainable.safetensors"), losses, watch


def _furthest(one, other):
    assert set(one) == set(other)
    return max(float((one[name] - other[name]).abs().max()) for name in one)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("method", [NO_DROPOUT, FULL], ids=["lora", "full"])
def test_the_split_into_micro_batches_does_not_matter(make_job, train_job, optimizer, method):
    """One row at a time, two rows or so, all at once: the same weights."""
    # AdamW divides by the root of tiny second moments, which blows up the last bits of tiny gradients.
    rate = {"sgd": 0.05, "adamw": 1e-4}[optimizer]
    runs = [
        _trained(
            make_job, train_job, folder=f"micro-{tokens}", micro_batch_tokens=tokens, optimizer=optimizer,
            method=method, learning_rate=rate, clip_norm=0.0 if optimizer == "sgd" else 1.0,
        )
        for tokens in (1, 220, 100_000)
    ]  # fmt: skip
    assert len(runs[0][1]) == 8
    for one, other in pairwise(runs):
        assert one[1] == pytest.approx(other[1], abs=1e-5)
        assert _furthest(one[0], other[0]) < 1e-6


@pytest.mark.parametrize(
    "changes", [{"layout": "padded"}, {"loss": "full"}, {"layout": "padded", "loss": "full"}], ids=str
)
def test_layout_and_loss_code_do_not_matter(make_job, train_job, changes):
    usual, usual_losses, _ = _trained(make_job, train_job, folder="usual")
    other, other_losses, watch = _trained(make_job, train_job, folder="other", **changes)
    assert watch.of("loaded")[0].values["layout"] == changes.get("layout", "packed")
    assert watch.of("loaded")[0].values["loss"] == changes.get("loss", "selected")
    assert usual_losses == pytest.approx(other_losses, abs=1e-5)
    assert _furthest(usual, other) < 2e-5


@pytest.mark.parametrize("checkpointing", ["selective", "full"])
@pytest.mark.parametrize(
    "changes",
    [
        {"method": NO_DROPOUT},
        {"method": MethodChoice(name="lora", options={"rank": 4, "alpha": 8, "dropout": 0.1})},
        {"method": NO_DROPOUT, "weight_dtype": "bf16", "compute_dtype": "bf16"},
        {"method": FULL},
        {"method": FULL, "compute_dtype": "bf16"},
        pytest.param(
            {"method": MethodChoice(name="qlora", options={"rank": 4, "dropout": 0.1}), "weight_dtype": "nf4",
             "compute_dtype": "bf16"},
            marks=pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="needs the quant extra"),
        ),
    ],
    ids=["lora", "dropout", "lora-bf16", "full", "full-autocast", "qlora"],
)  # fmt: skip
def test_checkpointing_changes_nothing(make_job, train_job, changes, checkpointing):
    usual, losses, _ = _trained(make_job, train_job, folder="usual", epochs=0.5, **changes)
    other, other_losses, _ = _trained(
        make_job, train_job, folder="other", epochs=0.5, checkpointing=checkpointing, **changes
    )
    assert losses == other_losses
    assert _furthest(usual, other) == 0.0


def test_it_equals_a_plain_loop_over_transformers_and_peft(make_job, train_job, tiny_rows_path):
    """The reference knows nothing of packing: padded batches, full logits, labels of -100, AdamW, a lambda schedule."""
    import torch
    from transformers import AutoModelForCausalLM

    from scrimp import methods
    from scrimp.core.job import DataSpec
    from scrimp.data.batches import StepOptions, step_rows
    from scrimp.data.dataset import load_dataset
    from scrimp.data.tokenizer import ChatTokenizer

    found, losses, _ = _trained(make_job, train_job, weight_decay=0.1, schedule="linear", warmup_steps=3)
    recipe = make_job(method=NO_DROPOUT, epochs=1.0).recipe
    folder = Path(recipe.model)
    data = DataSpec(path=str(tiny_rows_path), eval_share=0.2, max_length_tokens=256)
    rows = load_dataset(data, ChatTokenizer.from_folder(folder), base=Path.cwd()).train
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    torch.manual_seed(recipe.seed)
    model = methods.get("lora").apply(model, methods.options_for("lora", NO_DROPOUT.options))
    trained = {name: each for name, each in model.named_parameters() if each.requires_grad}
    optimizer = torch.optim.AdamW(trained.values(), lr=recipe.learning_rate, weight_decay=0.1)
    steps = list(step_rows([row.total_tokens for row in rows], options=StepOptions.of(recipe)))
    rise = [min((step + 1) / 4, 1 - max(0, step - 3) / (len(steps) - 3)) for step in range(len(steps))]
    expected_losses = []
    for step, indices in enumerate(steps):
        width = max(rows[i].total_tokens for i in indices)
        ids = torch.zeros(len(indices), width, dtype=torch.long)
        labels = torch.full_like(ids, -100)
        mask = torch.zeros_like(ids)
        for at, i in enumerate(indices):
            length = rows[i].total_tokens
            ids[at, :length] = torch.tensor(list(rows[i].tokens))
            mask[at, :length] = 1
            trains = torch.tensor(list(rows[i].labels_mask)).bool()
            labels[at, :length] = torch.where(trains, ids[at, :length], torch.tensor(-100))
        logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, :-1]
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, 1024), labels[:, 1:].reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained.values(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate * rise[step]
        optimizer.step()
        optimizer.zero_grad()
        expected_losses.append(loss.item())
    assert losses == pytest.approx(expected_losses, abs=2e-5)
    assert _furthest(found, {name: each.detach() for name, each in trained.items()}) < 5e-5


def test_dropout_is_drawn_from_seed_and_step(make_job, train_job):
    dropped = MethodChoice(name="lora", options={"rank": 4, "alpha": 8, "dropout": 0.3})
    one = _trained(make_job, train_job, folder="one", method=dropped)
    two = _trained(make_job, train_job, folder="two", method=dropped)
    other = _trained(make_job, train_job, folder="other", method=dropped, seed=4)
    without = _trained(make_job, train_job, folder="without")
    assert _furthest(one[0], two[0]) == 0.0
    assert one[1] == two[1]
    assert one[1] != without[1]
    assert other[1] != one[1]


def test_the_event_log_tells_every_step(make_job, train_job):
    _, losses, watch = _trained(make_job, train_job)
    told = watch.of("step")
    assert [event.step for event in told] == list(range(1, len(losses) + 1))
    job = make_job(epochs=1.0)
    assert told[-1].values["total_tokens"] == job.steps.total_tokens
    assert told[-1].values["trained_tokens"] == job.steps.trained_tokens
    assert all(event.values["tokens_per_s"] > 0 and event.values["cpu_s"] > 0 for event in told)


def test_evaluation_is_a_mean_over_tokens(make_job, train_job):
    """As many micro-batches as rows, or one for all: the same loss, and it equals that of plain transformers."""
    import torch
    from transformers import AutoModelForCausalLM

    from scrimp.data.dataset import load_dataset
    from scrimp.data.tokenizer import ChatTokenizer

    before = []
    for tokens in (1, 100_000):
        job = make_job(folder=f"eval-{tokens}", micro_batch_tokens=tokens, max_steps=1)
        _, watch = train_job(job, catch=())
        before.append(next(event.values for event in watch.of("evaluated") if event.values["when"] == "before"))
    assert before[0]["loss"] == pytest.approx(before[1]["loss"], abs=1e-6)
    assert before[0]["perplexity"] == pytest.approx(math.exp(before[0]["loss"]))
    folder = Path(job.recipe.model)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    total, tokens = 0.0, 0
    for row in load_dataset(job.data, ChatTokenizer.from_folder(folder), base=Path.cwd()).evaluation:
        ids = torch.tensor(list(row.tokens))
        trains = torch.tensor(list(row.labels_mask)).bool()[1:]
        with torch.no_grad():
            logits = model(input_ids=ids[None], use_cache=False).logits[0, :-1]
        total += float(torch.nn.functional.cross_entropy(logits[trains], ids[1:][trains], reduction="sum"))
        tokens += int(trains.sum())
    assert before[0]["eval_tokens"] == tokens
    assert before[0]["loss"] == pytest.approx(total / tokens, abs=1e-5)


def test_evaluations_in_between_change_nothing_that_is_trained(make_job, train_job):
    usual = _trained(make_job, train_job, folder="usual")
    watched = _trained(
        make_job, train_job, folder="watched", eval_every_steps=3, job={"sample_prompts": ("Define hope.",)}
    )
    assert [event.step for event in watched[2].of("evaluated")] == [0, 3, 6, 8]
    assert [event.values["when"] for event in watched[2].of("evaluated")] == ["before", "during", "during", "after"]
    assert _furthest(usual[0], watched[0]) == 0.0


def test_bf16_trains_fp32_adapters_beside_bf16_weights(make_job, train_job):
    import torch

    found, losses, _ = _trained(
        make_job, train_job, weight_dtype="bf16", compute_dtype="bf16", learning_rate=5e-3, epochs=4.0
    )
    assert {each.dtype for each in found.values()} == {torch.float32}
    assert losses[-1] < losses[0] - 0.05


def test_a_loss_scale_changes_nothing_but_the_range(make_job, train_job, monkeypatch):
    """What fp16 runs do on cards, here in fp32: a power of two is exact."""
    from scrimp.train.optimizer import LossScale

    usual, losses, _ = _trained(make_job, train_job, folder="usual")
    monkeypatch.setattr(LossScale, "of", classmethod(lambda cls, _recipe: cls(scale=2.0**10, dynamic=True)))
    scaled, scaled_losses, _ = _trained(make_job, train_job, folder="scaled")
    assert scaled_losses == losses
    assert _furthest(usual, scaled) < 1e-7


def test_a_step_that_overflows_is_skipped_and_the_scale_halved(make_job, train_job, monkeypatch):
    import json

    import torch

    from scrimp.train import engine
    from scrimp.train.optimizer import LossScale

    monkeypatch.setattr(LossScale, "of", classmethod(lambda cls, _recipe: cls(scale=2.0**10, dynamic=True)))
    usual, _, _ = _trained(make_job, train_job, folder="usual", max_steps=3, schedule="constant", warmup_steps=0)
    clip, calls = engine.clip_gradients, []

    def overflowing(parameters, **options):
        parameters = list(parameters)
        calls.append(len(parameters))
        if len(calls) == 4:
            parameters[0].grad.fill_(float("inf"))
        return clip(parameters, **options)

    monkeypatch.setattr(engine, "clip_gradients", overflowing)
    skipped, losses, watch = _trained(
        make_job, train_job, folder="skipped", max_steps=4, schedule="constant", warmup_steps=0
    )
    assert _furthest(usual, skipped) == 0.0, "three steps, and one that was not taken"
    assert all(torch.isfinite(torch.tensor(losses)))
    assert watch.of("step")[3].values["gradient_norm"] == float("inf")
    (state,) = Path(make_job(folder="skipped").run_folder).glob("checkpoints/step-000004/state.json")
    assert json.loads(state.read_text())["loss_scale"] == 2.0**9


def test_full_fine_tuning_trains_the_tied_head_once(make_job, train_job):
    found, losses, _ = _trained(make_job, train_job, method=FULL, learning_rate=2e-3, epochs=4.0)
    assert "model.embed_tokens.weight" in found
    assert "lm_head.weight" not in found
    assert losses[-1] < losses[0] - 0.5


def test_qlora_trains_and_saves_a_plain_adapter(make_job, train_job):
    pytest.importorskip("bitsandbytes")
    job = make_job(
        method=MethodChoice(name="qlora", options={"rank": 4}), weight_dtype="nf4", compute_dtype="bf16", epochs=4.0,
        learning_rate=5e-3,
    )  # fmt: skip
    outcome, watch = train_job(job, catch=())
    losses = [event.values["loss"] for event in watch.of("step")]
    assert losses[-1] < losses[0] - 0.05
    assert watch.of("loaded")[0].values["layout"] == "packed"
    assert watch.of("loaded")[0].values["params"] == 188_864
    assert (Path(outcome.adapter) / "adapter_model.safetensors").is_file()


def test_the_fullest_micro_batch_is_rehearsed_before_the_first_step(make_job, train_job, monkeypatch):
    from scrimp.train.forward import Forward

    sizes = []
    plain = Forward.loss
    monkeypatch.setattr(
        Forward, "loss", lambda self, batch, **k: (sizes.append(batch.total_tokens), plain(self, batch, **k))[1]
    )
    job = make_job(micro_batch_tokens=300, data=None)
    job = replace(job, data=replace(job.data, eval_share=0.0), steps=_counted(replace(job.data, eval_share=0.0), job))
    train_job(job, catch=())
    assert sizes[0] == max(sizes)
    assert len(sizes) > 20


def _counted(data, job):
    from scrimp.data.batches import StepOptions, count_steps
    from scrimp.data.dataset import load_dataset
    from scrimp.data.tokenizer import ChatTokenizer

    dataset = load_dataset(data, ChatTokenizer.from_folder(Path(job.recipe.model)), base=Path.cwd())
    return count_steps(dataset.sizes, options=StepOptions.of(job.recipe))
