"""The watch over first gradients, the set that is saved, finite numbers."""

import pytest

from scrimp.core.errors import TrainingError

pytestmark = pytest.mark.train


def _watch(**gradients):
    """A watch over tensors of which `see` finds these gradients; a list gives one for each step."""
    import torch

    from scrimp.train.guards import LearningWatch

    tensors = {name: torch.nn.Parameter(torch.ones(3)) for name in gradients}
    watch = LearningWatch(tensors)

    def see(step, *, last=False):
        for name, values in gradients.items():
            value = values[step]
            tensors[name].grad = None if value is None else torch.full((3,), float(value))
        return watch.see(last=last)

    return see


def test_lora_a_may_wait_for_the_second_step():
    see = _watch(**{"q.lora_A.weight": [0, 1], "q.lora_B.weight": [1, 1]})
    assert see(0) == ()
    assert see(1) == ()


@pytest.mark.parametrize("gradients", [[0, 0], [None, None]])
def test_a_tensor_that_learns_nothing_is_named(gradients):
    see = _watch(**{"q.lora_A.weight": [0, 1], "k.lora_B.weight": gradients})
    see(0)
    with pytest.raises(TrainingError, match=r"1 of 2 trained tensors get no gradient, the first is k\.lora_B"):
        see(1)


def test_a_run_of_one_step_is_judged_by_it():
    see = _watch(**{"q.lora_A.weight": [0], "q.lora_B.weight": [1]})
    assert see(0, last=True) == ()
    see = _watch(**{"q.lora_A.weight": [0], "q.lora_B.weight": [0]})
    with pytest.raises(TrainingError, match="lora_B"):
        see(0, last=True)


def test_an_expert_without_a_token_is_a_note():
    see = _watch(**{"mlp.experts.3.up.weight": [None, None], "q.weight": [1, 1]})
    see(0)
    assert see(1) == ("1 expert tensors got no token in the first steps",)


def test_after_two_steps_nobody_looks_any_more():
    see = _watch(**{"q.weight": [1, 1, 0]})
    assert [see(step) for step in range(3)] == [(), (), ()]


def test_numbers_must_be_finite():
    from scrimp.train.guards import check_finite

    check_finite(3.0, 1.0, step=1, overflow_is_normal=False)
    check_finite(3.0, float("inf"), step=1, overflow_is_normal=True)
    for loss, norm, said in ((float("nan"), 1.0, "loss of step 4 is nan"), (3.0, float("nan"), "gradient of step 4")):
        with pytest.raises(TrainingError, match=said):
            check_finite(loss, norm, step=4, overflow_is_normal=False)
    with pytest.raises(TrainingError, match="loss of step 4 is inf"):
        check_finite(float("inf"), 1.0, step=4, overflow_is_normal=True)


@pytest.mark.parametrize("method", ["lora", "full"])
def test_what_is_trained_is_what_is_saved(tiny_model_folder, recipe, method, tmp_path):
    """The guard believes in names; here the file that `save` writes is opened and counted."""
    import torch
    from safetensors import safe_open

    from scrimp import methods
    from scrimp.core.job import MethodChoice
    from scrimp.train.guards import check_trainable_is_saved
    from scrimp.train.load import load_model

    made = recipe(method=MethodChoice(name=method))
    loaded = load_model(tiny_model_folder, made, torch.device("cpu"))
    check_trainable_is_saved(loaded, made)
    methods.get(method).save(loaded.module, str(tmp_path), base_model="owner/base")
    (file,) = tmp_path.glob("*.safetensors")
    with safe_open(file, "pt") as tensors:
        saved = sum(tensors.get_tensor(name).numel() for name in tensors.keys())  # noqa: SIM118
    assert saved == loaded.trainable_params
