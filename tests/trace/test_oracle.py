"""The formula's count per layer against traces of the models' own code: every family, every way of tuning, within 5%.

The difference between two depths is what one layer keeps. A formula that drifts from the code, or a release of
transformers that keeps other tensors, fails here with its name.
"""

import pytest

from scrimp.estimate.memory.activations import layer_bytes

pytest.importorskip("torch")
pytest.importorskip("transformers")

from oracle_cases import DEPTHS, FAMILIES, case_of, shape_of, traced_layer_bytes

pytestmark = pytest.mark.train

TOLERANCE = 0.05
METHODS = ("full", "full/bf16", "lora/qv", "lora", "lora+dropout/qv", "lora+dropout", "qlora", "qlora+dropout")
MIXTURES = ("mixtral", "qwen3_moe")
# One of each kind of layer: gated with grouped heads, four norms, one matrix for q, k and v, no gate, experts.
FAST = {
    ("llama", "full"),
    ("llama", "lora"),
    ("llama", "qlora"),
    ("gemma3", "full/bf16"),
    ("phi3", "lora+dropout"),
    ("phi", "qlora"),
    ("qwen3_moe", "lora"),
}


def _cases():
    for family in FAMILIES:
        for method in METHODS:
            # Experts multiply in the dtype of their weights, and torch traces grouped products in bf16 alone.
            if method == "full" and family in MIXTURES:
                continue
            marks = () if (family, method) in FAST else (pytest.mark.slow,)
            yield pytest.param(family, method, marks=marks, id=f"{family}-{method}")


def _split(method: str) -> tuple[str, dict[str, str]]:
    return ("full", {"weight_dtype": "bf16"}) if method == "full/bf16" else (method, {})


@pytest.mark.parametrize(("family", "method"), list(_cases()))
def test_a_layer_keeps_what_the_formula_counts(family, method):
    name, changes = _split(method)
    counted = layer_bytes(case_of(shape_of(family, layers=DEPTHS[1]), name, **changes)).kept_bytes
    assert counted == pytest.approx(traced_layer_bytes(family, name, **changes), rel=TOLERANCE)


@pytest.mark.parametrize("method", ["lora", "full", "full/bf16"])
@pytest.mark.parametrize("family", ["smollm", pytest.param("phi", marks=pytest.mark.slow)])
def test_under_checkpointing_a_layer_keeps_its_input(family, method):
    name, changes = _split(method)
    changes["checkpointing"] = "full"
    counted = layer_bytes(case_of(shape_of(family, layers=DEPTHS[1]), name, **changes)).input_bytes
    assert counted == pytest.approx(traced_layer_bytes(family, name, **changes), rel=TOLERANCE)
