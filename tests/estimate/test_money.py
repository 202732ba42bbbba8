"""The bill: exact decimals, billing units, unknown prices, and laws."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.core.estimate import Estimate
from scrimp.core.forecast import TimeForecast, TimePart
from scrimp.core.job import LocalMachineSpec
from scrimp.estimate.money import CONSTANTS, Storage, billed_s, forecast_money, price_ratios

NOTHING_STORED = Storage(disk_bytes=0, artefact_bytes=0)


def _time(seconds: float) -> TimeForecast:
    def around(value):
        return Estimate(value=value, low=value * 0.7, high=value * 1.4, basis="test")

    return TimeForecast(
        total_s=around(seconds),
        train_s=around(seconds),
        step_s=around(1.0),
        steps=int(seconds),
        tokens_per_s=around(100.0),
        parts=(TimePart(name="training steps", duration_s=seconds),),
    )


def _bill(make, seconds=7200.0, *, offer=None, terms=None, storage=NOTHING_STORED, today=None):
    return forecast_money(
        _time(seconds), offer or make.OFFER, terms or make.TERMS, storage=storage, today=today or make.TODAY
    )


def test_two_hours_at_two_dollars(make):
    bill = _bill(make)
    assert bill.total_usd.value == Decimal(4)
    assert bill.parts[0].name == "machine"
    assert isinstance(bill.total_usd.low, Decimal)


@pytest.mark.parametrize(("used", "billed"), [(10, 600), (600, 600), (601, 660), (660, 660), (3599.5, 3600)])
def test_time_is_billed_in_units_and_with_a_minimum(make, used, billed):
    assert billed_s(used, make.TERMS) == billed


def test_without_terms_seconds_are_billed(make):
    assert billed_s(10.2, None) == 11


def test_an_unknown_price_makes_no_bill(make):
    assert _bill(make, offer=replace(make.OFFER, price_usd_per_hour=None)) is None


def test_disk_and_egress_are_parts(make):
    terms = replace(make.TERMS, egress_usd_per_gb=Decimal("0.09"))
    bill = _bill(make, seconds=730 * 3600, terms=terms, storage=Storage(disk_bytes=50e9, artefact_bytes=10e9))
    parts = {part.name: part.amount_usd for part in bill.parts}
    assert parts["disk"] == Decimal(5)
    assert parts["egress"] == Decimal("0.9")
    assert bill.total_usd.value == sum(parts.values())


def test_a_price_that_is_not_established_is_no_zero(make):
    terms = replace(make.TERMS, disk_usd_per_gb_month=None, egress_usd_per_gb=None)
    bill = _bill(make, terms=terms, storage=Storage(disk_bytes=100e9, artefact_bytes=1e9))
    assert {part.name for part in bill.parts} == {"machine", "disk", "egress"}
    assert "disk and egress at a usual price" in bill.total_usd.basis


def test_spot_costs_its_list_price_and_says_what_is_left_out(make):
    spot = _bill(make, offer=replace(make.OFFER, market="spot"))
    assert spot.total_usd.value == _bill(make).total_usd.value
    assert "preemptions" in spot.total_usd.basis


def test_an_old_price_widens_more_upwards_than_downwards(make):
    fresh, old, undated = (
        _bill(make, offer=replace(make.OFFER, price_date=day)).total_usd
        for day in (make.TODAY, make.TODAY - timedelta(days=379), None)
    )
    assert fresh.value == old.value == undated.value
    assert old.high == fresh.high * (1 + CONSTANTS.yearly_rise)
    assert old.low == fresh.low * (1 - CONSTANTS.yearly_fall)
    assert fresh.high < undated.high < old.high
    assert "undated" in undated.basis


def test_a_very_old_price_stays_within_reason(make):
    low, high, _ = price_ratios(replace(make.OFFER, price_date=make.TODAY - timedelta(days=5000)), make.TODAY)
    assert low == Decimal("0.5")
    assert high == 2


def test_this_machine_costs_its_price_and_its_electricity(make):
    local = LocalMachineSpec(price_usd_per_hour=Decimal("0.10"), power_w=60.0, electricity_usd_per_kwh=Decimal("0.13"))
    offer = replace(make.OFFER, market="local", price_usd_per_hour=None)
    bill = forecast_money(_time(3600.0), offer, None, storage=NOTHING_STORED, today=make.TODAY, local=local)
    assert {part.name: part.amount_usd for part in bill.parts} == {
        "machine": Decimal("0.10"),
        "electricity": Decimal("0.0078"),
    }
    assert bill.total_usd.value == Decimal("0.1078")
    assert bill.dominant.name == "machine"


def test_the_local_price_is_not_used_for_rented_machines(make):
    bill = forecast_money(
        _time(3600.0), make.OFFER, make.TERMS, storage=NOTHING_STORED, today=make.TODAY, local=LocalMachineSpec()
    )
    assert bill.total_usd.value == Decimal(2)


@given(seconds=st.floats(0, 1e7), more=st.floats(0, 1e7), cents=st.integers(0, 10_000), age=st.integers(0, 3000))
@settings(max_examples=100, deadline=None)
def test_more_time_never_costs_less_and_the_interval_holds(make, seconds, more, cents, age):
    offer = replace(make.OFFER, price_usd_per_hour=Decimal(cents) / 100, price_date=make.TODAY - timedelta(days=age))
    storage = Storage(disk_bytes=80e9, artefact_bytes=2e9)
    short, long = (_bill(make, value, offer=offer, storage=storage).total_usd for value in (seconds, seconds + more))
    assert short.value <= long.value
    assert 0 <= short.low <= short.value <= short.high


@given(seconds=st.floats(0, 1e6))
@settings(max_examples=100, deadline=None)
def test_what_is_billed_is_never_less_than_what_is_used(make, seconds):
    billed = billed_s(seconds, make.TERMS)
    assert billed >= Decimal(str(seconds))
    assert billed % 60 == 0
