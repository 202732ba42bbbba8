"""Electricity and carbon: measured nodes, worked examples, unknowns that are not zero, ways of counting, laws."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.catalog.carbon import grid_factors
from scrimp.catalog.devices import find_device
from scrimp.core.estimate import Estimate
from scrimp.core.forecast import CarbonForecast, TimeForecast, TimePart
from scrimp.core.job import LocalMachineSpec
from scrimp.core.market import GridMethod
from scrimp.estimate.energy.forecast import combined, forecast_energy
from scrimp.estimate.energy.load import load_of
from scrimp.estimate.energy.power import CONSTANTS, node_power


def _time(busy_s: float, waiting_s: float = 0.0, *, sampling_s: float = 0.0) -> TimeForecast:
    total = busy_s + waiting_s + sampling_s
    estimate = Estimate(value=total, low=total * 0.7, high=total * 1.4, basis="test")
    return TimeForecast(
        total_s=estimate,
        train_s=estimate,
        step_s=estimate,
        steps=1,
        tokens_per_s=estimate,
        parts=(
            TimePart(name="download", duration_s=waiting_s),
            TimePart(name="training steps", duration_s=busy_s),
            TimePart(name="samples", duration_s=sampling_s),
        ),
    )


def _energy(make, time, *, device=None, gpus=1, grids="usual", **others):
    grids = (make.GRID,) if grids == "usual" else grids
    return forecast_energy(time, device or make.A100, gpus=gpus, grids=grids, **others)


def test_one_busy_hour_of_one_card(make):
    forecast = _energy(make, _time(3600.0))
    # 400 W x 1.22 for the card's share of the node x PUE 1.15
    assert forecast.energy_kwh.value == pytest.approx(0.4 * 1.22 * 1.15)
    assert forecast.carbon_gco2e.value == pytest.approx(forecast.energy_kwh.value * 396)
    assert "aws us-east-1" in forecast.grid
    # What the card's own counter will show: no building, no rest of the node.
    assert forecast.gpu_kwh.value == pytest.approx(0.4 * 0.85)


@pytest.mark.parametrize(("card", "measured_w"), [("H100-SXM5-80GB", 7157), ("B200-SXM-180GB", 9581)])
def test_eight_card_nodes_draw_what_was_measured(card, measured_w):
    # MLPerf power logs, Llama-2-70B LoRA on one node.
    node = node_power(find_device(card), gpus=8, load="compute")
    assert node.power_w == pytest.approx(measured_w, rel=0.06)
    assert node.power_w * node.low <= measured_w <= node.power_w * node.high
    assert "measured" in node.basis


def test_an_idle_node_draws_a_third():
    h100 = find_device("H100-SXM5-80GB")
    idle = node_power(h100, gpus=8, load="idle")
    # The same logs' minima: 2.3 to 2.5 kW.
    assert 2100 <= idle.power_w <= 2500
    assert idle.power_w / node_power(h100, gpus=8, load="compute").power_w == pytest.approx(1 / 3, abs=0.03)


@pytest.mark.parametrize(("region", "carbon_kg"), [("us-east-1", 1.5), ("eu-north-1", 0.09)])
def test_a_measured_run_emits_seventeen_times_less_in_sweden(region, carbon_kg):
    """MLPerf's 8x H100 LoRA run, 28.13 minutes and 3.36 kWh at the node, in two regions of AWS."""
    grids = grid_factors("aws", region)
    forecast = forecast_energy(_time(28.13 * 60), find_device("H100-SXM5-80GB"), gpus=8, grids=grids)
    assert forecast.energy_kwh.value / grids[0].pue_ratio == pytest.approx(3.36, rel=0.06)
    assert forecast.carbon_gco2e.value / 1000 == pytest.approx(carbon_kg, rel=0.07)
    assert forecast.carbon_gco2e.low / 1000 <= carbon_kg <= forecast.carbon_gco2e.high / 1000
    exact_kg = 3.36 * grids[0].pue_ratio * grids[0].carbon_gco2e_per_kwh / 1000
    assert exact_kg == pytest.approx(carbon_kg, abs=0.05 if carbon_kg > 1 else 0.005)


def test_waiting_and_sampling_draw_less_than_training(make):
    busy, waiting, sampling = (
        _energy(make, time).energy_kwh.value
        for time in (_time(3600.0), _time(0.0, 3600.0), _time(0.0, sampling_s=3600.0))
    )
    assert waiting < sampling < busy
    assert waiting / busy == pytest.approx(CONSTANTS.server["idle"] / CONSTANTS.server["compute"])


def test_desktops_idle_low_but_not_at_nothing():
    card = find_device("RTX4090")
    assert node_power(card, gpus=1, load="idle").power_w >= CONSTANTS.desktop_floor_w
    # Two owners' readings at the wall.
    pair, seven = find_device("RTX3090"), find_device("RTX4090")
    assert node_power(pair, gpus=2, load="compute").power_w == pytest.approx(760, rel=0.05)
    assert 270 <= node_power(seven, gpus=7, load="idle").power_w <= 400


def test_what_nobody_measured_says_so_and_is_wider(make):
    measured = node_power(find_device("H100-SXM5-80GB"), gpus=8, load="compute")
    share = node_power(find_device("H100-SXM5-80GB"), gpus=2, load="compute")
    other = node_power(make.A100, gpus=8, load="compute")
    spread = [node.high / node.low for node in (measured, share, other)]
    assert spread == sorted(spread)
    assert "share" in share.basis
    assert "no node of this kind" in other.basis


def test_unknown_power_is_not_zero_and_its_interval_is_wide(make):
    known = _energy(make, _time(3600.0)).energy_kwh
    unknown = _energy(make, _time(3600.0), device=replace(make.A100, power_w=None)).energy_kwh
    assert unknown.value > 0
    assert unknown.high / unknown.low > known.high / known.low
    assert "not established" in unknown.basis


def test_an_unknown_grid_leaves_the_carbon_unknown(make):
    forecast = _energy(make, _time(3600.0), grids=())
    assert forecast.carbon_gco2e is None
    assert forecast.grid == "unknown"
    assert forecast.energy_kwh.value > 0


def test_the_world_average_says_little_about_one_place(make):
    spread = [
        _energy(make, _time(3600.0), grids=(replace(make.GRID, reach=reach),)).carbon_gco2e
        for reach in ("stated", "region", "country", "world")
    ]
    assert [item.high / item.low for item in spread] == sorted(item.high / item.low for item in spread)


def test_every_way_of_counting_gets_its_own_figure_and_none_is_mixed(make):
    google = replace(make.GRID, method=GridMethod.PROVIDER_OPERATIONAL, carbon_gco2e_per_kwh=323.0)
    forecast = _energy(make, _time(3600.0), grids=(make.GRID, google))
    by_zone = forecast.counted_by(GridMethod.ZONE_CONSUMPTION)
    by_google = forecast.counted_by(GridMethod.PROVIDER_OPERATIONAL)
    assert by_zone.mass_gco2e.value / by_google.mass_gco2e.value == pytest.approx(396 / 323)
    assert forecast.counted_by(GridMethod.STATE_GENERATION) is None
    with pytest.raises(ValueError, match="cannot be compared with"):
        by_zone.is_lighter_than(by_google)
    with pytest.raises(ValueError, match="cannot be added to"):
        by_zone.plus(by_google)


def test_figures_of_one_way_of_counting_are_compared_and_added(make):
    short, long = (_energy(make, _time(seconds)).carbon[0] for seconds in (3600.0, 7200.0))
    assert short.is_lighter_than(long)
    assert not long.is_lighter_than(short)
    assert short.plus(long).value == pytest.approx(3 * short.mass_gco2e.value)
    assert isinstance(short, CarbonForecast)


def test_this_machine_draws_what_the_spec_says_without_overhead(make):
    local = LocalMachineSpec(power_w=60.0, grid_gco2e_per_kwh=100.0)
    forecast = _energy(make, _time(1800.0, 1800.0), device=make.CPU, grids=(), local=local)
    assert forecast.energy_kwh.value == pytest.approx(0.060)
    assert forecast.carbon_gco2e.value == pytest.approx(6.0)
    assert forecast.carbon[0].method == GridMethod.STATED
    assert "spec" in forecast.grid
    assert forecast.gpu_kwh is None


def test_independent_doubts_grow_less_than_they_add_up():
    low, high = combined([(0.8, 1.25), (0.8, 1.25)])
    assert 0.8**2 < low < 0.8
    assert 1.25 < high < 1.25**2
    assert combined([(0.7, 1.4), (1.0, 1.0)]) == pytest.approx((0.7, 1.4))


def test_small_steps_are_launches_and_slow_links_are_waiting(make):
    recipe = make.recipe(micro_batch_tokens=8192)
    full = _rate(make, recipe)
    assert load_of(make.LLAMA_8B, recipe, make.A100, gpus=1, tokens_per_s=full) == "compute"
    assert load_of(make.LLAMA_8B, recipe, make.A100, gpus=8, tokens_per_s=8 * 0.3 * full) == "communication"
    tiny = make.recipe(micro_batch_tokens=64)
    assert load_of(make.LLAMA_8B, tiny, make.A100, gpus=1, tokens_per_s=0.1 * full) == "launch"
    assert load_of(make.LLAMA_8B, recipe, make.CPU, gpus=1, tokens_per_s=1.0) == "compute"


def _rate(make, recipe) -> float:
    """Tokens a second of one card at that micro-batch."""
    from scrimp.estimate.time.forecast import forecast_time
    from scrimp.estimate.time.site import here

    load = make.load(rows=800, row_tokens=2048)
    time = forecast_time(make.LLAMA_8B, recipe, make.A100, gpus=1, load=load, site=here(download_bytes=0.0))
    return time.tokens_per_s.value


@given(busy=st.floats(0, 1e6), waiting=st.floats(0, 1e5), more=st.floats(0, 1e6), gpus=st.integers(1, 8))
@settings(max_examples=100, deadline=None)
def test_more_time_and_more_cards_never_draw_less(make, busy, waiting, more, gpus):
    short, long = (_energy(make, _time(busy + extra, waiting), gpus=gpus).energy_kwh for extra in (0.0, more))
    assert short.value <= long.value * (1 + 1e-12)
    assert short.low <= short.value <= short.high
    assert short.value <= _energy(make, _time(busy, waiting), gpus=gpus + 1).energy_kwh.value
