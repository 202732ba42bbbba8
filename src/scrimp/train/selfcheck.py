"""Proof, before every run, that rows laid end to end do not see each other and that the loss is the model's own.

Whole families get this wrong in silence: a cache left on, a mask beside position ids, a layer that mixes along the
sequence without asking for borders (convolutions, state spaces). The check runs the very keyword arguments that
training passes, on real rows, and compares numbers. What fails is not used: the run goes on in `padded` layout, or with
the logits that the model makes itself, and says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from scrimp.core.errors import TrainingError
from scrimp.core.recipe import Recipe
from scrimp.data.row import EncodedRow
from scrimp.train.attention import attention_names
from scrimp.train.forward import Forward, hidden_states, model_logits
from scrimp.train.hardware import compute_context
from scrimp.train.head import OutputHead, find_head
from scrimp.train.layout import lay_out
from scrimp.train.load import LoadedModel

# Differences are root mean squares over that of the logits' spread. Two right kernels differ by up to 0.065 in bf16 (30
# layers, measured), the same kernel on the same rows laid out otherwise by 0.00; a row that sees its neighbour by 1 to
# 2.5, whatever the precision.
_OTHER_KERNEL = {torch.float32: 1e-3, torch.bfloat16: 0.25, torch.float16: 0.1}
_SAME_KERNEL = {torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.05}
# The two longest of the first rows, their beginnings.
_PROBE_ROWS = 2
_PROBED_OF = 64
_PROBE_TOKENS = 48
# A model that cannot be told borders says so in one of these ways.
_CANNOT = (NotImplementedError, RuntimeError, TypeError, ValueError, KeyError, AttributeError, IndexError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The way to run this model, and what was not usable, in words for the event log."""

    forward: Forward
    notes: tuple[str, ...]


def settle_forward(loaded: LoadedModel, recipe: Recipe, rows: Sequence[EncodedRow], *, pad_id: int) -> Verdict:
    """The fastest way to run this model that passes the check on these rows.

    Raises:
        TrainingError: even one row at a time, the model's logits are no numbers.
    """
    longest = sorted(rows[:_PROBED_OF], key=lambda row: -row.total_tokens)
    probes = [_probe(row) for row in longest[:_PROBE_ROWS]]
    was_training = loaded.module.training
    loaded.module.eval()
    try:
        with torch.no_grad(), compute_context(loaded.device, loaded.compute_dtype):
            return _settle(loaded, recipe, probes, pad_id)
    finally:
        loaded.module.train(was_training)


def _settle(loaded: LoadedModel, recipe: Recipe, probes: Sequence[EncodedRow], pad_id: int) -> Verdict:
    default = loaded.base.config._attn_implementation
    # The first row alone, in the way that transformers runs it by default: what all else is measured against.
    reference = _logits(loaded, probes[:1], "padded", pad_id)
    if not bool(torch.isfinite(reference).all()):
        raise TrainingError(
            what="the model's logits are not finite numbers before any training",
            expected="a model that works in the chosen precision",
            next_step="training.precision=fp32",
        )
    head, notes = _settle_head(loaded, recipe, probes, pad_id)
    names = attention_names(loaded.device, loaded.compute_dtype) if recipe.layout == "packed" else ()
    for name in names:
        flaw = _flaw_of(loaded, name, probes, reference, pad_id)
        if flaw is None:
            forward = Forward(loaded=loaded, layout="packed", attention=name, head=head, pad_id=pad_id)
            return Verdict(forward=forward, notes=notes)
        notes = (*notes, f"attention {name} is not usable with this model: {flaw}")
    if names:
        notes = (*notes, "rows are padded to a common length instead of laid end to end")
    _use(loaded, default)
    forward = Forward(loaded=loaded, layout="padded", attention=default, head=head, pad_id=pad_id)
    return Verdict(forward=forward, notes=notes)


def _settle_head(
    loaded: LoadedModel, recipe: Recipe, probes: Sequence[EncodedRow], pad_id: int
) -> tuple[OutputHead | None, tuple[str, ...]]:
    """The head, if what it makes of the hidden states are the model's logits."""
    if recipe.loss == "full":
        return None, ()
    head = find_head(loaded.base)
    if head is None:
        return None, ("the output head is no plain linear layer: logits are made at every position",)
    batch = lay_out(probes[:1], layout="padded", pad_id=pad_id, device=loaded.device)
    own = model_logits(loaded.base, batch).float()
    try:
        flaw = _difference(
            head.logits(hidden_states(loaded.base, batch)), own, limit=_SAME_KERNEL[loaded.compute_dtype]
        )
    except _CANNOT as error:
        flaw = str(error)
    if flaw is None:
        return head, ()
    return None, (f"the model makes its logits in a way of its own ({flaw}): they are made at every position",)


def _flaw_of(
    loaded: LoadedModel, name: str, probes: Sequence[EncodedRow], reference: torch.Tensor, pad_id: int
) -> str | None:
    """Why this attention must not be used; None when it is right."""
    same, other = _SAME_KERNEL[loaded.compute_dtype], _OTHER_KERNEL[loaded.compute_dtype]
    try:
        _use(loaded, name)
        alone = [_logits(loaded, [probe], "packed", pad_id) for probe in probes]
        together = _logits(loaded, probes, "packed", pad_id)
        changed = _logits(loaded, [_reversed(probes[0]), *probes[1:]], "packed", pad_id)
    except _CANNOT as error:
        return str(error).strip().partition("\n")[0]
    first = probes[0].total_tokens
    if flaw := _difference(alone[0], reference, limit=other):
        return f"a row does not give the logits of the model's usual attention ({flaw})"
    if flaw := _difference(together, torch.cat(alone), limit=same):
        return f"rows end to end do not give the logits that they give alone ({flaw})"
    if len(probes) > 1 and (flaw := _difference(changed[first:], together[first:], limit=same)):
        return f"a row sees the row before it ({flaw})"
    if _difference(changed[:first], together[:first], limit=same) is None:
        return "the check is blind: other tokens did not change their own row"
    return None


def _use(loaded: LoadedModel, name: str) -> None:
    loaded.base.set_attn_implementation(name)
    if loaded.base.config._attn_implementation != name:
        raise NotImplementedError("the model looks up no attention function")


def _logits(loaded: LoadedModel, rows: Sequence[EncodedRow], layout: str, pad_id: int) -> torch.Tensor:
    packed = layout == "packed"
    batch = lay_out(rows, layout="packed" if packed else "padded", pad_id=pad_id, device=loaded.device)
    return model_logits(loaded.base, batch).float()


def _difference(found: torch.Tensor, expected: torch.Tensor, *, limit: float) -> str | None:
    """None when close enough, else by how much not."""
    if found.shape != expected.shape:
        return f"{tuple(found.shape)} instead of {tuple(expected.shape)}"
    spread = (expected - expected.mean(-1, keepdim=True)).square().mean().sqrt()
    ratio = float((found - expected).square().mean().sqrt() / spread)
    return None if ratio <= limit else f"they differ by {ratio:.2g} of their spread, {limit:g} is allowed"


def _probe(row: EncodedRow) -> EncodedRow:
    return EncodedRow(number=row.number, tokens=row.tokens[:_PROBE_TOKENS], labels_mask=row.labels_mask[:_PROBE_TOKENS])


def _reversed(row: EncodedRow) -> EncodedRow:
    return EncodedRow(number=row.number, tokens=row.tokens[::-1], labels_mask=row.labels_mask)
