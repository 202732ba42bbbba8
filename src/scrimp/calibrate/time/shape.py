"""How much arithmetic a measured run's model has: from the row's own columns, from known models, or by its size."""

import re
from collections import defaultdict

from scrimp.calibrate.memory.shape import shape_of
from scrimp.calibrate.table import Row, number
from scrimp.core.errors import SpecError
from scrimp.core.model import ModelShape
from scrimp.estimate.time.arithmetic import Arithmetic

_COLUMNS = ("params_b", "matmul_params_b", "n_layers", "attn_dim")
_MIXTURE = re.compile(r"\d+x\d+b|-a\d+(\.\d+)?b|\bmoe\b|mixtral", re.IGNORECASE)
# A token that multiplies less than this share of a model's weights multiplies a part of its experts alone; small
# models have as large a share in their embedding.
_ACTIVE_SHARE, _SMALL_PARAMS = 0.75, 3e9
# No run that anybody made lies outside, in any column; formulas would overflow far beyond.
_RANGE = (1e-6, 1e9)
# Embeddings that serve as head are multiplied and stored once; counts of others round differently.
_ROUNDING = 1.05


def work_of(cells: Row, notes: list[str]) -> tuple[Arithmetic, bool]:
    """The arithmetic of a token, and whether the model is a mixture of experts. `notes` takes what was guessed.

    Raises:
        SpecError: neither sizes nor a known name nor a number of parameters, or one of them is impossible.
    """
    found = {name: plausible(cells, name) for name in _COLUMNS}
    stated = {name: value for name, value in found.items() if value is not None}
    if len(stated) < len(_COLUMNS):
        stated = _sizes(_shape(cells, stated, notes), stated) | stated
    params, matmul = stated["params_b"] * 1e9, stated["matmul_params_b"] * 1e9
    if matmul > _ROUNDING * params:
        raise SpecError(
            what=f"a token multiplies {matmul / 1e9:.3g}e9 of {params / 1e9:.3g}e9 weights",
            expected="matmul_params_b of at most params_b",
            next_step="correct the columns params_b and matmul_params_b",
        )
    work = Arithmetic(
        linear_params=matmul,
        head_params=0.0,
        stored_params=params,
        layers=max(1, round(stated["n_layers"])),
        attention_width=max(1, round(stated["attn_dim"])),
    )
    part = matmul < _ACTIVE_SHARE * params and params > _SMALL_PARAMS
    return work, part or bool(_MIXTURE.search(cells["model"]))


def plausible(cells: Row, column: str) -> float | None:
    """A number that a run can have, or None where the cell is blank.

    Raises:
        SpecError: something else stands there.
    """
    if not cells[column]:
        return None
    value = number(cells, column)
    if not _RANGE[0] <= value <= _RANGE[1]:
        raise SpecError(
            what=f"{column} is {value:g}",
            expected=f"a number from {_RANGE[0]:g} to {_RANGE[1]:g}",
            next_step=f"correct the column {column}",
        )
    return value


def _shape(cells: Row, stated: dict[str, float], notes: list[str]) -> ModelShape:
    """A known model of that name, else one of about that size."""
    asked = defaultdict(str, {"model": cells["model"], "params_b": cells["params_b"] or cells["matmul_params_b"]})
    shape, guessed = shape_of(asked)
    notes.append(guessed or f"sizes of {shape.name}")
    return shape


def _sizes(shape: ModelShape, stated: dict[str, float]) -> dict[str, float]:
    """The shape's sizes under the columns' names, weights in proportion to those that the row states."""
    params, matmul = shape.params / 1e9, shape.matmul_params / 1e9
    if "params_b" in stated:
        matmul *= stated["params_b"] / params
        params = stated["params_b"]
    elif "matmul_params_b" in stated:
        params *= stated["matmul_params_b"] / matmul
    return {
        "params_b": max(params, matmul),
        "matmul_params_b": min(matmul, _ROUNDING * params),
        "n_layers": float(shape.layers),
        "attn_dim": float(shape.attention_width),
    }
