"""The first-run tutorial on a tiny model: what it types works, and its Python loads the adapter that the run made."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.train

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "tutorials" / "first-run.md"
SPEC = """\
model: model
data: {path: rows.jsonl, max_length_tokens: 256}
method: {name: lora, rank: 4}
training: {max_steps: 2, batch_rows: 4}
market: {where: local}
"""


@pytest.fixture
def folder(tmp_path, tiny_tokenizer_folder):
    """A spec, 40 rows of The Devil's Dictionary and a random Llama of 176 k parameters."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(7)
    sizes = {"vocab_size": 1024, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3}
    config = LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2, eos_token_id=2, pad_token_id=2)
    LlamaForCausalLM(config).save_pretrained(tmp_path / "model")
    for path in tiny_tokenizer_folder.iterdir():
        shutil.copy(path, tmp_path / "model")
    rows = (ROOT / "examples" / "data" / "devils_dictionary.jsonl").read_text(encoding="utf-8").splitlines()[:40]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "job.yaml").write_text(SPEC, encoding="utf-8")
    return tmp_path


def call(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the folder, with a home of its own."""
    env = {**os.environ, "HOME": str(folder), "SCRIMP_HOME": str(folder), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_run_show_report_and_the_adapter_in_peft(folder):
    done = call(folder, "-m", "scrimp", "run", "job.yaml", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    adapter = Path(summary["adapter_folder"])
    run = adapter.parent
    listed = re.findall(r"^\| `([^`]+)`(?:, `([^`]+)`)? \|", TUTORIAL.read_text(encoding="utf-8"), re.MULTILINE)
    for name in filter(None, (item for pair in listed for item in pair)):
        assert (run / name).exists(), f"the tutorial lists {name} in a run folder"
    for verb in ("show", "report", "runs", "ledger"):
        assert call(folder, "-m", "scrimp", verb).returncode == 0

    (code,) = re.findall(r"```python\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)
    for name, path in (("adapter", adapter), ("base", folder / "model")):
        code, replaced = re.subn(rf"^{name} = .+$", f"{name} = {str(path)!r}", code, flags=re.MULTILINE)
        assert replaced == 1
    loaded = call(folder, "-c", code)
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stdout.strip()
