"""A tiny real model (random Llama, 1,024 tokens), tiny data, and jobs on them."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from scrimp.core.data import StepPlan
from scrimp.core.job import DataSpec, MethodChoice
from scrimp.core.recipe import Recipe, ResolvedJob

EXAMPLES = Path(__file__).parents[2] / "examples" / "data"


@pytest.fixture(scope="session")
def tiny_model_folder(tmp_path_factory, tiny_tokenizer_folder) -> Path:
    """176 k parameters: hidden 64, 3 layers, grouped query heads, tied head; random, but always the same."""
    return save_tiny_model(tmp_path_factory.mktemp("tiny-model"), tiny_tokenizer_folder)


@pytest.fixture(scope="session")
def tiny_rows_path(tmp_path_factory) -> Path:
    """36 real rows of various lengths."""
    path = tmp_path_factory.mktemp("tiny-rows") / "rows.jsonl"
    lines = (EXAMPLES / "devils_dictionary.jsonl").read_text(encoding="utf-8").splitlines()
    short = [line for line in lines if len(line) < 700]
    path.write_text("\n".join(short[:36]) + "\n", encoding="utf-8")
    return path


def save_tiny_model(folder, tokenizer_folder, **changes):
    """A random Llama in `folder`, beside the tiny tokenizer's files."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    settings = {
        "vocab_size": 1024,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 2,
    }
    torch.manual_seed(7)
    LlamaForCausalLM(LlamaConfig(**settings | changes)).save_pretrained(folder)
    for path in tokenizer_folder.iterdir():
        shutil.copy(path, folder / path.name)
    return folder


@pytest.fixture
def make_job(tmp_path, tiny_model_folder, tiny_rows_path):
    """A job on the tiny model: keyword arguments change the recipe; `job` those of the job itself."""

    def make(*, folder="run", model=None, data=None, job=None, **changes) -> ResolvedJob:
        recipe = replace(tiny_recipe(str(model or tiny_model_folder)), **changes)
        spec = data or DataSpec(path=str(tiny_rows_path), eval_share=0.2, max_length_tokens=recipe.max_length_tokens)
        made = ResolvedJob(
            run_id="tiny-run",
            name="tiny",
            recipe=recipe,
            data=spec,
            steps=count(spec, recipe),
            run_folder=str(tmp_path / folder),
            threads=1,
        )
        return replace(made, **(job or {}))

    return make


def tiny_recipe(model: str) -> Recipe:
    """LoRA with dropout in fp32, so that resuming has random numbers to restore."""
    return Recipe(
        model=model,
        method=MethodChoice(name="lora", options={"rank": 4, "alpha": 8, "dropout": 0.1}),
        weight_dtype="fp32",
        compute_dtype="fp32",
        layout="packed",
        loss="selected",
        sharding="none",
        optimizer="adamw",
        checkpointing="none",
        max_length_tokens=256,
        batch_rows=4,
        batch_tokens=None,
        micro_batch_tokens=256,
        epochs=1.5,
        max_steps=None,
        learning_rate=1e-3,
        schedule="cosine",
        warmup_steps=2,
        weight_decay=0.01,
        clip_norm=1.0,
        seed=3,
        eval_every_steps=None,
        checkpoint_every_steps=2,
        keep_checkpoints=2,
    )


def count(spec: DataSpec, recipe: Recipe) -> StepPlan:
    """The steps that a planner would count."""
    from scrimp.data.batches import StepOptions, count_steps
    from scrimp.data.dataset import load_dataset
    from scrimp.data.tokenizer import ChatTokenizer

    dataset = load_dataset(spec, ChatTokenizer.from_folder(Path(recipe.model)), base=Path.cwd())
    return count_steps(dataset.sizes, options=StepOptions.of(recipe))


class Onlooker:
    """Collects events; `at(kind, step)` calls something when that event comes."""

    def __init__(self):
        self.events = []
        self._calls = []

    def at(self, kind, call, *, step=None):
        self._calls.append((kind, step, call))
        return self

    def __call__(self, event):
        self.events.append(event)
        for kind, step, call in self._calls:
            if event.kind == kind and step in (None, event.step):
                call()

    def of(self, kind):
        return [event for event in self.events if event.kind == kind]


@pytest.fixture
def train_job():
    """Run one attempt in this process; returns its outcome (or the error it ended with) and its events."""
    from scrimp.core.errors import ScrimpError
    from scrimp.train.clock import real_clock
    from scrimp.train.run import train
    from scrimp.train.stop import StopSignals
    from scrimp.train.surroundings import Surroundings

    def run(job, *, watch=None, stop=None, clock=None, catch=ScrimpError):
        watch = watch or Onlooker()
        around = Surroundings(
            env={}, clock=clock or real_clock(), base=Path.cwd(), stop=stop or StopSignals(), on_event=watch
        )
        try:
            return train(job, around=around), watch
        except catch as error:
            return error, watch

    return run


@pytest.fixture
def onlooker():
    """Makes collectors of events."""
    return Onlooker


@pytest.fixture
def recipe():
    """Makes recipes on a model that is only a name."""
    return lambda **changes: replace(tiny_recipe("tiny"), **changes)


@pytest.fixture
def tiny_model(tmp_path, tiny_tokenizer_folder):
    """Makes tiny models of other shapes and families."""
    return lambda name="model", **changes: save_tiny_model(tmp_path / name, tiny_tokenizer_folder, **changes)


@pytest.fixture
def result_bytes():
    """Every file of a job's result but the manifest."""

    def read(job) -> dict[str, bytes]:
        folder = Path(job.run_folder) / "adapter"
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name != "manifest.json"}

    return read


@pytest.fixture
def write_rows(tmp_path):
    """Writes a jsonl file and returns its path."""

    def write(rows, name="rows.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


class TurnedClock:
    """A clock that only tests turn."""

    def __init__(self):
        self.at_s = 1_000_000.0

    def clock(self):
        from scrimp.train.clock import Clock

        return Clock(now_s=lambda: self.at_s, wall_s=lambda: self.at_s, cpu_s=lambda: self.at_s)


@pytest.fixture
def turned_clock():
    """Makes clocks that only tests turn."""
    return TurnedClock
