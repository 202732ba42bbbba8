"""Printing and parsing of quantities."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrimp.core import units


@pytest.mark.parametrize(
    ("text", "seconds"), [("12h", 43200), ("90m", 5400), ("90 min", 5400), ("1d 6h", 108000), ("45s", 45), ("60", 60)]
)
def test_durations_people_write(text, seconds):
    assert units.parse_duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "12 hours later", "h", "-3h", "1w"])
def test_no_durations(text):
    with pytest.raises(ValueError, match="not a duration"):
        units.parse_duration_s(text)


@pytest.mark.parametrize("text", ["5", "5 USD", "$5", "5usd", "5.00 usd"])
def test_money_people_write(text):
    assert units.parse_usd(text) == 5


@pytest.mark.parametrize("text", ["", "five", "5 EUR", "-5", "1,000", "$"])
def test_no_money(text):
    with pytest.raises(ValueError, match="not an amount"):
        units.parse_usd(text)


def test_floats_become_the_decimals_that_people_see():
    assert units.usd(0.1) == Decimal("0.1")


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "$0.00"), ("1234.5", "$1,234.50"), ("-3", "-$3.00"), ("0.5", "$0.50"), ("0.0123", "$0.012"),
        ("0.00456", "$0.0046"), ("0.000001", "<$0.00001"), ("0.999", "$1.00"),
    ],
)  # fmt: skip
def test_money_is_printed_with_the_digits_that_say_something(amount, text):
    assert units.format_usd(Decimal(amount)) == text


@given(st.decimals(min_value="0.01", max_value="1000000", places=2))
def test_printed_money_is_never_off_by_more_than_half_a_cent_or_five_percent(amount):
    shown = Decimal(units.format_usd(amount).replace("$", "").replace(",", ""))
    assert abs(shown - amount) <= max(Decimal("0.005"), amount * Decimal("0.05"))


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (24 * units.GIB, "24.0 GiB"), (27.1 * units.GIB, "27.1 GiB")]
)
def test_sizes_are_binary(size, text):
    assert units.format_bytes(size) == text


def test_gb_and_gib_are_different():
    assert units.parse_bytes("80 GB") == 80 * 10**9
    assert units.parse_bytes("80GiB") == 80 * 2**30
    with pytest.raises(ValueError, match="24 GiB"):
        units.parse_bytes("much")


@given(st.floats(min_value=0.001, max_value=1e9))
def test_printed_durations_parse_back_to_within_a_percent(duration_s):
    text = units.format_duration(duration_s).replace(" ", "").replace(",", "")
    assert units.parse_duration_s(text) == pytest.approx(duration_s, rel=0.01, abs=0.01)


@pytest.mark.parametrize(
    ("number", "text"),
    [(950, "950"), (9999, "9,999"), (12_400, "12.4 k"), (4_880_000, "4.88 M"), (1.2e9, "1.20 B"), (7e13, "70.0 T")],
)
def test_counts(number, text):
    assert units.format_count(number) == text


def test_energy_and_carbon():
    assert units.format_energy(0.0032) == "3.20 Wh"
    assert units.format_energy(1.79) == "1.79 kWh"
    assert units.format_co2(1500) == "1.50 kg"


@pytest.mark.parametrize(
    ("low_s", "high_s", "like_s", "text"),
    [
        (5040, 10440, 7560, "1.40-2.90"),
        (71.3, 618, 217, "1.19-10.3"),
        (10, 80, 40, "10.0-80.0"),
        (3600, 864000, 300000, "0.04-10.0"),
    ],
)
def test_a_range_stands_in_the_unit_of_the_value_beside_it(low_s, high_s, like_s, text):
    assert units.format_duration_range(low_s, high_s, like_s=like_s) == text


@pytest.mark.parametrize(
    ("name", "number", "text"),
    [
        ("peak_bytes", 3.45 * 2**30, "3.45 GiB"),
        ("cost_usd", 0.0123, "$0.012"),
        ("cost_usd", 0, "$0.00"),
        ("energy_kwh", 0.0032, "3.20 Wh"),
        ("train_s", 140.0, "2.33 min"),
        ("rows", 1234.0, "1,234"),
    ],
)
def test_a_quantity_stands_in_the_unit_its_name_ends_in(name, number, text):
    assert units.format_quantity(name, number) == text


def test_a_count_says_one_or_several():
    assert units.format_count_of(1, "step") == "1 step"
    assert units.format_count_of(0, "step") == "0 steps"
    assert units.format_count_of(12_400, "warm-up step") == "12.4 k warm-up steps"
    assert (units.plural(1, "row"), units.plural(2, "row")) == ("row", "rows")
