"""Training speed on this machine against TRL's SFTTrainer with PEFT, same rows, adapter, loss mask and steps.

    python benchmarks/train_speed.py [--steps 12] [--rounds 3] [--threads 1]

Arms are processes of their own, interleaved, each timed in CPU seconds of its own process over whole optimizer steps,
the first step left out (it warms caches and allocators). Tokens are real ones: padding does not count.

    scrimp   `scrimp train` as a user gets it
    trl      SFTTrainer + PEFT with TRL's defaults (bf16 autocast over fp32 weights, gradient checkpointing, no
             packing), fed with the very token ids, labels and step order of the scrimp arm, adapters from the same
             numbers
    after    both adapters on the held-out rows, by one plain fp32 evaluation

Bounds: 3 times TRL in real tokens per CPU-second (median of the rounds' ratios), held-out losses within 0.01.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from job_folders import DOCSTRINGS, copied_job, planned_job

BOUND_RATIO = 3.0
BOUND_LOSS = 0.01
SPEC = """
name: train-speed
model: smollm2-135m-instruct
data: {{path: {data}, max_length_tokens: 512}}
method: {{name: lora, rank: 16, alpha: 32}}
training: {{max_steps: {steps}, batch_rows: 8, learning_rate: 2.0e-4, schedule: constant, warmup_share: 0, seed: 7}}
market: {{where: local}}
sample_prompts: ["What does a docstring do?"]
"""


def job_of(folder: Path):
    """The resolved job, its model folder, its rows and the rows of each step."""
    from scrimp.core.recipe import ResolvedJob
    from scrimp.data.batches import StepOptions, step_rows
    from scrimp.data.dataset import load_dataset
    from scrimp.data.tokenizer import ChatTokenizer
    from scrimp.models.prepare import prepare as prepare_model
    from scrimp.models.resolve import resolve
    from scrimp.spec.codec import load_json

    path = Path((folder / "job").read_text())
    job = load_json(ResolvedJob, path.read_bytes(), where=str(path))
    source = prepare_model(resolve(job.recipe.model, env=os.environ), env=os.environ, report=lambda text: None)
    model = Path(source.folder or "")
    dataset = load_dataset(job.data, ChatTokenizer.from_folder(model), base=path.parent)
    options = StepOptions.of(job.recipe)
    steps = list(step_rows(dataset.sizes.total_tokens, options=options))
    return job, model, dataset, steps


def arm_scrimp(folder: Path, out: Path) -> dict[str, float]:
    """`scrimp train` in a fresh run folder; step times out of its events."""
    from scrimp.spec.events import read_events

    run = out / "run"
    resolved = copied_job(Path((folder / "job").read_text()), run)
    subprocess.run(
        [sys.executable, "-m", "scrimp", "train", str(resolved)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    steps = [event for event in read_events(run / "events.jsonl") if event.kind == "step"]
    totals = [0, *(int(event.values["total_tokens"]) for event in steps)]
    return {
        "tokens": totals[-1] - totals[1],
        "cpu_s": sum(float(event.values["cpu_s"]) for event in steps[1:]),
        "last_loss": float(steps[-1].values["loss"]),
    }


def trl_parts():
    """A trainer that takes rows in the order of the other arm, and a clock of whole optimizer steps in CPU seconds."""
    from torch.utils.data import SequentialSampler
    from transformers import TrainerCallback
    from trl import SFTTrainer

    class StepClock(TrainerCallback):
        def __init__(self) -> None:
            self.seconds: list[float] = []

        def on_step_begin(self, *args, **kwargs) -> None:
            self.began = time.process_time()

        def on_step_end(self, *args, **kwargs) -> None:
            self.seconds.append(time.process_time() - self.began)

    class InOrder(SFTTrainer):
        def _get_train_sampler(self, *args, **kwargs):
            return SequentialSampler(self.train_dataset)

    return InOrder, StepClock()


def arm_trl(folder: Path, out: Path) -> dict[str, float]:
    """SFTTrainer with its defaults on the same rows in the same order."""
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import AutoTokenizer
    from trl import SFTConfig

    from scrimp.train.load import load_model

    job, model, dataset, steps = job_of(folder)
    rows = [dataset.train[row] for step in steps for row in step]
    table = Dataset.from_dict(
        {
            "input_ids": [list(row.tokens) for row in rows],
            "completion_mask": [[int(flag) for flag in row.labels_mask] for row in rows],
        }
    )

    trainer_class, clock = trl_parts()
    settings = SFTConfig(
        output_dir=str(out / "trl"), use_cpu=True, per_device_train_batch_size=job.recipe.batch_rows,
        max_length=job.recipe.max_length_tokens, max_steps=len(steps), learning_rate=job.recipe.learning_rate,
        lr_scheduler_type="constant", completion_only_loss=True, report_to=[], save_strategy="no", logging_steps=1,
        disable_tqdm=True, seed=job.recipe.seed,
    )  # fmt: skip
    trainer = trainer_class(
        model=str(model), args=settings, train_dataset=table, processing_class=AutoTokenizer.from_pretrained(model),
        peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"),
        callbacks=[clock],
    )  # fmt: skip
    # Adapters start from the same numbers as in the scrimp arm: the comparison of losses is not one of seeds.
    ours = load_model(model, job.recipe, torch.device("cpu")).trainable
    theirs = {name: each for name, each in trainer.model.named_parameters() if each.requires_grad}
    assert ours.keys() == theirs.keys(), "the two arms train different tensors"
    with torch.no_grad():
        for name, each in theirs.items():
            each.copy_(ours[name])
    trainer.train()
    trainer.model.save_pretrained(str(out / "adapter"))
    counted = sum(len(dataset.train[row].tokens) for step in steps[1:] for row in step)
    losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    return {"tokens": counted, "cpu_s": sum(clock.seconds[1:]), "last_loss": losses[-1]}


def arm_evaluate(folder: Path, adapter: Path) -> dict[str, float]:
    """Held-out loss of an adapter: token mean, plain fp32 forward of one row at a time."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    _, model_folder, dataset, _ = job_of(folder)
    base = AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32)
    model = PeftModel.from_pretrained(base, str(adapter)).eval()
    total, tokens = 0.0, 0
    with torch.no_grad():
        for row in dataset.evaluation:
            ids = torch.tensor([list(row.tokens)])
            labels = torch.tensor([bool(flag) for flag in row.labels_mask])[1:]
            logits = model(input_ids=ids, use_cache=False).logits[0, :-1][labels]
            total += float(torch.nn.functional.cross_entropy(logits, ids[0, 1:][labels], reduction="sum"))
            tokens += int(labels.sum())
    return {"loss": total / tokens}


def child(arm: str, folder: Path, out: Path, threads: int) -> dict[str, float]:
    """One arm in a process of its own."""
    env = os.environ | {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-W", "ignore", __file__, "--arm", arm, "--folder", str(folder), "--out", str(out)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"arm {arm} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def compare(steps: int, rounds: int, threads: int) -> int:
    """Interleave the arms, print a line a round, judge by the medians."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        resolved = planned_job(folder, SPEC.format(data=DOCSTRINGS, steps=steps))
        (folder / "job").write_text(str(resolved), encoding="utf-8")
        ratios: list[float] = []
        for number in range(rounds):
            arms = ("scrimp", "trl") if number % 2 == 0 else ("trl", "scrimp")
            found = {arm: child(arm, folder, folder / f"{arm}-{number}", threads) for arm in arms}
            rate = {arm: values["tokens"] / values["cpu_s"] for arm, values in found.items()}
            ratios.append(rate["scrimp"] / rate["trl"])
            print(
                f"round {number + 1}: scrimp {rate['scrimp']:.0f}, trl {rate['trl']:.0f} real tokens per CPU-second, "
                f"ratio {ratios[-1]:.2f}; loss of the last step {found['scrimp']['last_loss']:.3f} and "
                f"{found['trl']['last_loss']:.3f}",
                flush=True,
            )
        ours = child("evaluate", folder, folder / "scrimp-0" / "run" / "adapter", threads)["loss"]
        theirs = child("evaluate", folder, folder / "trl-0" / "adapter", threads)["loss"]
    ratio = statistics.median(ratios)
    print(f"median ratio {ratio:.2f}, bound {BOUND_RATIO}; {threads} thread(s), {steps} steps of 8 rows")
    print(f"held-out loss: scrimp {ours:.4f}, trl {theirs:.4f}, apart {abs(ours - theirs):.4f}, bound {BOUND_LOSS}")
    return int(ratio < BOUND_RATIO or abs(ours - theirs) > BOUND_LOSS)


def main() -> int:
    """Parent without --arm, one arm with it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--arm", choices=("scrimp", "trl", "evaluate"))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.arm is None:
        return compare(given.steps, given.rounds, given.threads)
    arms = {"scrimp": arm_scrimp, "trl": arm_trl, "evaluate": arm_evaluate}
    print(json.dumps(arms[given.arm](given.folder, given.out)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
