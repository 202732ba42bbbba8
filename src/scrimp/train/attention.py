"""Attention over rows laid end to end: each document sees itself alone, and no mask is ever written out.

Shapes: B batch (always 1 here), H query heads, K key and value heads, T tokens of the whole micro-batch, L tokens of
one document, D width of a head.

The functions are offered to transformers under the names below; every model that looks its attention up there can use
them. Borders come with the forward call: `document_lengths` and the names that transformers itself uses for
variable-length attention (cu_seq_lens_q, max_length_q ...).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

# One call of scaled_dot_product_attention for each document.
BY_DOCUMENT = "scrimp_by_document"
# One call of torch's own variable-length flash attention for all of them; CUDA, 16 bit.
VARLEN = "scrimp_varlen"

# Arguments by which some families change what attention computes; they are refused rather than left out.
_CHANGE_THE_RESULT = ("softcap", "s_aux", "position_bias", "head_mask")


def register_attention() -> None:
    """Make both functions known to transformers. Doing it twice changes nothing."""
    from transformers import AttentionInterface

    AttentionInterface.register(BY_DOCUMENT, attention_by_document)
    AttentionInterface.register(VARLEN, attention_varlen)


def attention_names(device: torch.device, dtype: torch.dtype) -> tuple[str, ...]:
    """What to try on that device, the fastest first."""
    if device.type == "cuda" and dtype != torch.float32:
        return (VARLEN, BY_DOCUMENT)
    return (BY_DOCUMENT,)


def attention_by_document(
    module: torch.nn.Module,
    query_BHTD: torch.Tensor,
    key_BKTD: torch.Tensor,
    value_BKTD: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    dropout: float = 0.0,
    scaling: float | None = None,
    sliding_window: int | None = None,
    document_lengths: Sequence[int] | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Causal attention inside each document, one call each. Returns (B, T, H, D) as transformers expects it.

    Raises:
        NotImplementedError: a mask, a batch, or an argument that would change the result (soft capping ...).
    """
    _refuse_others(query_BHTD, attention_mask, others)
    lengths = list(document_lengths or (query_BHTD.shape[2],))
    dtype, device = query_BHTD.dtype, query_BHTD.device
    if device.type == "cpu":
        # The backward pass of CPU flash attention takes up to twice as long in bf16 as in fp32, which is exact too.
        query_BHTD, key_BKTD, value_BKTD = query_BHTD.float(), key_BKTD.float(), value_BKTD.float()
    outputs: list[torch.Tensor] = []
    # Autocast would take the fp32 back.
    with torch.autocast(device.type, enabled=False):
        documents = (query_BHTD.split(lengths, 2), key_BKTD.split(lengths, 2), value_BKTD.split(lengths, 2))
        for query_BHLD, key_BKLD, value_BKLD in zip(*documents, strict=True):
            window_LL = _window_mask(query_BHLD, sliding_window)
            output_BHLD = scaled_dot_product_attention(
                query_BHLD,
                key_BKLD,
                value_BKLD,
                attn_mask=window_LL,
                is_causal=window_LL is None,
                dropout_p=dropout,
                scale=scaling,
                enable_gqa=key_BKLD.shape[1] != query_BHLD.shape[1],
            )
            outputs.append(output_BHLD.transpose(1, 2))
    return torch.cat(outputs, 1).to(dtype), None


def attention_varlen(
    module: torch.nn.Module,
    query_BHTD: torch.Tensor,
    key_BKTD: torch.Tensor,
    value_BKTD: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    dropout: float = 0.0,
    scaling: float | None = None,
    sliding_window: int | None = None,
    cu_seq_lens_q: torch.Tensor,
    cu_seq_lens_k: torch.Tensor,
    max_length_q: int,
    max_length_k: int,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """The same in one call of torch's flash attention for ragged rows (torch 2.10 and later, CUDA).

    Raises:
        NotImplementedError: as `attention_by_document`; also dropout inside attention, or an older torch.
    """
    _refuse_others(query_BHTD, attention_mask, others)
    if dropout:
        raise NotImplementedError("attention dropout")
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError as error:
        raise NotImplementedError("torch.nn.attention.varlen came with torch 2.10") from error
    dtype = query_BHTD.dtype if query_BHTD.dtype != torch.float32 else torch.get_autocast_dtype("cuda")
    output_THD = varlen_attn(
        *(each_BHTD[0].transpose(0, 1).to(dtype) for each_BHTD in (query_BHTD, key_BKTD, value_BKTD)),
        cu_seq_q=cu_seq_lens_q,
        cu_seq_k=cu_seq_lens_k,
        max_q=max_length_q,
        max_k=max_length_k,
        scale=scaling,
        # So many tokens back, none ahead: causal.
        window_size=(sliding_window - 1 if sliding_window else -1, 0),
        enable_gqa=key_BKTD.shape[1] != query_BHTD.shape[1],
    )
    assert isinstance(output_THD, torch.Tensor)
    return output_THD[None].to(query_BHTD.dtype), None


def _window_mask(query_BHLD: torch.Tensor, sliding_window: int | None) -> torch.Tensor | None:
    """Which keys each query of one document sees; None where the window is not smaller than the document."""
    length = query_BHLD.shape[2]
    if not sliding_window or length <= sliding_window:
        return None
    position_L = torch.arange(length, device=query_BHLD.device)
    back_LL = position_L[:, None] - position_L[None, :]
    return (back_LL >= 0) & (back_LL < sliding_window)


def _refuse_others(query_BHTD: torch.Tensor, attention_mask: torch.Tensor | None, others: dict[str, Any]) -> None:
    asked = [name for name in _CHANGE_THE_RESULT if others.get(name) is not None]
    if attention_mask is not None:
        asked.append("attention_mask")
    if query_BHTD.shape[0] != 1:
        asked.append("a batch of several rows")
    if others.get("is_causal") is False:
        asked.append("attention that is not causal")
    if asked:
        raise NotImplementedError(f"attention by document has no {', no '.join(asked)}")
