"""Attention by document against a plain masked softmax."""

from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.train

LENGTHS = (5, 1, 9, 3)


def _qkv(dtype, heads=4, kv_heads=2, width=8):
    import torch

    torch.manual_seed(0)
    total = sum(LENGTHS)
    shapes = ((1, heads, total, width), (1, kv_heads, total, width), (1, kv_heads, total, width))
    return [torch.randn(shape, dtype=dtype).requires_grad_() for shape in shapes]


def _reference(query, key, value, *, scaling, window=None):
    """Written out: scores, a mask of same document, not ahead, not too far back, softmax."""
    import torch

    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    document = torch.repeat_interleave(torch.arange(len(LENGTHS)), torch.tensor(LENGTHS))
    position = torch.arange(sum(LENGTHS))
    back = position[:, None] - position[None, :]
    seen = (document[:, None] == document[None, :]) & (back >= 0)
    if window:
        seen &= back < window
    scores = (query @ key.transpose(2, 3)) * scaling
    weights = scores.masked_fill(~seen, float("-inf")).softmax(-1)
    return (weights @ value).transpose(1, 2)


@pytest.mark.parametrize("window", [None, 4, 100])
def test_forward_and_gradients_equal_the_written_out_form(window):
    import torch

    from scrimp.train.attention import attention_by_document

    found_in, expected_in = _qkv(torch.float32), _qkv(torch.float32)
    found, _ = attention_by_document(
        SimpleNamespace(), *found_in, None, scaling=0.3, sliding_window=window, document_lengths=LENGTHS
    )
    expected = _reference(*expected_in, scaling=0.3, window=window)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    push = torch.randn_like(expected)
    found.backward(push)
    expected.backward(push)
    for mine, theirs in zip(found_in, expected_in, strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, atol=1e-5, rtol=1e-5)


def test_16_bit_is_computed_in_fp32_even_under_autocast():
    import torch

    from scrimp.train.attention import attention_by_document

    inputs = _qkv(torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, _ = attention_by_document(SimpleNamespace(), *inputs, None, scaling=0.3, document_lengths=LENGTHS)
    expected = _reference(*(each.float() for each in inputs), scaling=0.3)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, expected.bfloat16(), atol=0, rtol=0)


def test_without_borders_it_is_one_document():
    import torch

    from scrimp.train.attention import attention_by_document

    inputs = _qkv(torch.float32)
    whole, _ = attention_by_document(SimpleNamespace(), *inputs, None)
    same, _ = attention_by_document(SimpleNamespace(), *inputs, None, document_lengths=(sum(LENGTHS),))
    assert torch.equal(whole, same)


@pytest.mark.parametrize(
    "asked",
    [{"softcap": 50.0}, {"s_aux": 1}, {"position_bias": 1}, {"is_causal": False}],
    ids=lambda each: next(iter(each)),
)
def test_what_would_change_the_result_is_refused(asked):
    import torch

    from scrimp.train.attention import attention_by_document

    with pytest.raises(NotImplementedError, match="attention by document has no"):
        attention_by_document(SimpleNamespace(), *_qkv(torch.float32), None, document_lengths=LENGTHS, **asked)


def test_masks_and_batches_are_refused():
    import torch

    from scrimp.train.attention import attention_by_document

    inputs = _qkv(torch.float32)
    with pytest.raises(NotImplementedError, match="no attention_mask"):
        attention_by_document(SimpleNamespace(), *inputs, torch.ones(1))
    with pytest.raises(NotImplementedError, match="several rows"):
        attention_by_document(SimpleNamespace(), *(each.expand(2, -1, -1, -1) for each in inputs), None)


def test_the_gpu_form_asks_for_the_same_thing(monkeypatch):
    """torch's ragged flash attention needs a GPU; what it is asked for is checked against its documented arguments."""
    import inspect

    import torch

    from scrimp.train import attention

    varlen = pytest.importorskip("torch.nn.attention.varlen")
    asked = {}

    def stand_in(query, key, value, **others):
        asked.update(others)
        return torch.zeros_like(query)

    known = set(inspect.signature(varlen.varlen_attn).parameters)
    monkeypatch.setattr(varlen, "varlen_attn", stand_in)
    borders = torch.tensor([0, 5, 6, 15, 18], dtype=torch.int32)
    output, _ = attention.attention_varlen(
        SimpleNamespace(), *_qkv(torch.bfloat16), None, scaling=0.3, sliding_window=4,
        cu_seq_lens_q=borders, cu_seq_lens_k=borders, max_length_q=9, max_length_k=9,
    )  # fmt: skip
    assert output.shape == (1, 18, 4, 8)
    assert set(asked) <= known
    assert asked["window_size"] == (3, 0)
    assert asked["enable_gqa"] is True
    assert asked["cu_seq_q"] is borders


def test_a_cpu_keeps_grouped_keys_and_values_in_fp32_at_their_own_width():
    """What memory forecasts count on: query, key, value and output, and a statistic a head, four bytes each."""
    import torch

    from scrimp.estimate.stack import TRAINER_ON_CPU
    from scrimp.train.attention import attention_by_document

    heads, kv_heads, width = 6, 2, 8
    kept: dict[int, int] = {}

    def pack(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    query, key, value = _qkv(torch.bfloat16, heads=heads, kv_heads=kv_heads, width=width)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        attention_by_document(None, query, key, value, None, document_lengths=[sum(LENGTHS)])
    assert not TRAINER_ON_CPU.repeats_kv
    values = 2 * (heads + kv_heads) * width * TRAINER_ON_CPU.attention_bytes + 4 * heads
    assert sum(kept.values()) == values * sum(LENGTHS)
