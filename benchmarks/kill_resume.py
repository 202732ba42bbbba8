"""Kill -9 at random moments, saves included: every resumed run ends with the bytes of the uninterrupted one.

    python benchmarks/kill_resume.py [--kills 10] [--seed 1]

The real SmolLM2-135M with LoRA and dropout, a checkpoint every second step. One run is left alone; the others are
killed without warning, some at a random moment between start and end, every third while a checkpoint is being written,
and then started again until they end. Compared: every file of the adapter, learning rate and loss of every step.
"""

import argparse
import hashlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from job_folders import DOCSTRINGS, copied_job, planned_job

from scrimp.core.run import RunEvent
from scrimp.spec.events import read_events

SPEC = """
name: kill-resume
model: smollm2-135m-instruct
data: {path: rows.jsonl, max_length_tokens: 512}
method: {name: lora, rank: 8, dropout: 0.1}
training: {epochs: 2, batch_rows: 4, learning_rate: 1.0e-3, seed: 3, checkpoint_every_steps: 2, eval_every_steps: 5}
market: {where: local}
sample_prompts: ["What does a docstring do?"]
"""
TRAIN_ROWS, EVAL_ROWS = 20, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What must be equal: hashes of the adapter's files, and (loss, learning rate) by step as last taken."""

    files: dict[str, str]
    steps: dict[int, tuple[object, object]]


def result_of(run: Path) -> Result:
    """The result in a finished run folder."""
    files = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((run / "adapter").iterdir())
        if path.name != "manifest.json"
    }
    steps = {event.step: (event.values["loss"], event.values["learning_rate"]) for event in _steps(run)}
    return Result(files=files, steps=steps)


def _steps(run: Path) -> list[RunEvent]:
    return [event for event in read_events(run / "events.jsonl") if event.kind == "step"]


def start(resolved: Path) -> "subprocess.Popen[bytes]":
    """`scrimp train` in the background."""
    command = [sys.executable, "-m", "scrimp", "train", str(resolved)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for_save(run: Path, process: "subprocess.Popen[bytes]", *, number: int) -> bool:
    """Until the `number`th save of this run is under way; False when the process ended before."""
    seen: set[str] = set()
    while process.poll() is None:
        for path in (run / "checkpoints").glob(".*.new"):
            seen.add(path.name)
            if len(seen) >= number:
                return True
        time.sleep(0.0005)
    return False


def moment_in_words(run: Path) -> str:
    """Where the killed process was, by what it left."""
    torn = [path.name for path in (run / "checkpoints").glob(".*")] if (run / "checkpoints").is_dir() else []
    events = read_events(run / "events.jsonl")
    last = f"after {events[-1].kind}, step {events[-1].step}" if events else "before its first word"
    return last + (f", in a save ({', '.join(torn)})" if torn else "")


def killed_run(resolved: Path, run: Path, *, number: int, whole_s: float, rng: random.Random) -> tuple[str, Result]:
    """One run that is killed once and then started again until it ends."""
    copy = copied_job(resolved, run)
    process = start(copy)
    if number % 3 == 0:
        wait_for_save(run, process, number=rng.randint(1, 4))
        time.sleep(rng.uniform(0, 0.02))
    else:
        time.sleep(rng.uniform(0.5, whole_s * 0.97))
    process.send_signal(signal.SIGKILL)
    process.wait()
    moment = moment_in_words(run)
    for _ in range(3):
        if start(copy).wait() == 0:
            return moment, result_of(run)
    raise SystemExit(f"the run that was killed {moment} does not end")


def few_rows(path: Path) -> None:
    """The shortest rows of the benchmark's data, so that ten runs and their repeats end in minutes."""
    lines = sorted(DOCSTRINGS.read_text(encoding="utf-8").splitlines(), key=len)
    train = [line for line in lines if '"split": "train"' in line][:TRAIN_ROWS]
    held_out = [line for line in lines if '"split": "test"' in line][:EVAL_ROWS]
    path.write_text("\n".join(train + held_out) + "\n", encoding="utf-8")


def main() -> int:
    """Print a line for every kill; exit 1 when any result differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    equal = in_saves = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        few_rows(folder / "rows.jsonl")
        resolved = planned_job(folder, SPEC)
        began_s = time.monotonic()
        if start(copied_job(resolved, folder / "whole")).wait():
            raise SystemExit("the uninterrupted run failed")
        whole_s = time.monotonic() - began_s
        expected = result_of(folder / "whole")
        print(f"uninterrupted: {whole_s:.0f} s, {len(expected.steps)} steps, {len(expected.files)} files", flush=True)
        for number in range(1, given.kills + 1):
            run = folder / f"killed-{number}"
            moment, found = killed_run(resolved, run, number=number, whole_s=whole_s, rng=rng)
            same = found == expected
            equal += same
            in_saves += "in a save" in moment
            print(f"kill {number:2d}: {moment}: {'same bytes' if same else 'DIFFERENT'}", flush=True)
            shutil.rmtree(run)
    print(
        f"{equal} of {given.kills} killed runs end with the bytes of the uninterrupted one; {in_saves} kills in saves"
    )
    return int(equal != given.kills)


if __name__ == "__main__":
    sys.exit(main())
