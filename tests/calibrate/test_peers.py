"""Estimators of others as we restate them: each gives what its own documentation or its own code gave."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from scrimp.calibrate.gradebook import gradebook
from scrimp.calibrate.memory.rows import memory_rows
from scrimp.calibrate.outcome import Outcome
from scrimp.calibrate.table import read_table

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
try:
    import grade_peers
    from peers import (
        accelerate_estimate,
        deepspeed_zero,
        ftuneai,
        gpu_poor,
        hf_vram_calc,
        llama_factory,
        memory_peers,
        share_of_peak,
        time_peers,
        unsloth_studio,
    )
    from peers.peer import GIB, MemoryPeer, TimePeer
finally:
    sys.path.remove(str(ROOT / "benchmarks"))

TABLE = read_table(ROOT / "calibration" / "measured_memory.csv")
LLAMA_8B = next(row for row in TABLE if row["model"] == "meta-llama/Llama-3-8B" and row["n_gpus"] == "1")
SPEED = grade_peers.measured_speed()


def case(**changes):
    """A run of Llama-3-8B with the columns that a peer reads set as told."""
    adapters = {"method": "lora", "quant": "none", "lora_rank": "16", "target_modules": "q,v", "attention": "sdpa"}
    usual = {"params_b": "8.030261248", "weight_dtype": "bf16", "sharding": "none", "grad_checkpointing": "y"}
    return next(iter(memory_rows([{**LLAMA_8B, **usual, **adapters, **changes}])))


def published(source, model, method, micro_batch, length, **more):
    """The first run of the table with these columns."""
    wanted = {"source": source, "model": model, "method": method, "micro_batch": micro_batch, "seq_len": length, **more}
    return next(row for row in memory_rows(TABLE) if row.ran and all(row.row[k] == v for k, v in wanted.items()))


# GiB that unslothai/unsloth's own module and gpu_poor's own JavaScript gave for these runs, rounded.
RUN_AS_IS = [
    (("litgpt-resource-tables", "meta-llama/Llama-2-7b", "lora", "2", "1304"), 23, 60),
    (("litgpt-resource-tables", "meta-llama/Llama-2-13b", "lora", "1", "1304"), 35, 61),
    (("litgpt-resource-tables", "meta-llama/Llama-2-7b", "qlora", "1", "1304"), 10, 28),
    (("litgpt-config-hub", "meta-llama/Llama-3-8B", "lora", "1", "512"), 19, 24),
    (("litgpt-config-hub", "TinyLlama-1.1B", "full", "4", "512"), 13, 21),
    (("fms-acceleration", "mistralai/Mistral-7B-v0.1", "full", "8", "4096"), 74, 259),
    (("fms-acceleration", "ibm/PowerLM-3b", "full", "8", "4096"), 38, 277),
    (("fms-acceleration", "mistralai/Mistral-7B-v0.1", "qlora", "4", "4096"), 8, 110),
    (("fms-acceleration", "meta-llama/Llama-2-70b", "qlora", "4", "4096"), 43, 568),
]


@pytest.mark.parametrize(("run", "unsloth_gib", "gpu_poor_gib"), RUN_AS_IS)
def test_unsloth_studio_and_gpu_poor_give_what_their_own_code_gave(run, unsloth_gib, gpu_poor_gib):
    row = published(*run, n_gpus="1")
    assert unsloth_studio.gib(row) == pytest.approx(unsloth_gib, abs=0.51)
    assert gpu_poor.gib(row) == pytest.approx(gpu_poor_gib, abs=0.51)


def test_unsloth_studio_pays_for_written_out_scores():
    row = published(
        "ms-swift-benchmark", "Qwen/Qwen-7B", "lora", "1", "2048", attention="eager", grad_checkpointing="n"
    )
    assert unsloth_studio.gib(row) == pytest.approx(114, abs=0.5)


def test_unsloth_studio_keeps_the_bounds_of_its_own_tests():
    # Llama-3.1-8B, 2 x 2,048, all linear layers: QLoRA between 5 and 12 GiB, full between 50 and 75 with 8-bit Adam
    # (4 bytes a parameter; rows here have torch's, 6).
    shared = {"micro_batch": "2", "seq_len": "2048", "target_modules": "q,k,v,o,mlp"}
    assert 5 < unsloth_studio.gib(case(method="qlora", quant="nf4", **shared)) < 12
    assert 50 < unsloth_studio.gib(case(method="full", **shared)) - 2 * 8.03e9 / GIB < 75


def test_llama_factory_gives_its_own_cells_between_and_beyond_them():
    line = llama_factory.TABLE["adapters on 16 bit"]
    assert [llama_factory.interpolated(line, size) for size in (7, 14, 30, 70)] == [16, 32, 64, 160]
    assert llama_factory.interpolated(line, 22) == pytest.approx(48)
    assert llama_factory.interpolated(line, 1.75) == pytest.approx(4)
    assert llama_factory.gib(case(method="qlora", quant="nf4+dq", params_b="7")) == 6
    assert llama_factory.gib(case(method="full", params_b="7", weight_dtype="fp32")) == 120


@pytest.mark.train
def test_accelerate_gives_what_its_documentation_prints():
    pytest.importorskip("accelerate")
    fp32_bytes = int(413.18 * 2**20)  # bert-base-cased
    assert accelerate_estimate.training_bytes(fp32_bytes, "float32") / GIB == pytest.approx(1.61, abs=0.005)
    assert accelerate_estimate.training_bytes(fp32_bytes, "float16") / 2**20 == pytest.approx(826.36, abs=0.01)


@pytest.mark.train
def test_accelerate_builds_the_model_without_its_head_and_knows_no_adapters_on_4_bit():
    pytest.importorskip("accelerate")
    shape = case().case.shape
    weights = 4 * (shape.params - shape.embedding_params)
    assert accelerate_estimate.model_bytes(shape) == pytest.approx(weights, rel=1e-5)
    assert accelerate_estimate.full_gib(case(method="full")) == pytest.approx(2 * weights / GIB, rel=1e-4)
    assert accelerate_estimate.full_gib(case()) is None
    assert accelerate_estimate.read_for_adapters_gib(case(method="qlora", quant="nf4")) is None


def test_deepspeed_gives_what_its_documentation_prints():
    # t5-3b on 8 GPUs, t5-large on 4, in its units (GiB and MiB).
    assert deepspeed_zero.zero2_bytes(2851e6, 8) / GIB == pytest.approx(15.93, abs=0.005)
    assert deepspeed_zero.zero3_bytes(2851e6, 32e6, 8) / GIB == pytest.approx(6.09, abs=0.006)
    assert deepspeed_zero.zero3_bytes(737.67e6, 32.90e6, 4) / 2**20 == pytest.approx(3291, abs=1)


def test_ftuneai_gives_what_its_package_gives():
    flash = {"micro_batch": "4", "seq_len": "2048"}
    assert ftuneai.gib(case(method="qlora", quant="nf4", **flash)) == pytest.approx(14.268, abs=0.001)
    eager = {"method": "full", "micro_batch": "1", "seq_len": "2048", "attention": "eager"}
    assert ftuneai.gib(case(**eager)) == pytest.approx(110.094, abs=0.001)
    assert ftuneai.gib(case(**eager, n_gpus="4", sharding="fsdp")) == pytest.approx(30.221, abs=0.001)
    wide = {"target_modules": "q,k,v,o,mlp", "micro_batch": "2", "seq_len": "4096", "grad_checkpointing": "n"}
    assert ftuneai.gib(case(**wide)) == pytest.approx(30.512, abs=0.001)


def test_hf_vram_calc_gives_what_its_package_gives():
    assert hf_vram_calc.gib(case(method="full")) == pytest.approx(77.779, abs=0.001)
    assert hf_vram_calc.gib(case()) == pytest.approx(18.0996, abs=0.001)
    assert hf_vram_calc.gib(case(method="qlora", quant="nf4")) == pytest.approx(4.6378, abs=0.001)


def test_arithmetic_of_the_speed_peers_is_that_of_the_table():
    for row in SPEED:
        assert share_of_peak.reached_share(row) == pytest.approx(float(row.row["hfu"]), rel=0.02)
        assert share_of_peak.model_flops(row) == pytest.approx(float(row.row["model_flops_per_token"]), rel=0.02)


def test_a_run_does_not_teach_the_table_that_forecasts_it():
    row = SPEED[0]
    faster = [
        replace(other, tokens_per_s_per_gpu=10 * other.tokens_per_s_per_gpu) if other.group == row.group else other
        for other in SPEED
    ]
    assert share_of_peak.at_usual_share(row, faster) == share_of_peak.at_usual_share(row, SPEED)
    others = [replace(other, tokens_per_s_per_gpu=10 * other.tokens_per_s_per_gpu) for other in SPEED]
    assert share_of_peak.at_usual_share(row, others) > 5 * share_of_peak.at_usual_share(row, SPEED)


def test_every_peer_says_where_its_rule_was_read():
    peers = [*memory_peers(), *time_peers()]
    assert len(memory_peers()) >= 8
    assert len(time_peers()) == 4
    assert all(peer.source and peer.name for peer in peers)
    assert len({peer.name for peer in peers}) == len(peers)


def outcome(row, forecast_gib):
    measured = row.measured_gib
    return Outcome(group="g", label="", forecast=forecast_gib, low=0.0, high=99.0, measured=measured)


def test_a_peer_is_graded_on_the_rows_that_it_covers_and_ours_on_the_same():
    runs = [
        case(metric="torch peak allocated", measured_gib="20"),
        case(metric="torch peak allocated", measured_gib="40", gpu="A100-SXM4-80GB"),
        case(metric="torch peak allocated", measured_gib="60", method="full"),
        case(metric="torch peak allocated", measured_gib="60", method="dora"),
    ]
    graded = [(row, outcome(row, 24.0)) for row in runs]
    failed = [case(metric="OOM on", measured_gib="24", gpu="24GB"), case(metric="OOM on", method="full")]
    peer = MemoryPeer(name="22", source="here", gib=lambda row: None if row.row["method"] == "full" else 22.0)
    beside = grade_peers.grade_memory(peer, graded, failed)
    assert beside.peer.rows == beside.ours.rows == 2, "neither what it does not cover nor what no peer speaks of"
    assert beside.peer.mape == pytest.approx((0.10 + 0.45) / 2)
    assert (beside.peer.under, beside.peer.under_by_10) == (0.5, 0.5)
    assert beside.ours.mape == pytest.approx((0.20 + 0.40) / 2)
    # A nominal 24 GB card has 22.0 GiB to give.
    assert (beside.peer.oom_called_fits, beside.peer.ran_called_fits) == (1.0, 1.0)


def test_a_peer_that_covers_nothing_is_left_out():
    silent = MemoryPeer(name="none", source="here", gib=lambda row: None)
    row = case(metric="torch peak allocated")
    assert grade_peers.grade_memory(silent, [(row, outcome(row, 1.0))], []) is None
    mute = TimePeer(name="none", source="here", tokens_per_s=lambda row, rows: None)
    assert grade_peers.grade_time(mute, [(SPEED[0], outcome(row, 1.0))]) is None


@pytest.mark.train
def test_the_tables_print_a_line_for_every_peer_and_one_for_ours(capsys):
    pytest.importorskip("accelerate")
    shipped = gradebook(grade_peers.table, refit=False)
    book = replace(shipped, entries=tuple(replace(entry, unseen=entry.shipped) for entry in shipped.entries))
    grade_peers.print_peers(book)
    out = capsys.readouterr().out
    assert all(peer.name in out for peer in (*memory_peers(), *time_peers()))
    assert out.count("  scrimp ") >= len(memory_peers()) + len(time_peers()) - 1
    assert max(map(len, out.splitlines())) <= 80
