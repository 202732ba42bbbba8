"""`scrimp data show` and `scrimp data profile`, as typed: for people, without colour, and as JSON."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from scrimp.cli.data import histogram_bins, visible
from scrimp.cli.main import main

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 1024,
    "max_position_embeddings": 512, "tie_word_embeddings": True,
}  # fmt: skip
ROWS = [
    {"prompt": "Define love.", "completion": "A temporary insanity.", "split": "train"},
    {"prompt": "Define hope.", "completion": "Desire\nand expectation.", "split": "train"},
    {"prompt": "Define wit.", "completion": "", "split": "train"},
    {"prompt": "Define age.", "completion": "word " * 60, "split": "train"},
    {"prompt": "Define \x1b[31mred.", "completion": "Colour.", "split": "test"},
]


@pytest.fixture
def scrimp(tmp_path, tiny_tokenizer_folder, monkeypatch, capsys):
    """A function (arguments) -> (exit code, stdout, stderr), run in a folder with rows.jsonl and a model."""
    shutil.copytree(tiny_tokenizer_folder, tmp_path / "model")
    (tmp_path / "model" / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    (tmp_path / "job.yaml").write_text(
        "model: ./model\ndata: {path: rows.jsonl, max_length_tokens: 90}\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["scrimp", "data", *arguments])
        code = 0
        try:
            main()
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else 1
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_show_prints_the_row_with_brackets_around_what_is_trained(scrimp):
    code, out, err = scrimp("show", "rows.jsonl", "--model", "./model")
    assert (code, err) == (0, "")
    assert "⟦A temporary insanity.<|im_end|>⟧" in out
    assert "<|im_start|>user\nDefine love.<|im_end|>" in out
    assert "shape prompt_completion" in out
    assert "row 1 · rows.jsonl, line 1" in out


def test_show_in_colour_has_one_style_for_trained_and_dims_the_rest(scrimp, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    _, out, _ = scrimp("show", "rows.jsonl", "--model", "./model")
    assert "\x1b[1;32mA temporary insanity.<|im_end|>" in out
    assert "\x1b[2m<|im_start|>system" in out
    assert "⟦" not in out
    monkeypatch.setenv("NO_COLOR", "1")
    _, out, _ = scrimp("show", "rows.jsonl", "--model", "./model")
    assert "⟦A temporary insanity." in out


def test_show_takes_a_spec_and_rows_that_are_dropped_or_held_out(scrimp):
    code, out, _ = scrimp("show", "job.yaml", "--row", "3", "--rows", "3")
    assert code == 0
    lines = [line for line in out.splitlines() if line.startswith("row ")]
    assert "dropped: empty" in lines[0]
    assert "dropped: too_long" in lines[1]
    assert "held out" in " ".join(lines[2:])
    # Control characters of the data are spelt out, never sent to the terminal.
    assert "\\x1b[31mred." in out
    assert "\x1b" not in out


def test_show_one_token_a_line(scrimp):
    _, out, _ = scrimp("show", "rows.jsonl", "--model", "./model", "--tokens", "--row", "2")
    lines = [line.split() for line in out.splitlines() if "'<|im_end|>'" in line]
    assert [line[-1] for line in lines] == ["-", "-", "trained"]


def test_show_as_json_is_one_document(scrimp):
    code, out, err = scrimp("show", "rows.jsonl", "--model", "./model", "--rows", "2", "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert [row["number"] for row in document["rows"]] == [1, 2]
    row = document["rows"][0]
    assert row["trained_tokens"] == sum(token["trained"] for token in row["tokens"])
    assert "".join(token["text"] for token in row["tokens"] if token["trained"]) == "A temporary insanity.<|im_end|>"
    assert row["roles"] == ["user", "assistant"]


def test_show_obeys_overrides(scrimp):
    _, out, _ = scrimp("show", "rows.jsonl", "data.train_on=all", "--model", "./model", "--json")
    row = json.loads(out)["rows"][0]
    assert row["trained_tokens"] == row["total_tokens"] - 1


def test_profile_for_people(scrimp):
    code, out, err = scrimp("profile", "job.yaml")
    assert (code, err) == (0, "")
    assert out.startswith("2 rows train, 1 evaluate, 2 are dropped")
    assert "4 rows in = 2 trained + 2 dropped" in out
    assert "1 empty" in out
    assert "1 too_long" in out
    assert "(rows 4)" in " ".join(out.split())
    assert "█" in out
    assert max(map(len, out.splitlines())) <= 80


def test_profile_as_json_adds_up(scrimp):
    _, out, _ = scrimp("profile", "job.yaml", "--json")
    profile = json.loads(out)
    assert profile["rows_in"] == profile["rows_trained"] + sum(group["rows"] for group in profile["dropped"])
    assert profile["trained_share"] == profile["trained_tokens"] / profile["total_tokens"]
    assert profile["token_basis"] == "counted with the model's tokenizer"


def test_profile_without_a_model_estimates_and_says_so(scrimp):
    _, out, _ = scrimp("profile", "rows.jsonl", "--json")
    assert "estimated" in json.loads(out)["token_basis"]


def test_profile_of_a_model_whose_tokenizer_is_out_of_reach_estimates_and_notes_it(scrimp, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "nothing"))
    code, out, err = scrimp("profile", "rows.jsonl", "--model", "Qwen/Qwen3-8B", "--json")
    assert code == 0
    assert "estimated" in json.loads(out)["token_basis"]
    assert "Qwen/Qwen3-8B" in err


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (("show", "rows.jsonl"), 2, "no model was named"),
        (("show", "rows.jsonl", "--model", "./model", "--row", "99"), 3, "has no row 99"),
        (("profile", "row.jsonl"), 3, "rows.jsonl"),
        (("profile", "rows.jsonl", "data.overlog=drop"), 2, "overlong"),
        (("show", "rows.jsonl", "--model", "./modell"), 2, "modell"),
    ],
)
def test_mistakes_have_three_parts_and_their_exit_code(scrimp, arguments, code, part):
    found, out, err = scrimp(*arguments)
    assert found == code
    assert out == ""
    assert part in err
    assert "expected:" in err
    assert "next:" in err


@pytest.mark.train
def test_a_hub_data_set_without_network_says_what_to_type(tmp_path):
    pytest.importorskip("datasets")
    # A process of its own: the hub's client reads HF_HUB_OFFLINE when it is imported.
    done = subprocess.run(
        [sys.executable, "-m", "scrimp", "data", "profile", "owner/no-such-rows"],
        cwd=tmp_path,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 11
    assert done.stdout == ""
    assert "load_dataset('owner/no-such-rows')" in done.stderr


def test_an_error_under_json_is_a_document_too(scrimp):
    code, out, _ = scrimp("profile", "nowhere.jsonl", "--json")
    assert code == 3
    assert json.loads(out)["error"] == "DataError"


def test_histogram_bins_are_round_and_hold_every_row():
    lengths = [(7, 1), (12, 4), (250, 2), (999, 1)]
    bins = histogram_bins(lengths, most=12)
    assert len(bins) <= 12
    assert sum(rows for _, _, rows in bins) == 8
    assert all(high - low == bins[0][1] - bins[0][0] for low, high, _ in bins)
    assert bins[0][0] <= 7
    assert bins[-1][1] >= 999
    assert histogram_bins([(5, 3)], most=12) == [(5, 5, 3)]
    assert histogram_bins([], most=12) == []


def test_control_characters_are_spelt_out():
    assert visible("a\tb\x1b[2J\nc é漢") == "a\\tb\\x1b[2J\nc é漢"


def test_rows_that_are_not_here_are_told_before_a_tokenizer_is_fetched(scrimp):
    code, _, err = scrimp("show", "rwos.jsonl", "--model", "owner/model")
    assert code == 3
    assert "did you mean rows.jsonl" in err
    code, _, err = scrimp("show", "rows.jsonl", "--row", "9", "--model", "owner/model")
    assert code == 3
    assert "no row 9" in err
    assert scrimp("show", "rows.jsonl", "--model", "owner/model")[0] == 11
