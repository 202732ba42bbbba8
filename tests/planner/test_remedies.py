"""Remedies: each is proven by a search of the changed job, and typing its override gives the plan it promises."""

from dataclasses import replace
from decimal import Decimal

import pytest

from scrimp.core.job import MethodChoice
from scrimp.core.units import GIB
from scrimp.planner.choose import choose
from scrimp.planner.remedies import overrides


def _plans(fakes, *offers, **spec):
    workload = fakes.workload(spec=fakes.spec(**spec))
    return choose(workload, fakes.facts(*offers, local=True), fakes.Forecaster())


def _words(plans):
    return [remedy.change for remedy in plans.remedies]


def test_no_remedies_where_there_is_a_plan(fakes):
    assert _plans(fakes, fakes.offer()).remedies == ()


def test_a_smaller_rank_is_offered_when_it_fits(fakes):
    card = fakes.offer("T4", "0.30")
    plans = _plans(fakes, card, method="lora", options={"rank": 64}, training={"precision": "fp32"})
    assert not plans.candidates
    assert any("instead of" in words for words in _words(plans))


def test_qlora_is_offered_where_lora_does_not_fit(fakes):
    plans = _plans(fakes, fakes.offer("T4", "0.30"), method="lora", options={"rank": 256})
    assert any(words.startswith("qlora instead of lora: method.name=qlora") for words in _words(plans))
    remedy = next(r for r in plans.remedies if r.change.startswith("qlora"))
    changed = _plans(fakes, fakes.offer("T4", "0.30"), method="qlora")
    assert remedy.cost_usd == changed.candidates[0].money.total_usd.value
    assert remedy.duration_s == changed.candidates[0].time.total_s.value


def test_more_cards_and_other_cards_are_offered(fakes):
    offers = [fakes.offer("A100-SXM4-80GB", str(n), gpu_count=float(n), instance_type=f"{n}x") for n in (1, 8)]
    plans = _plans(fakes, *offers, method="full", market={"where": "cloud", "max_gpus": 1})
    assert any("market.max_gpus=8" in words for words in _words(plans))
    offers = [fakes.offer("T4", "0.3"), fakes.offer("MI300X", "3")]
    plans = _plans(fakes, *offers, method="full", market={"where": "cloud", "gpus": ("T4",)})
    assert any("all GPUs: market.gpus=[]" in words for words in _words(plans))


def test_smaller_states_and_shorter_rows_are_proven_like_any_other_change(fakes):
    """Here the states of AdamW weigh, unless the longest row is short: either change is enough."""
    profile = replace(fakes.PROFILE, length_histogram=((100, 700), (300, 80), (900, 20)))
    workload = fakes.workload(profile=profile, spec=fakes.spec(method="lora", options={"rank": 16}))

    class Slim(fakes.Forecaster):
        """40 GiB more with 32-bit states and long rows."""

        def memory(self, recipe, machine):
            found = super().memory(recipe, machine)
            extra = 40 * GIB if recipe.optimizer == "adamw" and recipe.max_length_tokens > 300 else 0
            need = replace(found.need_bytes, value=found.need_bytes.value + extra, high=found.need_bytes.high + extra)
            return replace(found, need_bytes=need)

    plans = choose(workload, fakes.facts(fakes.offer("RTX4090", "0.4")), Slim())
    assert not plans.candidates
    words = _words(plans)
    assert any(text.endswith(": training.optimizer=adamw_8bit") for text in words)
    assert "rows of at most 300 tokens (20 rows are left out): data.max_length_tokens=300" in words


def test_several_filters_at_once_are_lifted_together(fakes):
    offers = [fakes.offer("T4", "0.3", gpu_count=0.5), fakes.offer("MI300X", "3", provider="aws", gpu_count=2.0)]
    market = {"where": "cloud", "gpus": ("T4",), "providers": ("vast",), "max_gpus": 1}
    plans = _plans(fakes, *offers, method="full", training={"checkpointing": "none"}, market=market)
    assert plans.remedies
    (together,) = [words for words in _words(plans) if words.startswith("all methods on all machines")]
    for key in (
        "market.gpus=[]",
        "market.providers=[]",
        "market.max_gpus=16",
        "method.name=auto",
        "training.checkpointing=auto",
    ):
        assert key in together


def test_impossible_limits_say_by_how_much(fakes):
    offers = (fakes.offer("RTX4090", "0.40"), fakes.offer("A100-SXM4-80GB", "3.00"))
    free = _plans(fakes, *offers, method="lora")
    cheap, fast = free.candidates
    limits = {
        "budget_usd": cheap.money.total_usd.value - Decimal("0.05"),
        "deadline_s": fast.time.total_s.value - 60,
    }
    plans = _plans(fakes, *offers, method="lora", limits=limits)
    assert not plans.candidates
    assert {r.kind for r in plans.rejected} >= {"over_budget"}
    (both,) = [words for words in _words(plans) if "limits" in words]
    assert "more budget" in both
    assert "more time" in both


def test_a_raised_limit_is_enough(fakes):
    offers = (fakes.offer("RTX4090", "0.40"), fakes.offer("A100-SXM4-80GB", "3.00"))
    cheap, fast = _plans(fakes, *offers, method="lora").candidates
    middle = (cheap.time.total_s.value + fast.time.total_s.value) / 2
    plans = _plans(
        fakes, *offers, method="lora", limits={"budget_usd": cheap.money.total_usd.value, "deadline_s": middle}
    )
    money, time = plans.remedies[:2]
    assert money.change.endswith(f"limits.budget={_typed(money, 'budget')}")
    raised = Decimal(_typed(money, "budget"))
    again = _plans(fakes, *offers, method="lora", limits={"budget_usd": raised, "deadline_s": middle})
    assert again.candidates[0].money.total_usd.value == money.cost_usd
    assert "limits.deadline=" in time.change
    assert time.cost_usd == cheap.money.total_usd.value


def _typed(remedy, key):
    return remedy.change.split(f"limits.{key}=")[1].split()[0]


def test_a_change_that_still_breaks_the_budget_raises_it_too(fakes):
    offers = [fakes.offer("A100-SXM4-80GB", str(n), gpu_count=float(n), instance_type=f"{n}x") for n in (1, 8)]
    market = {"where": "cloud", "max_gpus": 1}
    plans = _plans(fakes, *offers, method="full", market=market, limits={"budget_usd": Decimal("0.01")})
    (words,) = [words for words in _words(plans) if "max_gpus" in words]
    assert "more budget" in words
    assert "limits.budget=" in words


@pytest.mark.parametrize(
    ("change", "typed"),
    [
        (
            {"method": MethodChoice(name="lora", options={"rank": 8, "alpha": 16})},
            "method.name=lora method.rank=8 method.alpha=16",
        ),
        ({}, ""),
    ],
)
def test_overrides_name_only_what_changed(fakes, change, typed):
    spec = fakes.spec()
    assert overrides(spec, replace(spec, **change)) == typed
