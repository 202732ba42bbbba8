"""Electricity and carbon: the measured nodes, unknowns that are not zero, and laws."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.core.estimate import Estimate
from scrimp.core.forecast import TimeForecast, TimePart
from scrimp.core.job import LocalMachineSpec
from scrimp.estimate.energy import CONSTANTS, forecast_energy, node_power


def _time(busy_s: float, waiting_s: float = 0.0) -> TimeForecast:
    total = busy_s + waiting_s
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
        ),
    )


def _energy(make, time, *, device=None, gpus=1, grid="usual", local=None):
    return forecast_energy(
        time, device or make.A100, gpus=gpus, grid=make.GRID if grid == "usual" else grid, local=local
    )


def test_one_busy_hour_of_one_card(make):
    forecast = _energy(make, _time(3600.0))
    # 400 W x 1.25 for the whole node x PUE 1.15
    assert forecast.energy_kwh.value == pytest.approx(0.4 * 1.25 * 1.15)
    assert forecast.carbon_gco2e.value == pytest.approx(forecast.energy_kwh.value * 396)
    assert "aws us-east-1" in forecast.grid


def test_the_eight_card_node_draws_what_was_measured(make):
    # MLPerf power log: 7,157 W, 8x H100 of 700 W, Llama-2-70B LoRA on one node.
    node = node_power(replace(make.A100, power_w=700.0), gpus=8)
    assert node.power_w == pytest.approx(7157, rel=0.05)
    assert node.power_w * node.low <= 7157 <= node.power_w * node.high


def test_a_waiting_machine_draws_a_third(make):
    busy, waiting = _energy(make, _time(3600.0)), _energy(make, _time(0.0, 3600.0))
    assert waiting.energy_kwh.value == pytest.approx(busy.energy_kwh.value * CONSTANTS.idle_share)


def test_unknown_power_is_not_zero_and_its_interval_is_wide(make):
    known = _energy(make, _time(3600.0)).energy_kwh
    unknown = _energy(make, _time(3600.0), device=replace(make.A100, power_w=None)).energy_kwh
    assert unknown.value > 0
    assert unknown.high / unknown.low > known.high / known.low
    assert "not established" in unknown.basis


def test_an_unknown_grid_leaves_the_carbon_unknown(make):
    forecast = _energy(make, _time(3600.0), grid=None)
    assert forecast.carbon_gco2e is None
    assert forecast.grid == "unknown"
    assert forecast.energy_kwh.value > 0


def test_the_world_average_says_little_about_one_place(make):
    place = _energy(make, _time(3600.0)).carbon_gco2e
    world = _energy(make, _time(3600.0), grid=replace(make.GRID, place="world average")).carbon_gco2e
    assert world.high / world.low > place.high / place.low


def test_this_machine_draws_what_the_spec_says_without_overhead(make):
    local = LocalMachineSpec(power_w=60.0, grid_gco2e_per_kwh=100.0)
    forecast = _energy(make, _time(1800.0, 1800.0), device=make.CPU, grid=None, local=local)
    assert forecast.energy_kwh.value == pytest.approx(0.060)
    assert forecast.carbon_gco2e.value == pytest.approx(6.0)
    assert "spec" in forecast.grid


@given(busy=st.floats(0, 1e6), waiting=st.floats(0, 1e5), more=st.floats(0, 1e6), gpus=st.integers(1, 8))
@settings(max_examples=100, deadline=None)
def test_more_time_and_more_cards_never_draw_less(make, busy, waiting, more, gpus):
    short, long = (_energy(make, _time(busy + extra, waiting), gpus=gpus).energy_kwh for extra in (0.0, more))
    assert short.value <= long.value * (1 + 1e-12)
    assert short.low <= short.value <= short.high
    assert short.value <= _energy(make, _time(busy, waiting), gpus=gpus + 1).energy_kwh.value
