"""Exact sums of money: every digit of every entry counts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact

from scrimp.core.run import LedgerEntry

# 60 digits hold a billion dollars to 10^-50; should an amount ever need more, Inexact is raised and no digit lost.
_EXACT = Context(prec=60, traps=[Inexact])


def total_usd(amounts: Iterable[Decimal]) -> Decimal:
    """The sum, in any order the same."""
    total = Decimal(0)
    for amount in amounts:
        total = _EXACT.add(total, amount)
    return total


def product_usd(quantity: Decimal, unit_usd: Decimal) -> Decimal:
    """quantity x unit_usd with all digits."""
    return _EXACT.multiply(quantity, unit_usd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """The entries that share one label, added up."""

    label: str
    entries: int
    amount_usd: Decimal


def sums_by(entries: Iterable[LedgerEntry], label_of: Callable[[LedgerEntry], str]) -> tuple[Sum, ...]:
    """One sum for each label, in the labels' order; together they are the total."""
    groups: dict[str, list[Decimal]] = {}
    for entry in entries:
        groups.setdefault(label_of(entry), []).append(entry.amount_usd)
    return tuple(
        Sum(label=label, entries=len(amounts), amount_usd=total_usd(amounts))
        for label, amounts in sorted(groups.items())
    )
