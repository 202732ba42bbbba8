"""Attention as a CUDA flash kernel remembers it, for models whose step is traced on a CPU.

Kernels of CPUs wrote grouped keys and values out to the width of the queries before torch 2.13 and kept them so; the
GPU's never did. What this stand-in keeps and takes follows FlashAttention-2 (Dao 2023, arXiv 2307.08691; its
mha_bwd): query, key, value, output and an fp32 statistic per head and position from forward to backward; in backward an
fp32 gradient of the query, and gradients of key and value at the width of the queries where heads are grouped.

Shapes: B batch, H query heads, K key and value heads, T tokens, D width of a head.
"""

from typing import Any

import torch

GROUPED = "scrimp_traced"
# Keys and values written out to the width of the queries (litgpt; transformers before 4.48 under SDPA).
WRITTEN_OUT = "scrimp_traced_written_out"


def register_attention() -> None:
    """Make both known to transformers. Doing it twice changes nothing."""
    from transformers import AttentionInterface

    AttentionInterface.register(GROUPED, _grouped)
    AttentionInterface.register(WRITTEN_OUT, _written_out)


def backward_workspace_bytes(query_heads: int, kv_heads: int, values: int, element_bytes: int) -> int:
    """What the backward kernel takes and gives back: `values` is the size of the query."""
    return values * 4 + (2 * values * element_bytes if kv_heads != query_heads else 0)


def _grouped(
    module: torch.nn.Module,
    query_BHTD: torch.Tensor,
    key_BKTD: torch.Tensor,
    value_BKTD: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    # SDPA is among the functions that autocast runs in 16 bit.
    if torch.is_autocast_enabled("cpu"):
        dtype = torch.get_autocast_dtype("cpu")
        query_BHTD, key_BKTD, value_BKTD = query_BHTD.to(dtype), key_BKTD.to(dtype), value_BKTD.to(dtype)
    return _Flash.apply(query_BHTD, key_BKTD, value_BKTD), None


def _written_out(
    module: torch.nn.Module,
    query_BHTD: torch.Tensor,
    key_BKTD: torch.Tensor,
    value_BKTD: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    groups = query_BHTD.shape[1] // key_BKTD.shape[1]
    key_BHTD, value_BHTD = (each.repeat_interleave(groups, 1) for each in (key_BKTD, value_BKTD))
    return _grouped(module, query_BHTD, key_BHTD, value_BHTD, attention_mask, **others)


class _Flash(torch.autograd.Function):
    """Memory alone: the values are never looked at."""

    @staticmethod
    def forward(ctx: Any, query_BHTD: torch.Tensor, key_BKTD: torch.Tensor, value_BKTD: torch.Tensor) -> torch.Tensor:
        batch, heads, tokens, _ = query_BHTD.shape
        output_BTHD = query_BHTD.new_empty((batch, tokens, heads, value_BKTD.shape[-1]))
        statistic_BHT = query_BHTD.new_empty((batch, heads, tokens), dtype=torch.float32)
        ctx.save_for_backward(query_BHTD, key_BKTD, value_BKTD, output_BTHD, statistic_BHT)
        return output_BTHD

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        query_BHTD, key_BKTD, value_BKTD, _, statistic_BHT = ctx.saved_tensors
        grads = torch.empty_like(query_BHTD), torch.empty_like(key_BKTD), torch.empty_like(value_BKTD)
        _sums = torch.empty_like(statistic_BHT)
        _grad_query = torch.empty_like(query_BHTD, dtype=torch.float32)
        if key_BKTD.shape[1] != query_BHTD.shape[1]:
            _wide = torch.empty_like(query_BHTD), torch.empty_like(query_BHTD)
        return grads
