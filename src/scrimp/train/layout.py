"""Rows of a micro-batch as the tensors that a model reads.

Shapes: B rows, L tokens of the longest of them, T tokens of all rows laid end to end (B is then 1), N label positions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from scrimp.core.recipe import Layout
from scrimp.data.row import EncodedRow


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """`inputs` are the exact keyword arguments of the model's decoder.

    Position `label_index[i]` of the flattened (B x L) or (1 x T) tokens predicts token `targets[i]`; both are (N).
    """

    inputs: Mapping[str, Any]
    label_index: torch.Tensor
    targets: torch.Tensor
    total_tokens: int


def lay_out(rows: Sequence[EncodedRow], *, layout: Layout, pad_id: int, device: torch.device) -> MicroBatch:
    """`packed`: end to end without padding, each row counting its positions from 0. `padded`: one row below another."""
    return _packed(rows, device) if layout == "packed" else _padded(rows, pad_id, device)


def _packed(rows: Sequence[EncodedRow], device: torch.device) -> MicroBatch:
    lengths = [row.total_tokens for row in rows]
    tokens_T = np.concatenate([_tokens(row) for row in rows])
    positions_T = np.concatenate([np.arange(length) for length in lengths])
    # The first token of a row is never a target, so the position before a target is always in the same row.
    targets_N = np.concatenate([_mask(row) for row in rows]).nonzero()[0]
    borders = torch.tensor([0, *np.cumsum(lengths)], dtype=torch.int32, device=device)
    inputs = {
        "input_ids": torch.as_tensor(tokens_T[None], device=device),
        "position_ids": torch.as_tensor(positions_T[None], device=device),
        "use_cache": False,
        "document_lengths": tuple(lengths),
        "cu_seq_lens_q": borders,
        "cu_seq_lens_k": borders,
        "max_length_q": max(lengths),
        "max_length_k": max(lengths),
    }
    return MicroBatch(
        inputs=inputs,
        label_index=torch.as_tensor(targets_N - 1, device=device),
        targets=torch.as_tensor(tokens_T[targets_N], device=device),
        total_tokens=len(tokens_T),
    )


def _padded(rows: Sequence[EncodedRow], pad_id: int, device: torch.device) -> MicroBatch:
    width = max(row.total_tokens for row in rows)
    tokens_BL = np.full((len(rows), width), pad_id, dtype=np.int64)
    real_BL = np.zeros((len(rows), width), dtype=np.int64)
    target_BL = np.zeros((len(rows), width), dtype=np.uint8)
    for index, row in enumerate(rows):
        tokens_BL[index, : row.total_tokens] = _tokens(row)
        real_BL[index, : row.total_tokens] = 1
        target_BL[index, : row.total_tokens] = _mask(row)
    targets_N = target_BL.reshape(-1).nonzero()[0]
    inputs = {
        "input_ids": torch.as_tensor(tokens_BL, device=device),
        "attention_mask": torch.as_tensor(real_BL, device=device),
        "use_cache": False,
    }
    return MicroBatch(
        inputs=inputs,
        label_index=torch.as_tensor(targets_N - 1, device=device),
        targets=torch.as_tensor(tokens_BL.reshape(-1)[targets_N], device=device),
        total_tokens=sum(row.total_tokens for row in rows),
    )


def _tokens(row: EncodedRow) -> np.ndarray:
    return np.frombuffer(row.tokens, dtype=np.intc).astype(np.int64)


def _mask(row: EncodedRow) -> np.ndarray:
    return np.frombuffer(row.labels_mask, dtype=np.uint8)
