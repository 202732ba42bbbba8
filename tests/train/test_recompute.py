"""Selective checkpointing: which results are kept, and that keeping them saves the second product."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.train


def test_wide_products_and_attention_are_dear_and_narrow_products_are_not():
    import torch

    from scrimp.train.recompute import is_dear

    wide, narrow = (torch.empty(4, 576), torch.empty(576, 8)), (torch.empty(4, 8), torch.empty(8, 576))
    assert is_dear("aten::mm", wide, least_inner_width=256)
    assert not is_dear("aten::mm", narrow, least_inner_width=256)
    assert is_dear("aten::addmm", (torch.empty(8), *wide), least_inner_width=256)
    assert is_dear("torch_attn::_varlen_attn", (), least_inner_width=256)
    for cheap in ("aten::mul", "aten::silu", "aten::bmm", "aten::native_dropout"):
        assert not is_dear(cheap, wide, least_inner_width=256)


def test_selective_repeats_norms_and_no_product_of_the_model(make_job):
    """Counted below autograd in one step: products and attention as often as without, norms twice in the layers."""
    counts = {mode: _counts(make_job, mode) for mode in ("none", "selective", "full")}
    attention = "aten::_scaled_dot_product_flash_attention_for_cpu"
    layers = 3
    # Under checkpointing the first layer's input gets a gradient too: one product more.
    assert counts["selective"]["wide mm"] == counts["none"]["wide mm"] + 1
    assert counts["selective"][attention] == counts["none"][attention] == layers
    assert counts["full"][attention] == 2 * layers
    assert counts["full"]["wide mm"] >= counts["none"]["wide mm"] + 12 * layers
    assert counts["selective"]["aten::rsqrt"] == counts["none"]["aten::rsqrt"] + 2 * layers
    assert counts["selective"]["narrow mm"] > counts["none"]["narrow mm"]


def _counts(make_job, mode):
    from collections import Counter

    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    from scrimp.train.attention import BY_DOCUMENT
    from scrimp.train.load import load_model

    recipe = make_job(checkpointing=mode).recipe
    loaded = load_model(Path(recipe.model), recipe, torch.device("cpu"))
    loaded.base.set_attn_implementation(BY_DOCUMENT)
    loaded.module.train()
    seen = Counter()

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            name = func.name().partition(".")[0]
            if name == "aten::mm":
                name = "wide mm" if args[0].shape[-1] >= 64 else "narrow mm"
            seen[name] += 1
            return func(*args, **(kwargs or {}))

    ids = torch.arange(24)[None] + 5
    with Count():
        hidden = loaded.base.get_decoder()(input_ids=ids, use_cache=False, document_lengths=[24]).last_hidden_state
        hidden.pow(2).mean().backward()
    return seen
