"""The house rules that a machine can check: sizes, units in names, no printing, docstrings, frozen nouns."""

import ast
import dataclasses
import importlib
import pkgutil
import typing
from decimal import Decimal
from pathlib import Path

import pytest

import scrimp.core

SRC = Path(scrimp.core.__file__).parents[1]
MODULES = sorted(SRC.rglob("*.py"))
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60

UNITS = (
    "_bytes", "_s", "_usd", "_usd_per_hour", "_usd_per_kwh", "_usd_per_gb", "_usd_per_gb_month", "_w", "_kwh",
    "_gco2e", "_gco2e_per_kwh", "_tokens", "_tokens_per_s", "_flops", "_bytes_per_s", "_ratio", "_share",
)  # fmt: skip
# Plain counts and ratios, dimensions of a model, hyperparameters: numbers whose name says what they count.
COUNTS = {
    "value", "low", "high", "hidden", "layers", "heads", "kv_heads", "head_dim", "intermediate", "vocab", "experts",
    "experts_active", "shared_intermediate", "dense_layers", "dense_intermediate", "rows", "rows_in", "rows_trained",
    "eval_rows", "truncated_rows", "duplicate_rows", "first_rows", "length_histogram", "max_rows", "epochs", "steps",
    "max_steps", "batch_rows", "learning_rate", "weight_decay", "clip_norm", "seed", "eval_every_steps",
    "checkpoint_every_steps", "keep_checkpoints", "warmup_steps", "max_gpus", "gpu_count", "vcpus", "year", "threads",
    "offers", "considered_offers", "undated_offers", "attempt", "attempts", "step", "steps_done", "steps_planned",
    "quantity", "forecast", "measured", "formula", "eval_loss_before", "eval_loss_after", "schema", "runs", "models",
    "copies", "params", "trainable_params", "sizes", "most_gpus",
}  # fmt: skip


def _core_dataclasses() -> list[type]:
    found: list[type] = []
    for info in pkgutil.iter_modules(scrimp.core.__path__):
        module = importlib.import_module(f"scrimp.core.{info.name}")
        found += [
            item
            for item in vars(module).values()
            if dataclasses.is_dataclass(item) and isinstance(item, type) and item.__module__ == module.__name__
        ]
    return found


def _is_numeric(kind: object) -> bool:
    if kind in (int, float, Decimal):
        return True
    return any(_is_numeric(part) for part in typing.get_args(kind) if part is not type(None))


@pytest.mark.parametrize("noun", _core_dataclasses(), ids=lambda noun: noun.__name__)
def test_nouns_are_frozen_and_their_numbers_carry_units(noun):
    params = noun.__dataclass_params__
    assert params.frozen
    assert hasattr(noun, "__slots__")
    hints = typing.get_type_hints(noun)
    bare = [
        field.name
        for field in dataclasses.fields(noun)
        if _is_numeric(hints[field.name])
        and not field.name.endswith(UNITS)
        and field.name not in COUNTS
        and "Mapping" not in str(hints[field.name])
    ]
    assert bare == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SRC)))
def test_a_module_is_small_and_says_what_it_is(path):
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "a module starts with what it is for"
    assert text.count("\n") <= MAX_MODULE_LINES
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= MAX_FUNCTION_LINES, f"{node.name} has {length} lines"
        assert not isinstance(node, ast.Global), "no module state"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SRC)))
def test_everything_public_has_a_docstring(path):
    bare = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if not ast.get_docstring(node):
                bare.append(node.name)
            if isinstance(node, ast.ClassDef):
                bare += [
                    f"{node.name}.{item.name}"
                    for item in node.body
                    if isinstance(item, ast.FunctionDef)
                    and not item.name.startswith("_")
                    and not ast.get_docstring(item)
                ]
    assert bare == []


def test_no_file_is_named_for_leftovers():
    bad = {"utils.py", "misc.py", "helpers.py", "common.py"}
    assert [path.name for path in MODULES if path.name in bad] == []


def test_core_uses_the_standard_library_alone():
    import sys

    for path in (SRC / "core").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            for name in names:
                assert name.startswith("scrimp.core") or name.split(".")[0] in sys.stdlib_module_names, (path, name)
