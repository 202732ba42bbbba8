"""Traced and counted memory against published runs, and how long a trace takes.

    python benchmarks/trace_memory.py              all rows that the rule below admits
    python benchmarks/trace_memory.py --limit 8    the first of them
    python benchmarks/trace_memory.py --time       the time of an 8B shape alone

A row of calibration/measured_memory.csv is traced when it

    * has high confidence, one card, a figure of torch's allocator (reserved ones stand apart:
      they hold its cache as well, which a count of tensors knows nothing of), and did not run out of memory;
    * is of fixed lengths that are known (length_note: packed to seq_len, inputs of fixed length, nearly every sequence
      is exactly max_length, constant tensors);
    * ran on transformers' model code without kernels of its own (framework and notes name no foak, liger, compile,
      unsloth, litgpt; attention is not eager);
    * and is a case that the trace takes at all: what it refuses is listed with its reason.

Ends with exit code 1 when the mean error of the trace on allocated figures is over 3%, or an 8B shape takes more than
20 s of CPU.
"""

import argparse
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from statistics import fmean, median

from scrimp.calibrate.memory.rows import MemoryRow, memory_rows
from scrimp.calibrate.table import read_table
from scrimp.core.errors import ScrimpError
from scrimp.core.units import GIB
from scrimp.estimate.memory.phases import memory_phases
from scrimp.models.table import known_shapes
from scrimp.trace.run import trace_memory

TABLE = Path(__file__).parents[1] / "calibration" / "measured_memory.csv"
MEAN_ERROR_BOUND = 0.03
TIME_BOUND_S = 20.0
_OWN_KERNELS = ("foak", "liger", "compile", "unsloth", "litgpt", "lit-gpt")
_FIXED_LENGTHS = ("packed to seq_len", "inputs of fixed length", "exactly max_length", "constant", "packed 4096")


def admitted(row: MemoryRow) -> bool:
    """The rule of the docstring, column by column."""
    cells = row.row
    software = " ".join((cells["framework"], cells["notes"], cells["loss_note"])).lower()
    return (
        cells["confidence"] == "high"
        and row.ran
        and row.case.gpus == 1
        and row.figure in {"allocated", "reserved"}
        and row.measured_gib is not None
        and any(words in cells["length_note"] for words in _FIXED_LENGTHS)
        and not any(words in software for words in _OWN_KERNELS)
        and cells["attention"] != "eager"
    )


def main() -> int:
    """Print a line a row and the errors."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=int)
    parser.add_argument("--time", action="store_true")
    asked = parser.parse_args()
    took_s = _time_of_8b()
    if asked.time:
        return int(took_s > TIME_BOUND_S)
    rows = [row for row in memory_rows(read_table(TABLE)) if admitted(row)][: asked.limit]
    errors: dict[str, list[tuple[float, float]]] = defaultdict(list)
    refused: Counter[str] = Counter()
    print(f"{'run':60s} {'measured':>9s} {'formula':>9s} {'trace':>9s}   GiB")
    for row in rows:
        try:
            traced = trace_memory(row.case)
        except ScrimpError as error:
            refused[error.what] += 1
            continue
        assert row.measured_gib is not None
        counted = max(phase.total_bytes for phase in memory_phases(row.case)) / GIB
        found = traced.peak_bytes / GIB
        pair = counted / row.measured_gib - 1, found / row.measured_gib - 1
        errors[row.figure].append(pair)
        print(
            f"{_label(row):60s} {row.measured_gib:9.2f} {counted:9.2f} {found:9.2f}   "
            f"{pair[0]:+.1%} {pair[1]:+.1%}  peak in {traced.peak_phase.name}",
            flush=True,
        )
    for reason, count in refused.items():
        print(f"not traced, {count} rows: {reason}")
    for figure, pairs in errors.items():
        for name, index in (("formula", 0), ("trace", 1)):
            each = [abs(pair[index]) for pair in pairs]
            print(f"{figure}, {name}: {len(each)} rows, mean error {fmean(each):.1%}, median {median(each):.1%}")
    mean_error = fmean(abs(pair[1]) for pair in errors["allocated"])
    return int(mean_error > MEAN_ERROR_BOUND or took_s > TIME_BOUND_S)


def _label(row: MemoryRow) -> str:
    cells, recipe = row.row, row.case.recipe
    kind = f"{cells['method']} {cells['micro_batch']}x{cells['seq_len']} ckpt={recipe.checkpointing}"
    return f"{cells['source'][:18]} {cells['model'].rpartition('/')[2][:18]} {kind} {row.figure[:5]}"


def _time_of_8b() -> float:
    """LoRA of all linear layers on an 8B shape, without checkpointing; CPU seconds, imports apart."""
    shape = known_shapes()["meta-llama/Llama-3.1-8B"]
    case = _lora_case(shape)
    trace_memory(_lora_case(known_shapes()["HuggingFaceTB/SmolLM2-135M"]))
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    traced = trace_memory(case)
    took_s = time.process_time() - began_cpu_s
    print(
        f"trace of an 8B shape, LoRA on all linear layers, 2 x 2048 tokens: {took_s:.1f} s of CPU, "
        f"{time.monotonic() - began_s:.1f} s in all; peak {traced.peak_bytes / GIB:.2f} GiB"
    )
    return took_s


def _lora_case(shape):
    from dataclasses import replace

    from scrimp.calibrate.table import BLANK_RECIPE
    from scrimp.estimate.memory.case import MemoryCase
    from scrimp.estimate.stack import Stack
    from scrimp.estimate.tuning import tuning_of

    recipe = replace(BLANK_RECIPE, micro_batch_tokens=4096)
    return MemoryCase(
        shape=shape,
        recipe=recipe,
        tuning=tuning_of(shape, recipe.method),
        gpus=1,
        longest_row_tokens=2048,
        trained_share=1.0,
        stack=Stack(name="Hugging Face"),
    )


if __name__ == "__main__":
    sys.exit(main())
