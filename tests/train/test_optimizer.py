"""Optimizers: what their state holds, how large it is, and what is refused."""

from importlib.util import find_spec

import pytest

from scrimp.core.errors import ResourceError
from scrimp.core.job import MethodChoice

pytestmark = [
    pytest.mark.train,
    pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="needs the quant extra"),
]

FULL = MethodChoice(name="full")


def _loaded(make_job, **changes):
    from pathlib import Path

    import torch

    from scrimp.train.load import load_model

    recipe = make_job(method=FULL, **changes).recipe
    return load_model(Path(recipe.model), recipe, torch.device("cpu")), recipe


def test_eight_bit_states_take_two_bytes_a_weight_and_two_scales_a_block(make_job):
    from scrimp.train.optimizer import build_optimizer, optimizer_bytes, optimizer_tensors

    loaded, recipe = _loaded(make_job, optimizer="adamw_8bit")
    optimizer = build_optimizer(loaded, recipe)
    groups = optimizer_tensors(optimizer, loaded.trainable)
    assert set(groups) == {"step", "state1", "state2", "absmax1", "absmax2"}
    expected = 0
    for each in loaded.trainable.values():
        small = each.numel() < 4096
        blocks = -(-each.numel() // 256)
        expected += 8 * each.numel() if small else 2 * each.numel() + 2 * 4 * blocks
    books = 2 * 256 * 4
    assert optimizer_bytes(optimizer) == expected + books
    assert expected < 0.35 * 8 * loaded.trainable_params


def test_eight_bit_states_learn_as_well(make_job, train_job):
    """After one and a half epochs the loss is that of 32-bit states within a hundredth."""
    losses = {}
    for optimizer in ("adamw", "adamw_8bit"):
        _, watch = train_job(make_job(folder=optimizer, optimizer=optimizer, method=FULL, epochs=1.5), catch=())
        losses[optimizer] = [event.values["loss"] for event in watch.of("step")]
    assert losses["adamw_8bit"][0] == losses["adamw"][0]
    assert losses["adamw_8bit"][-1] < losses["adamw_8bit"][0] - 0.05
    assert losses["adamw_8bit"][-1] == pytest.approx(losses["adamw"][-1], abs=0.01)


def test_the_state_survives_a_round_trip_by_name(make_job):
    import torch

    from scrimp.train.optimizer import build_optimizer, optimizer_tensors, restore_optimizer

    loaded, recipe = _loaded(make_job, optimizer="adamw_8bit")
    optimizer = build_optimizer(loaded, recipe)
    for each in loaded.trainable.values():
        each.grad = torch.randn_like(each)
    optimizer.step()
    kept = {
        group: {name: each.clone() for name, each in named.items()}
        for group, named in optimizer_tensors(optimizer, loaded.trainable).items()
    }
    again = build_optimizer(loaded, recipe)
    restore_optimizer(again, loaded.trainable, kept)
    found = optimizer_tensors(again, loaded.trainable)
    assert set(found) == set(kept)
    for group, named in kept.items():
        for name, each in named.items():
            assert torch.equal(found[group][name], each), (group, name)
    assert all(state["step"] == 1 for state in again.state.values())


@pytest.mark.parametrize("optimizer", ["paged_adamw", "paged_adamw_8bit"])
def test_paged_states_are_refused_without_cuda(make_job, train_job, optimizer):
    error, _ = train_job(make_job(optimizer=optimizer), catch=(ResourceError,))
    assert isinstance(error, ResourceError)
    assert optimizer in error.what
    assert error.next_step == f"training.optimizer={optimizer.removeprefix('paged_')}"
