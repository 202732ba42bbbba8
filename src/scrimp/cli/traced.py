"""What a trace found, for people and as JSON: each phase by formula and trace, and the tensors at the peak."""

from typing import TYPE_CHECKING, Any

from scrimp.core.trace import TracedTensor

if TYPE_CHECKING:
    from rich.console import RenderableType

    from scrimp.workflows.trace import TraceAnswer

_SHOWN = 8


def traced_document(answer: "TraceAnswer") -> dict[str, Any]:
    """The trace as plain JSON values, the formula's forecast beside it."""
    from scrimp.spec.codec import dump

    return {
        "traced": dump(answer.traced),
        "forecast": dump(answer.forecast),
        "formula": dump(answer.formula),
        "difference_ratio": answer.difference_ratio,
    }


def traced_screen(answer: "TraceAnswer", *, width: int) -> "list[RenderableType]":
    """A line that says what was traced, a table of phases, and the largest tensors at the peak."""
    from rich.text import Text

    from scrimp.cli.output import Column, fitted_table
    from scrimp.core.units import format_bytes, format_count, format_duration

    traced, names = answer.traced, [phase.name.replace("_", " ") for phase in answer.forecast.phases]
    formula = {phase.name: phase.total_bytes for phase in answer.formula.phases}
    phases = [
        Column(heading="phase", cells=names),
        Column(heading="traced", cells=[format_bytes(x.total_bytes) for x in answer.forecast.phases], justify="right"),
        Column(
            heading="formula",
            cells=[format_bytes(formula[x.name]) for x in answer.forecast.phases],
            justify="right",
        ),
    ]
    shown = traced.tensors[:_SHOWN]
    tensors = [
        Column(heading="alive at the peak", cells=[_tensor_words(x) for x in shown], shrinks_to=24),
        Column(heading="what", cells=[x.term for x in shown], gives_way=1),
        Column(heading="size", cells=[format_bytes(x.size_bytes) for x in shown], justify="right"),
    ]
    head = (
        f"Traced in {format_duration(traced.trace_s)}: {traced.code}; {format_count(traced.trainable_params)} of "
        f"{format_count(traced.params)} parameters are trained; the formula is {answer.difference_ratio:+.1%} off"
    )
    return [Text(head), fitted_table(phases, width=width)[0], "", fitted_table(tensors, width=width)[0]]


def _tensor_words(tensor: TracedTensor) -> str:
    """`32 x mlp.gate_proj add, bfloat16 2 x 2048 x 14336`."""
    sizes = " x ".join(map(str, tensor.sizes))
    return f"{tensor.copies} x {tensor.origin}, {tensor.dtype} {sizes}".rstrip()
