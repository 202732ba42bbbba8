"""How providers bill and what they warn of: rows of `data/providers.csv`."""

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from types import MappingProxyType

from scrimp.catalog.table import Row, read_rows, read_text
from scrimp.core.market import ProviderTerms
from scrimp.core.units import HOUR_S, MINUTE_S

TABLE = "providers.csv"
_ENGINES = ("skypilot", "dstack")
_UNIT_S = {"second": 1.0, "minute": float(MINUTE_S), "hour": float(HOUR_S)}
_COLUMNS = ("provider", "kind", "billing_unit", "billing_min_s", "spot", "preempt_notice_s", "sources", "checked")


@lru_cache(maxsize=1)
def provider_terms() -> Mapping[str, ProviderTerms]:
    """Terms of every provider by its name in the snapshot; a None is not established."""
    return parse_terms(read_text(TABLE), where=TABLE)


def parse_terms(text: str, *, where: str) -> Mapping[str, ProviderTerms]:
    """The terms out of their CSV text.

    Raises:
        ScrimpError: a cell that cannot be read; names the line.
    """
    found = {row.required("provider"): _terms(row) for row in read_rows(text, where=where, columns=_COLUMNS)}
    return MappingProxyType(found)


def _terms(row: Row) -> ProviderTerms:
    return ProviderTerms(
        provider=row.required("provider"),
        kind=row.required("kind"),
        billing_unit_s=_unit_s(row),
        billing_minimum_s=row.number("billing_min_s"),
        offers_spot=_offers_spot(row),
        preemption_notice_s=row.number("preempt_notice_s"),
        billed_when_stopped=row.text("billed_when_stopped") or None,
        disk_usd_per_gb_month=_money(row, "disk_usd_gb_month"),
        object_usd_per_gb_month=_money(row, "object_usd_gb_month"),
        egress_usd_per_gb=_money(row, "egress_usd_gb"),
        startup_s=row.number("startup_s"),
        engines=tuple(_engine(name, row.text(name)) for name in _ENGINES if row.text(name) not in ("", "n")),
        source=row.required("sources"),
        checked=row.day("checked"),
        most_gpus=None if (most := row.number("most_gpus")) is None else int(most),
    )


def _unit_s(row: Row) -> float | None:
    unit = row.text("billing_unit")
    if unit and unit not in _UNIT_S:
        raise row.refuse(f'billing_unit is "{unit}"', expected="second, minute, hour, or nothing when not established")
    return _UNIT_S.get(unit)


def _offers_spot(row: Row) -> bool | None:
    """`y (bid)` and `preemptible always` offer it, `n` does not, an empty cell is not established."""
    cell = row.text("spot")
    if not cell:
        return None
    if cell[0] in "yn" or cell.startswith("preemptible"):
        return cell[0] != "n"
    raise row.refuse(f'spot is "{cell}"', expected="y, n or preemptible first, words after it")


def _engine(name: str, cell: str) -> str:
    """`y` is the engine itself; `via shadeform` says how it gets there."""
    return name if cell.startswith("y") else f"{name} ({cell})"


def _money(row: Row, column: str) -> Decimal | None:
    row.number(column)
    return Decimal(row.text(column)) if row.text(column) else None
