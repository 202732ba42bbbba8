"""Sums by label are exact and together make the total."""

from decimal import Decimal, Inexact

import pytest

from scrimp.ledger.sums import product_usd, sums_by, total_usd


def test_tenths_stay_tenths():
    assert total_usd([Decimal("0.1")] * 10) == 1


def test_a_digit_is_never_dropped_silently():
    with pytest.raises(Inexact):
        total_usd([Decimal("1e50"), Decimal("1e-50")])
    with pytest.raises(Inexact):
        product_usd(Decimal("1." + "1" * 40), Decimal("1." + "1" * 40))


def test_groups_add_up_to_the_total(nouns):
    entries = [nouns.priced(str(i), f"0.{i}", project="ab"[i % 2]) for i in range(1, 8)]
    sums = sums_by(entries, lambda entry: entry.project)
    assert [(item.label, item.entries, item.amount_usd) for item in sums] == [
        ("a", 3, Decimal("1.2")),
        ("b", 4, Decimal("1.6")),
    ]
    assert total_usd(item.amount_usd for item in sums) == total_usd(entry.amount_usd for entry in entries)
