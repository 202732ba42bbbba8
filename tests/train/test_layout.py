"""Rows of a micro-batch as tensors."""

from array import array

import pytest

from scrimp.data.row import EncodedRow

pytestmark = pytest.mark.train

ROWS = (
    EncodedRow(number=1, tokens=array("i", [5, 6, 7, 2]), labels_mask=bytes([0, 0, 1, 1])),
    EncodedRow(number=2, tokens=array("i", [8, 9]), labels_mask=bytes([0, 1])),
    EncodedRow(number=3, tokens=array("i", [3, 2, 4]), labels_mask=bytes([0, 1, 0])),
)


def _laid(layout):
    import torch

    from scrimp.train.layout import lay_out

    return lay_out(ROWS, layout=layout, pad_id=2, device=torch.device("cpu"))


def test_packed_rows_lie_end_to_end_and_count_from_zero():
    batch = _laid("packed")
    assert batch.inputs["input_ids"].tolist() == [[5, 6, 7, 2, 8, 9, 3, 2, 4]]
    assert batch.inputs["position_ids"].tolist() == [[0, 1, 2, 3, 0, 1, 0, 1, 2]]
    assert batch.inputs["document_lengths"] == (4, 2, 3)
    assert batch.inputs["cu_seq_lens_q"].tolist() == [0, 4, 6, 9]
    assert batch.inputs["max_length_k"] == 4
    assert "attention_mask" not in batch.inputs
    assert batch.inputs["use_cache"] is False
    assert batch.total_tokens == 9


@pytest.mark.parametrize("layout", ["packed", "padded"])
def test_each_label_is_predicted_by_the_position_before_it_in_its_own_row(layout):
    batch = _laid(layout)
    flat = batch.inputs["input_ids"].reshape(-1)
    assert flat[batch.label_index].tolist() == [6, 7, 8, 3]
    assert batch.targets.tolist() == [7, 2, 9, 2]


def test_padding_is_masked_by_position_although_its_id_is_the_end_token():
    batch = _laid("padded")
    assert batch.inputs["input_ids"].tolist() == [[5, 6, 7, 2], [8, 9, 2, 2], [3, 2, 4, 2]]
    assert batch.inputs["attention_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]]
    # The genuine end tokens carry labels (rows 1 and 3), the padding with the same id does not.
    assert batch.targets.tolist().count(2) == 2
    assert batch.total_tokens == 9
