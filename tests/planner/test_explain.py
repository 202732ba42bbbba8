"""The words: what a reader must find in them, whatever the numbers."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from scrimp.core.data import DroppedRows
from scrimp.core.estimate import Estimate
from scrimp.core.job import LimitsSpec
from scrimp.core.plan import PriceAge, Rejected
from scrimp.planner import explain
from scrimp.planner.choose import choose


@pytest.fixture
def plans(fakes):
    offers = (
        fakes.offer("RTX4090", "0.40", market="spot", region="eu-north-1"),
        fakes.offer("A100-SXM4-80GB", "3.00", gpu_count=2.0, instance_type="2x", provider="aws"),
        fakes.offer("A100-SXM4-80GB", "4.00", provider="azure"),
    )
    return choose(fakes.workload(spec=fakes.spec(method="lora")), fakes.facts(*offers), fakes.Forecaster())


def test_the_verdict_names_method_machine_place_money_time_and_memory(plans):
    words = explain.verdict(plans.candidates[0])
    assert words.startswith("lora on 1x RTX4090 (24.0 GiB) at vast eu-north-1, spot: $0.08")
    for part in (" min (", "memory ", "of 24.0 GiB"):
        assert part in words
    assert "80.0 GiB each" in explain.verdict(plans.candidates[1])


def test_a_row_carries_every_figure_and_its_range(fakes, plans):
    row = explain.plan_row(plans.candidates[0], rank=1, on_front=True, today=fakes.TODAY)
    assert (row.rank, row.mark, row.method, row.machine) == (1, "*", "lora", "1x RTX4090")
    assert (row.provider, row.region, row.market, row.price) == ("vast", "eu-north-1", "spot", "$0.40/h")
    assert row.memory_need.endswith(" GiB")
    assert row.price_age == "4 mo"
    assert row.carbon == "unknown"
    low, high = (float(part) for part in row.cost_range.split("-"))
    assert low < float(row.cost.removeprefix("$")) < high


def test_ranges_stand_in_the_unit_of_their_value():
    assert explain.duration_range(_estimate(7200.0, 6480.0, 9000.0)) == "1.80-2.50"
    assert explain.duration_range(_estimate(6000.0, 1800.0, 9000.0)) == "0.50-2.50"
    assert explain.usd_range(_estimate(Decimal("0.41"), Decimal("0.28"), Decimal("1.61"))) == "0.28-1.61"


def _estimate(value, low, high):
    return Estimate(value=value, low=low, high=high, basis="test")


def test_spot_says_that_no_preemption_is_counted(fakes, plans):
    (line,) = explain.doubts(plans.candidates[0], LimitsSpec(), fakes.TODAY)
    assert "taken away" in line


def test_several_cards_are_for_comparison(fakes, plans):
    assert any("uses one card" in line for line in explain.doubts(plans.candidates[1], LimitsSpec(), fakes.TODAY))


def test_a_limit_within_the_interval_is_a_doubt_with_its_odds(fakes, plans):
    candidate = plans.candidates[2]
    total = candidate.money.total_usd
    assert explain.doubts(candidate, LimitsSpec(budget_usd=total.high * 100), fakes.TODAY) == ()
    (line,) = explain.doubts(candidate, LimitsSpec(budget_usd=total.high), fakes.TODAY)
    assert line.startswith("about 1 chance in 10 that it costs more than the budget of")
    (line,) = explain.doubts(candidate, LimitsSpec(deadline_s=candidate.time.total_s.high), fakes.TODAY)
    assert "1 chance in 10 that it takes longer than the deadline" in line


def test_memory_that_only_just_fits_and_old_prices_are_doubts(fakes, plans):
    candidate = plans.candidates[2]
    tight = replace(candidate, device=replace(candidate.device, memory_bytes=int(candidate.memory.need_bytes.value)))
    (line,) = explain.doubts(tight, LimitsSpec(), fakes.TODAY)
    assert "1 chance in 2 that" in line
    assert "are not enough" in line
    old = replace(candidate, offer=replace(candidate.offer, price_date=date(2025, 6, 28)))
    assert "more than a year old" in explain.doubts(old, LimitsSpec(), fakes.TODAY)[0]
    undated = replace(candidate, offer=replace(candidate.offer, price_date=None))
    assert "no date" in explain.doubts(undated, LimitsSpec(), fakes.TODAY)[0]


def test_a_cheaper_plan_that_may_not_fit_is_named(fakes):
    tight = fakes.device("RTX5880Ada", memory_bytes=int(15.0 * 2**30))
    offers = (fakes.offer("A100-SXM4-80GB", "3.00"), fakes.offer("RTX4090", "0.20", gpu="RTX5880Ada"))
    market = replace(fakes.facts(*offers), devices={**fakes.CARDS, tight.name: tight})
    plans = choose(fakes.workload(spec=fakes.spec(method="lora")), market, fakes.Forecaster())
    first, last = plans.candidates
    assert first.device.name == "A100-SXM4-80GB"
    assert explain.better_but_tight(plans, first) is last
    assert explain.better_but_tight(plans, last) is None
    assert explain.plan_row(last, rank=2, on_front=False, today=fakes.TODAY).memory_need.endswith("?")


@pytest.mark.parametrize(
    ("seen", "words"),
    [(date(2026, 11, 20), "11 d"), (date(2026, 5, 1), "7 mo"), (date(2025, 2, 24), "1.8 y!"), (None, "?")],
)
def test_the_age_of_a_price_is_short_and_marks_stale_ones(fakes, plans, seen, words):
    candidate = replace(plans.candidates[0], offer=replace(plans.candidates[0].offer, price_date=seen))
    assert explain.price_age_words(candidate, fakes.TODAY) == words


def test_the_price_line_says_how_old_and_whose(fakes, plans):
    words = explain.price_words(plans, fakes.TODAY)
    assert "2026-08-01" in words
    assert "4 mo old" in words
    assert "gpurentalprices.com" in words
    own = replace(plans, prices=PriceAge(oldest=None, newest=None, undated_offers=0))
    assert "this machine's own" in explain.price_words(own, fakes.TODAY)


def test_what_dominates_is_named_with_its_size(plans):
    words = dict(explain.dominant_words(plans.candidates[0]))
    assert "weights 13.5 GiB" in words["memory"]
    assert words["time"].index("steps") < words["time"].index("start")
    assert words["cost"].count("$") == 2
    assert "at the wall" in words["energy"]
    assert "CO2e unknown" in words["carbon"]


def test_job_and_data_lines_carry_steps_and_drops(fakes, plans):
    assert "100 steps of 8 rows (1 epoch), 800 k tokens" in explain.job_words(plans)
    dropped = DroppedRows(reason="too_long", rows=12, first_rows=(3,), detail="")
    profile = replace(fakes.PROFILE, dropped=(dropped,), duplicate_rows=5, notes=("a note",))
    words = explain.data_words(replace(plans, profile=profile))
    for part in ("800 rows train", "40 held out", "12 dropped", "5 exact duplicates", "50% of them", "a note"):
        assert part in words


def test_rejected_classes_share_a_line_by_method_and_by_reason():
    memory = [Rejected(kind="memory", subject=f"{n}x T4, full", reason=f"needs {n} GiB", offers=10) for n in (1, 2, 8)]
    unknown = [Rejected(kind="price_unknown", subject=s, reason="no price known", offers=1) for s in ("A", "B")]
    rows = explain.rejected_rows([*unknown, *memory], every=False)
    assert [(row.kind, row.offers) for row in rows] == [("does not fit", 30), ("price unknown", 2)]
    assert rows[0].words == "full on 3 machines; the nearest, 1x T4: needs 1 GiB"
    assert rows[1].words == "A and 1 more: no price known"
    assert len(explain.rejected_rows([*unknown, *memory], every=True)) == 5


def test_the_recipe_line_names_every_decision(plans):
    words = explain.recipe_words(plans.candidates[1])
    for part in (
        "lora (rank 16, alpha 32",
        "bf16 weights",
        "micro-batches of",
        "checkpointing none",
        "ddp over 2 cards",
    ):
        assert part in words
