"""The shape of a measured run's model: from the row's own columns, from the table of known models, or by its size."""

import re
from dataclasses import replace

from scrimp.calibrate.memory.software import is_litgpt
from scrimp.calibrate.table import Row, number
from scrimp.core.errors import SpecError
from scrimp.core.model import ModelShape
from scrimp.models.table import find_known, known_models

# Experts and how many of them a token passes.
_EXPERTS = {"mistralai/Mixtral-8x7B": (8, 2)}
_COLUMNS = ("hidden", "layers", "heads", "vocab")
_SIZE_IN_NAME = re.compile(r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?)[-_]?([bm])(?![a-z])", re.IGNORECASE)


def shape_of(row: Row) -> tuple[ModelShape, str]:
    """The shape, and where it comes from when not from the row's own columns.

    Raises:
        SpecError: neither sizes nor parameters nor a known name.
    """
    if all(row[column] for column in _COLUMNS):
        return _stated(row), ""
    found = find_known(row["model"])
    if found is not None:
        return found[1], f"shape of {found[0]}"
    params = _params(row)
    if params is None:
        raise SpecError(
            what=f'nothing says how large the model "{row["model"]}" is',
            expected="hidden, layers, heads and vocab, or params_b, or the name of a known model",
            next_step="fill the column params_b (parameters in 1e9)",
        )
    return _alike(row["model"], params), "shape guessed from the number of parameters"


def _stated(row: Row) -> ModelShape:
    """The head width is the one of three usual ones that reproduces the parameter count best."""
    hidden, heads = int(number(row, "hidden")), int(number(row, "heads"))
    tied = row["tied_embeddings"] == "1"
    experts, active = _EXPERTS.get(row["model"], (0, 0))
    intermediate = number(row, "intermediate", default=4.0 * hidden)
    shapes = [
        ModelShape(
            name=row["model"],
            family="",
            hidden=hidden,
            layers=int(number(row, "layers")),
            heads=heads,
            kv_heads=int(number(row, "kv_heads", default=float(heads))),
            head_dim=head_dim,
            intermediate=int(intermediate),
            vocab=int(number(row, "vocab")),
            max_positions_tokens=32768,
            tied_embeddings=tied,
            gated_mlp=row["gated_mlp"] != "0",
            experts=experts,
            experts_active=active,
        )
        for head_dim in (hidden // heads, 128, 256)
    ]
    params = _params(row) or float(shapes[0].params)
    best = min(shapes, key=lambda shape: abs(shape.params - params))
    # lit-gpt keeps embedding and head apart whatever the model's own files say.
    return replace(best, tied_embeddings=tied and not is_litgpt(row))


def _params(row: Row) -> float | None:
    """Parameters by the column, or by the size in the name (`Yi-6B`, `SmolLM2-360M`)."""
    if row["params_b"]:
        return number(row, "params_b") * 1e9
    found = _SIZE_IN_NAME.search(row["model"])
    return float(found[1]) * (1e9 if found[2].lower() == "b" else 1e6) if found else None


def _alike(name: str, params: float) -> ModelShape:
    """A dense known model of about that size, with as many layers as reproduce it."""
    dense = [model.shape for model in known_models() if not model.shape.experts]
    like = min(dense, key=lambda shape: max(shape.params, params) / min(shape.params, params))
    per_layer = like.linear_params / like.layers
    layers = max(1, round((params - (like.params - like.linear_params)) / per_layer))
    return replace(like, name=name, layers=layers)
