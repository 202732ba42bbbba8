"""Cases for the oracle: real widths, two depths, so that their difference is what one layer keeps."""

from dataclasses import replace

from scrimp.calibrate.table import BLANK_RECIPE
from scrimp.core.job import MethodChoice
from scrimp.core.model import ModelShape
from scrimp.estimate.memory.case import MemoryCase
from scrimp.estimate.stack import Stack
from scrimp.estimate.tuning import tuning_of
from scrimp.methods.linear import linear_names
from scrimp.models.table import known_shapes
from scrimp.trace.run import trace_kept

FAMILIES = {
    "llama": "meta-llama/Llama-3.1-8B",
    "smollm": "HuggingFaceTB/SmolLM2-135M",
    "mistral": "mistralai/Mistral-7B-v0.3",
    "qwen2": "Qwen/Qwen2.5-7B",
    "qwen3": "Qwen/Qwen3-8B",
    "gemma2": "google/gemma-2-2b",
    "gemma3": "google/gemma-3-4b-it",
    "phi3": "microsoft/Phi-3-mini-4k-instruct",
    "phi": "microsoft/phi-2",
    "mixtral": "mistralai/Mixtral-8x7B-v0.1",
    "qwen3_moe": "Qwen/Qwen3-30B-A3B",
}
HUGGING_FACE = Stack(name="Hugging Face", optimizer_step="foreach", accumulates=False)
TOKENS = 1024
DEPTHS = (2, 4)


def shape_of(family: str, *, layers: int) -> ModelShape:
    """The family's real widths at a small depth; a small vocabulary, which no layer sees."""
    return replace(known_shapes()[FAMILIES[family]], layers=layers, vocab=1009)


def case_of(shape: ModelShape, method: str, *, stack: Stack = HUGGING_FACE, **changes) -> MemoryCase:
    """`full`, `lora`, `lora+dropout` or `qlora`, with q and v alone after a slash: `lora/qv`."""
    name, _, places = method.partition("/")
    name, _, dropout = name.partition("+")
    options: dict[str, object] = {} if name == "full" else {"rank": 8, "alpha": 16}
    if dropout:
        options["dropout"] = 0.05
    if places:
        names = linear_names(shape).query_key_value
        options["targets"] = (names[0], names[-1]) if len(names) > 1 else names
    weights = {"full": "fp32", "qlora": "nf4"}.get(name, "bf16")
    recipe = replace(
        BLANK_RECIPE,
        method=MethodChoice(name=name, options=options),
        micro_batch_tokens=TOKENS,
        **{"weight_dtype": weights, **changes},
    )
    return MemoryCase(
        shape=shape,
        recipe=recipe,
        tuning=tuning_of(shape, recipe.method),
        gpus=1,
        longest_row_tokens=TOKENS,
        trained_share=1.0,
        stack=stack,
    )


def traced_layer_bytes(family: str, method: str, **changes) -> float:
    """Bytes per token that one layer keeps from forward to backward, by the trace."""
    low, high = (
        sum(each.size_bytes for each in trace_kept(case_of(shape_of(family, layers=depth), method, **changes)))
        for depth in DEPTHS
    )
    return (high - low) / TOKENS / (DEPTHS[1] - DEPTHS[0])
