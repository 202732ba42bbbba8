"""The selected loss against plain cross entropy over full logits."""

import pytest

pytestmark = pytest.mark.train


def _case(*, bias=False, scale=1.0, softcap=None, trained=True, rows=23, vocab=57):
    import torch

    from scrimp.train.head import OutputHead

    torch.manual_seed(1)
    linear = torch.nn.Linear(12, vocab, bias=bias)
    linear.requires_grad_(trained)
    head = OutputHead(linear=linear, scale=scale, softcap=softcap)
    hidden = torch.randn(rows, 12, requires_grad=True)
    return head, hidden, torch.randint(0, vocab, (rows,))


FORMS = (
    {},
    {"bias": True},
    {"scale": 0.25},
    {"softcap": 3.0},
    {"bias": True, "scale": 2.0, "softcap": 5.0},
    {"trained": False},
)


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("piece_rows", [1, 7, 1000])
def test_loss_and_gradients_equal_the_plain_ones(form, piece_rows):
    import torch

    from scrimp.train.loss import full_loss, selected_loss

    head, hidden, targets = _case(**form)
    found = selected_loss(hidden, targets, head, factor=0.1, piece_logits=piece_rows * 57)
    found.backward()
    mine = [hidden.grad, *(each.grad for each in head.linear.parameters())]
    again = hidden.detach().requires_grad_()
    head.linear.zero_grad()
    expected = full_loss(head.logits(again), targets, factor=0.1)
    expected.backward()
    theirs = [again.grad, *(each.grad for each in head.linear.parameters())]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    for ours, plain in zip(mine, theirs, strict=True):
        assert (ours is None) == (plain is None)
        if plain is not None:
            torch.testing.assert_close(ours, plain, atol=1e-5, rtol=1e-5)


def test_a_frozen_head_gets_no_gradient_and_none_is_formed():
    head, hidden, targets = _case(trained=False)
    from scrimp.train.loss import selected_loss

    loss = selected_loss(hidden, targets, head)
    assert loss.grad_fn is not None
    loss.backward()
    assert head.linear.weight.grad is None


def test_logits_of_any_size_do_not_overflow():
    import torch

    from scrimp.train.loss import selected_loss

    head, hidden, targets = _case()
    loss = selected_loss((hidden * 1e4).detach().requires_grad_(), targets, head)
    assert torch.isfinite(loss)


def test_without_gradients_only_the_loss_is_formed():
    import torch

    from scrimp.train.loss import selected_loss

    head, hidden, targets = _case()
    with torch.no_grad():
        loss = selected_loss(hidden, targets, head)
    assert not loss.requires_grad


def test_the_gradient_is_scaled_before_it_is_rounded():
    """fp16 holds nothing below 6e-8: a factor that only came with backward would come too late."""
    import torch

    from scrimp.train.loss import selected_loss

    head, hidden, targets = _case(trained=False)
    half = hidden.detach().half().requires_grad_()
    head.linear.half()
    selected_loss(half, targets, head, factor=2.0**14 * 1e-7).backward()
    assert half.grad.dtype == torch.float16
    assert (half.grad != 0).float().mean() > 0.9


def test_autocast_multiplies_in_16_bit_and_sums_in_fp32():
    import torch

    from scrimp.train.loss import full_loss, selected_loss

    head, hidden, targets = _case()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = selected_loss(hidden, targets, head)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, full_loss(head.logits(hidden), targets), atol=0.5, rtol=0.01)
    found.backward()
    assert hidden.grad.dtype == torch.float32
    assert head.linear.weight.grad.dtype == torch.float32
