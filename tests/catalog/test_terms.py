"""Provider terms: units, blanks that stay unknown, and a row for every provider of the snapshot."""

from decimal import Decimal

import pytest

from scrimp.catalog.offers import offers
from scrimp.catalog.table import read_text
from scrimp.catalog.terms import parse_terms, provider_terms
from scrimp.core.errors import ScrimpError

TERMS = provider_terms()
HEADER = read_text("providers.csv").splitlines()[0]


def test_every_provider_of_the_snapshot_has_a_row_with_source_and_date():
    assert {offer.provider for offer in offers()} <= set(TERMS)
    assert all(terms.source and terms.checked for terms in TERMS.values())


def test_units_are_seconds():
    assert (TERMS["aws"].billing_unit_s, TERMS["aws"].billing_minimum_s) == (1.0, 60.0)
    assert TERMS["lambda"].billing_unit_s == 60.0
    assert TERMS["vultr"].billing_unit_s == 3600.0
    assert TERMS["aws"].preemption_notice_s == 120.0
    assert TERMS["runpod"].preemption_notice_s == 5.0
    assert TERMS["aws"].egress_usd_per_gb == Decimal("0.09")


def test_blank_is_not_established_and_zero_is_zero():
    assert TERMS["azure"].billing_unit_s is None
    assert TERMS["ibm"].offers_spot is None
    assert TERMS["lambda"].egress_usd_per_gb == Decimal(0)
    assert TERMS["vast"].egress_usd_per_gb is None


def test_spot_is_yes_no_or_not_established():
    assert TERMS["vast"].offers_spot is True  # "y (bid)"
    assert TERMS["modal"].offers_spot is True  # "preemptible always ..."
    assert TERMS["lambda"].offers_spot is False


def test_engines_say_how_they_get_there():
    assert TERMS["aws"].engines == ("skypilot", "dstack")
    assert TERMS["hyperstack"].engines == ("skypilot (via shadeform)",)
    assert TERMS["salad"].engines == ()


@pytest.mark.parametrize(
    ("column", "value"), [("billing_unit", "fortnight"), ("spot", "perhaps"), ("egress_usd_gb", "free")]
)
def test_a_cell_that_cannot_be_read_is_refused_with_its_line(column, value):
    cells = {"provider": "new", "kind": "specialised", "sources": "page", "checked": "2026-12-01", column: value}
    line = ",".join(cells.get(name, "") for name in HEADER.split(","))
    with pytest.raises(ScrimpError, match=r"p\.csv, line 2"):
        parse_terms(f"{HEADER}\n{line}\n", where="p.csv")
