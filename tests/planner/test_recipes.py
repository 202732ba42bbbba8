"""Recipes: what is searched, what is honoured, and why a method is refused."""

from dataclasses import replace

import pytest

from scrimp.core.errors import SpecError, UnknownNameError
from scrimp.core.job import MethodChoice
from scrimp.core.units import GIB
from scrimp.planner.recipes import Fit, Unfit, method_choices, micro_batch_ladder, search_recipe


def _search(fakes, *, method="lora", card="RTX4090", gpus=1, device=None, **sections):
    workload = fakes.workload(spec=fakes.spec(method=method, **sections))
    (choice,) = method_choices(workload.spec.method)
    machine = fakes.Machine(device=device or fakes.CARDS[card], gpus=gpus)
    return search_recipe(workload, choice, machine, fakes.Forecaster())


def test_the_largest_micro_batch_that_fits_comfortably_is_taken(fakes):
    fit = _search(fakes, card="RTX4090")
    ladder = micro_batch_ladder(fakes.workload(), 1)
    assert isinstance(fit, Fit)
    assert fit.comfortable
    above = ladder[ladder.index(fit.recipe.micro_batch_tokens) + 1]
    machine = fit.machine
    need = fakes.Forecaster().memory(_with(fit.recipe, micro_batch_tokens=above), machine).need_bytes
    assert need.high > machine.device.memory_bytes


def _with(recipe, **changes):
    return replace(recipe, **changes)


def test_a_large_card_needs_no_checkpointing_and_holds_the_whole_step(fakes):
    fit = _search(fakes, card="A100-SXM4-80GB")
    assert fit.recipe.checkpointing == "none"
    assert fit.recipe.micro_batch_tokens == fakes.STEPS.largest_step_tokens


def test_bisection_finds_what_trying_every_rung_finds(fakes):
    for gib in range(17, 60):
        device = fakes.device(memory_bytes=gib * GIB)
        for switch in ("full", "none"):
            fit = _search(fakes, device=device, training={"checkpointing": switch})
            if isinstance(fit, Unfit) or not fit.comfortable:
                continue
            fitting = [
                rung
                for rung in micro_batch_ladder(fakes.workload(), 1)
                if fakes.Forecaster().memory(_with(fit.recipe, micro_batch_tokens=rung), fit.machine).need_bytes.high
                <= device.memory_bytes
            ]
            assert fit.recipe.micro_batch_tokens == fitting[-1]


def test_a_tight_card_gets_the_smallest_micro_batch(fakes):
    fit = _search(fakes, device=fakes.device(memory_bytes=int(15.0 * GIB)))
    assert isinstance(fit, Fit)
    assert not fit.comfortable
    assert fit.recipe.micro_batch_tokens == fakes.STEPS.longest_row_tokens


def test_what_does_not_fit_says_how_much_it_needs_at_the_least(fakes):
    unfit = _search(fakes, method="full", card="RTX4090")
    assert isinstance(unfit, Unfit)
    assert unfit.kind == "memory"
    assert "of 24.0 GiB even at micro-batch 900 tokens" in unfit.reason
    assert "checkpointing" in unfit.reason
    assert "optimizer states" in unfit.reason
    assert unfit.rejected(7).offers == 7


def test_explicit_settings_are_honoured(fakes):
    fit = _search(
        fakes,
        card="A100-SXM4-80GB",
        training={
            "micro_batch_tokens": 1234,
            "checkpointing": "full",
            "learning_rate": 7e-4,
            "packing": "off",
            "precision": "fp32",
            "optimizer": "sgd",
            "warmup_share": 0.1,
            "max_steps": 55,
        },
    )
    recipe = fit.recipe
    assert recipe.micro_batch_tokens == 1234
    assert recipe.checkpointing == "full"
    assert recipe.learning_rate == 7e-4
    assert recipe.layout == "padded"
    assert (recipe.compute_dtype, recipe.weight_dtype) == ("fp32", "fp32")
    assert recipe.optimizer == "sgd"
    assert recipe.warmup_steps == 10
    assert recipe.max_steps == 55


def test_selective_checkpointing_is_searched_too(fakes):
    """A card that holds the step with selective checkpointing and not without: the faster of the two that fit."""

    class Selective(fakes.Forecaster):
        """Selective keeps half, and costs a tenth of what full does."""

        def memory(self, recipe, machine):
            half = super().memory(replace(recipe, checkpointing="none"), machine)
            if recipe.checkpointing != "selective":
                return super().memory(recipe, machine)
            (phase,) = half.phases
            saved = phase.terms[-1].size_bytes / 2
            need = half.need_bytes
            return replace(
                half, need_bytes=replace(need, value=need.value - saved, low=need.low - saved, high=need.high - saved)
            )

        def tokens_per_s(self, recipe, machine):
            slow = 0.97 if recipe.checkpointing == "selective" else 1.0
            kind = "none" if recipe.checkpointing == "selective" else recipe.checkpointing
            return slow * super().tokens_per_s(replace(recipe, checkpointing=kind), machine)

    machine = fakes.Machine(device=fakes.device(memory_bytes=36 * GIB), gpus=1)
    workload = fakes.workload(spec=fakes.spec(method="lora", training={"micro_batch_tokens": 8000}))
    (choice,) = method_choices(workload.spec.method)
    fit = search_recipe(workload, choice, machine, Selective())
    assert fit.recipe.checkpointing == "selective"


@pytest.mark.parametrize("card", ["MI300X", "RTX4090"])
def test_paged_states_need_unified_memory(fakes, card):
    found = _search(fakes, card=card, training={"optimizer": "paged_adamw_8bit"})
    if card == "RTX4090":
        assert found.recipe.optimizer == "paged_adamw_8bit"
    else:
        assert found.kind == "unsupported"
        assert "paged_adamw_8bit" in found.reason


def test_method_options_are_written_out_in_the_recipe(fakes):
    fit = _search(fakes, options={"rank": 8})
    assert fit.recipe.method.options == {"rank": 8, "alpha": 32, "dropout": 0.0, "targets": ("all-linear",)}


@pytest.mark.parametrize(
    ("card", "method", "compute", "weights"),
    [
        ("RTX4090", "lora", "bf16", "bf16"),
        ("RTX4090", "qlora", "bf16", "nf4"),
        ("T4", "qlora", "fp16", "nf4"),
        ("MI300X", "full", "bf16", "fp32"),
    ],
)
def test_precision_follows_the_device(fakes, card, method, compute, weights):
    fit = _search(fakes, card=card, method=method)
    assert (fit.recipe.compute_dtype, fit.recipe.weight_dtype) == (compute, weights)


def test_a_frozen_base_is_kept_in_the_dtype_it_is_multiplied_in(fakes):
    big_volta = fakes.device("V100", memory_bytes=64 * GIB, supports_bf16=False)
    assert _search(fakes, device=big_volta).recipe.weight_dtype == "fp16"
    assert _search(fakes, device=fakes.CPU).recipe.weight_dtype == "fp32"


def test_several_cards_hold_whole_copies_where_they_can(fakes):
    assert _search(fakes, card="A100-SXM4-80GB", gpus=4).recipe.sharding == "ddp"
    assert _search(fakes, method="full", card="A100-SXM4-80GB", gpus=4).recipe.sharding == "fsdp"
    assert _search(fakes, card="RTX4090", gpus=1).recipe.sharding == "none"


def test_cards_share_a_step(fakes):
    assert micro_batch_ladder(fakes.workload(), 8)[-1] == 1500


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "qlora", "card": "Gaudi2"}, "a software stack of its own"),
        ({"training": {"precision": "bf16"}, "card": "T4"}, "no bf16 in hardware"),
        ({"gpus": 8, "training": {"batch_rows": 4}}, "4 rows a step cannot be split over 8 cards"),
        ({"method": "full", "training": {"precision": "fp16"}, "card": "T4", "gpus": 1}, None),
    ],
)
def test_impossible_combinations_are_refused_with_the_reason(fakes, changes, words):
    found = _search(fakes, **changes)
    if words is None:
        assert not (isinstance(found, Unfit) and found.kind == "unsupported")
        return
    assert isinstance(found, Unfit)
    assert found.kind == "unsupported"
    assert words in found.reason


def test_fp16_on_a_cpu_is_refused(fakes):
    found = _search(fakes, device=fakes.CPU, training={"precision": "fp16"})
    assert isinstance(found, Unfit)
    assert found.kind == "unsupported"


def test_auto_takes_no_packed_weights_on_a_cpu_but_who_names_the_method_gets_it(fakes):
    machine = fakes.Machine(device=fakes.CPU, gpus=1)
    auto = fakes.workload(spec=fakes.spec(method="auto"))
    found = {
        choice.name: search_recipe(auto, choice, machine, fakes.Forecaster())
        for choice in method_choices(auto.spec.method)
    }
    assert isinstance(found["lora"], Fit)
    assert isinstance(found["qlora"], Unfit)
    assert "method=qlora" in found["qlora"].reason
    assert isinstance(_search(fakes, method="qlora", device=fakes.CPU), Fit)


def test_auto_tries_all_methods_that_know_the_options():
    assert {choice.name for choice in method_choices(MethodChoice())} >= {"full", "lora", "qlora"}
    assert {choice.name for choice in method_choices(MethodChoice(options={"rank": 8}))} >= {"lora", "qlora"}
    assert "full" not in {choice.name for choice in method_choices(MethodChoice(options={"rank": 8}))}


def test_an_option_that_no_method_knows_and_an_unknown_method():
    with pytest.raises(SpecError, match="rnak"):
        method_choices(MethodChoice(options={"rnak": 8}))
    with pytest.raises(UnknownNameError, match="qlora"):
        method_choices(MethodChoice(name="qlra"))
