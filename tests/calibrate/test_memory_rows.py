"""Rows of measured memory read as cases: software by version, figures by metric, shapes with and without sizes."""

from collections import defaultdict
from pathlib import Path

import pytest

from scrimp.calibrate.memory.rows import figure_of, memory_row, memory_rows
from scrimp.calibrate.memory.software import loss_of, optimizer_of, sharding_of, stack_of, version_in, weight_dtype_of
from scrimp.calibrate.table import read_table
from scrimp.core.errors import SpecError

TABLE = read_table(Path(__file__).parents[2] / "calibration" / "measured_memory.csv")
SIZES = {
    "model": "Llama-3-8B", "hidden": "4096", "layers": "32", "heads": "32", "kv_heads": "8", "intermediate": "14336",
    "vocab": "128256", "params_b": "8.03", "method": "lora", "micro_batch": "1", "seq_len": "2048", "n_gpus": "1",
}  # fmt: skip


def row(**cells):
    return defaultdict(str, {**SIZES, **cells})


@pytest.mark.parametrize(
    ("metric", "figure"),
    [
        ("torch peak allocated", "allocated"),
        ("torch peak active", "allocated"),
        ("torch peak (recipe stat)", "allocated"),
        ("torch peak active/reserved (titan metric)", "allocated"),
        ("torch peak reserved", "reserved"),
        ("torch reserved (alloc+cache)", "reserved"),
        ("nvidia-smi", "device"),
        ("device memory reserved (axolotl log)", "unstated"),
        ("GPU memory (unit printed G; kind not stated)", "unstated"),
        ("", "unstated"),
    ],
)
def test_the_metric_names_the_figure(metric, figure):
    assert figure_of(metric) == figure


@pytest.mark.parametrize(
    ("framework", "loss_bytes"),
    [
        ("HF Trainer; transformers 4.45.2", 12.0),
        ("HF Trainer; transformers 4.46.0", 14.0),
        ("torch 2.9.0, transformers 4.57.1, peft 0.18", 14.0),
        ("torch 2.13, transformers 5.13.1", 12.0),
        ("litgpt 2024, torch 2.2-2.4", 10.0),
        ("", 12.0),
    ],
)
def test_the_loss_code_follows_the_version(framework, loss_bytes):
    assert stack_of(row(framework=framework)).full_loss_bytes == loss_bytes


@pytest.mark.parametrize(
    ("framework", "keeps"),
    [("torch 2.1, bitsandbytes 0.41.1", True), ("bnb 0.43.1", True), ("bnb 0.43.2", False), ("bnb 0.50.2", False)],
)
def test_old_bitsandbytes_keeps_what_its_linears_read(framework, keeps):
    assert stack_of(row(framework=framework, quant="nf4")).keeps_packed_inputs is keeps
    assert stack_of(row(framework=framework, quant="none")).keeps_packed_inputs is False


def test_versions_are_found_by_any_name_of_the_library():
    assert version_in("torch 2.4.1, bnb 0.43.3, x", "bnb", "bitsandbytes") == (0, 43, 3)
    assert version_in("ms-swift 3.x", "ms-swift") == (3,)
    assert version_in("axolotl", "bnb") is None


@pytest.mark.parametrize(
    ("optimizer", "name", "step"),
    [
        ("AdamW(torch)", "adamw", "foreach"),
        ("AdamW(torch fused)", "adamw", "fused"),
        ("AdamW(torch, fused?)", "adamw", "foreach"),
        ("AdamW(foreach=False)", "adamw", "fused"),
        ("adamw_bnb_8bit", "adamw_8bit", "fused"),
        ("AdamW 8-bit (torchao)", "adamw_8bit", "fused"),
        ("paged_adamw_8bit", "paged_adamw_8bit", "fused"),
        ("PagedAdamW(bnb,32-bit)", "paged_adamw", "fused"),
        ("PagedAdamW(bnb) in backward", "paged_adamw", "in_backward"),
        ("AdamW in backward", "adamw", "in_backward"),
    ],
)
def test_the_optimizer_is_states_and_a_way_to_step(optimizer, name, step):
    cells = row(optimizer=optimizer)
    assert (optimizer_of(cells), stack_of(cells).optimizer_step) == (name, step)


@pytest.mark.parametrize(
    ("sharding", "gpus", "read"),
    [
        ("fsdp", "4", "fsdp"), ("fsdp2", "8", "fsdp"), ("zero3", "4", "fsdp"), ("zero2", "2", "zero2"),
        ("ddp", "2", "ddp"), ("fsdp", "1", "none"), ("none", "1", "none"),
    ],
)  # fmt: skip
def test_sharding_is_read(sharding, gpus, read):
    assert sharding_of(row(sharding=sharding, n_gpus=gpus)) == read


@pytest.mark.parametrize(
    ("quant", "dtype"),
    [("none", "bf16"), ("nf4+dq", "nf4"), ("int4-gptq", "nf4"), ("int8", "int8"), ("int8-gptq", "int8"), ("", "bf16")],
)
def test_packed_weights_are_read(quant, dtype):
    assert weight_dtype_of(row(quant=quant)) == dtype


def test_fused_losses_make_no_logits():
    assert {note: loss_of(row(loss_note=note)) for note in ("liger fused linear CE", "cut CE", "full logits", "")} == {
        "liger fused linear CE": "fused", "cut CE": "fused", "full logits": "full", "": "full",
    }  # fmt: skip


def test_a_known_name_gives_the_shape_where_the_row_has_no_sizes():
    blank = dict.fromkeys(("hidden", "layers", "heads", "vocab", "params_b"), "")
    found = memory_row(row(**{**blank, "model": "Qwen/Qwen3-8B"}))
    assert found.case.shape.family == "qwen3"
    assert "shape of Qwen/Qwen3-8B" in found.notes
    guessed = memory_row(row(**{**blank, "model": "somebody/odd-3B"}))
    assert guessed.case.shape.params == pytest.approx(3e9, rel=0.1)
    with pytest.raises(SpecError, match="how large"):
        memory_row(row(**{**blank, "model": "somebody/odd"}))


@pytest.mark.parametrize(
    "cells", [{"micro_batch": "-1"}, {"seq_len": "many"}, {"n_gpus": "0"}, {"method": ""}, {"hidden": "nan"}]
)
def test_impossible_cells_are_refused_by_name(cells):
    with pytest.raises(SpecError) as caught:
        memory_row(row(**cells))
    assert next(iter(cells)) in str(caught.value)


def test_what_the_row_leaves_open_is_said():
    notes = memory_row(row(seq_len="", micro_batch="")).notes
    assert len(notes) == 2
    assert all("assumed" in note for note in notes)


def test_nearly_every_published_run_is_read():
    read = list(memory_rows(TABLE))
    assert len(read) >= len(TABLE) - 1
    assert {found.figure for found in read} == {"allocated", "reserved", "device", "unstated"}
