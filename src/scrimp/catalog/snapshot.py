"""The price snapshot: rows of `data/gpu_prices.csv` to Offers, one for each market a row has a price in.

How a row finds its card, in this order:
1. the provider's own name for it (`H100@fluidstack` among the aliases of `gpus.csv` is the PCIe card);
2. the row says SXM, PCIE, NVL ...: the card of that name, form and memory;
3. no form, but the provider lists an SXM row of the same GPU and memory apart: the unmarked row is the PCIe card;
4. no form: the card that the bare name means (`H100` the SXM card).
Memory must agree with the card's nominal memory within 10% (B200 is sold as 180 and as 192 GB), and then what the
driver reports counts, not what is sold. Where 3 or 4 chose between forms the offer carries the flag form_assumed.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import NamedTuple, cast, get_args

from scrimp.catalog.devices import DeviceTable
from scrimp.catalog.flags import FORM_ASSUMED, split_flags
from scrimp.catalog.names import squeeze, stands_for
from scrimp.catalog.table import refusal
from scrimp.core.job import Tier
from scrimp.core.market import Device, Market, Offer
from scrimp.core.units import GIB

HEADER = (
    "provider,tier,region,instance_type,gpu,gpu_form,gpu_count,gpu_mem_gib,vcpus,mem_gib,"
    "price_hr,spot_hr,price_src,price_date,spot_src,spot_date,flags"
)
_CELLS = HEADER.count(",") + 1
MEMORY_TOLERANCE = 0.10
_TIERS = frozenset(get_args(Tier))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmappedRows:
    """Rows of the snapshot whose GPU is not in the catalogue, and why."""

    gpu: str
    memory_gib: float
    providers: tuple[str, ...]
    rows: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that the price file holds."""

    offers: tuple[Offer, ...]
    unmapped: tuple[UnmappedRows, ...]


class CardName(NamedTuple):
    """How a row names its card; rows that agree in this are the same card."""

    provider: str
    gpu: str
    form: str
    memory_gib: str


def parse_snapshot(text: str, *, where: str, table: DeviceTable, reasons: Mapping[str, str]) -> Snapshot:
    """Every offer of the CSV text. `reasons` says, by the key of its name, why a GPU has no row in the device table.

    A blank on-demand price is a price that is not known and stays as None; a blank spot price is no spot offer.

    Raises:
        ScrimpError: a header, number, date, tier or flag that cannot be read; names the line.
    """
    header, _, body = text.partition("\n")
    if header.strip() != HEADER:
        raise refusal(where, 1, what="the header is not that of a price snapshot", expected=HEADER)
    rows = list(csv.reader(body.splitlines()))
    marked_sxm = frozenset((r[0], r[4], r[7]) for r in rows if len(r) == _CELLS and r[5] == "SXM")
    cards: dict[CardName, tuple[Device, tuple[str, ...]] | None] = {}
    offers: list[Offer] = []
    unmapped: dict[CardName, int] = {}
    for number, row in enumerate(rows, start=2):
        try:
            if len(row) != _CELLS:
                raise ValueError(f"{len(row)} cells under {_CELLS} headings")
            name = CardName(row[0], row[4], row[5], row[7])
            if name not in cards:
                cards[name] = find_card(name, table=table, marked_sxm=marked_sxm)
            card = cards[name]
            if card is None:
                unmapped[name] = unmapped.get(name, 0) + 1
                continue
            _add_offers(offers, row, card=card)
        except (ValueError, KeyError, InvalidOperation) as error:
            raise refusal(
                where, number, what=f"{type(error).__name__}: {error}", expected="a row as the file's README tells"
            ) from error
    return Snapshot(offers=tuple(offers), unmapped=_unmapped(unmapped, reasons=reasons))


def find_card(
    name: CardName, *, table: DeviceTable, marked_sxm: frozenset[tuple[str, str, str]]
) -> tuple[Device, tuple[str, ...]] | None:
    """The card of a row and the flags that the choice adds, or None when the catalogue has no such card."""
    memory_gib = float(name.memory_gib)
    own = table.names.of_provider.get((squeeze(name.gpu), name.provider)) or table.names.of_provider.get(
        (squeeze(f"{name.gpu}-{name.memory_gib}GB"), name.provider)
    )
    if own and not name.form and _memory_agrees(table, own, memory_gib):
        return table.devices[own], ()
    if name.form:
        found = _first(table, _spellings(name.gpu, name.form, name.memory_gib), memory_gib=memory_gib)
        return (table.devices[found], ()) if found and not _contradicts(found, name.form) else None
    forms = [n for n in table.devices if _memory_agrees(table, n, memory_gib) and stands_for(name.gpu, n)]
    form = "PCIE" if len(forms) > 1 and (name.provider, name.gpu, name.memory_gib) in marked_sxm else ""
    found = _first(table, _spellings(name.gpu, form, name.memory_gib), memory_gib=memory_gib)
    return (table.devices[found], (FORM_ASSUMED,) if len(forms) > 1 else ()) if found else None


def _spellings(gpu: str, form: str, memory_gib: str) -> tuple[str, ...]:
    """From the most to the least that a spelling says."""
    if not form:
        return (f"{gpu}-{memory_gib}GB", gpu)
    memory = f"{memory_gib}GB"
    return (f"{gpu}-{form}-{memory}", f"{gpu}-{memory}-{form}", f"{gpu}-{form}", f"{gpu}-{memory}", gpu)


def _first(table: DeviceTable, spellings: tuple[str, ...], *, memory_gib: float) -> str | None:
    for spelling in spellings:
        found = table.names.common.get(squeeze(spelling))
        if found and _memory_agrees(table, found, memory_gib):
            return found
    return None


def _memory_agrees(table: DeviceTable, device: str, memory_gib: float) -> bool:
    return abs(memory_gib / table.nominal_gb[device] - 1) <= MEMORY_TOLERANCE


def _contradicts(device: str, form: str) -> bool:
    """A row that says PCIE must not fall back to a card whose name says SXM, and so on."""
    said = {mark for mark in ("SXM", "PCIE", "NVL") if mark in device.upper()}
    return bool(said) and form in {"SXM", "PCIE", "NVL"} and form not in said


def _add_offers(offers: list[Offer], row: list[str], *, card: tuple[Device, tuple[str, ...]]) -> None:
    (provider, tier, region, instance, _, form, count, _, vcpus, memory, price, spot) = row[:12]
    (price_source, price_date, spot_source, spot_date, flags) = row[12:]
    device, assumed = card
    if tier not in _TIERS:
        raise ValueError(f'tier "{tier}" is none of {", ".join(sorted(_TIERS))}')
    on_demand_flags, spot_flags = split_flags(flags, assumed)
    markets: list[tuple[Market, Decimal | None, str, str, tuple[str, ...]]] = [
        ("on_demand", _money(price) if price else None, price_source, price_date, on_demand_flags)
    ]
    if spot:
        markets.append(("spot", _money(spot), spot_source, spot_date, spot_flags))
    for market, amount, source, day, kept in markets:
        offers.append(
            Offer(
                provider=provider,
                tier=cast(Tier, tier),
                region=region,
                instance_type=instance,
                gpu=device.name,
                gpu_form=form,
                gpu_count=_count(count),
                gpu_memory_bytes=device.memory_bytes,
                vcpus=_host(vcpus),
                host_memory_bytes=_host_bytes(memory),
                market=market,
                price_usd_per_hour=amount,
                price_source=source,
                price_date=_day(day),
                flags=kept,
            )
        )


# Prices, dates and counts repeat from region to region: parsing each text once is most of the speed here.
@lru_cache(maxsize=8192)
def _money(text: str) -> Decimal:
    amount = Decimal(text)
    if not amount > 0:
        raise ValueError(f'price "{text}" is not above zero')
    return amount


@lru_cache(maxsize=512)
def _day(text: str) -> date | None:
    return date.fromisoformat(text) if text else None


@lru_cache(maxsize=256)
def _count(text: str) -> float:
    count = float(text)
    if not count > 0:
        raise ValueError(f'gpu_count "{text}" is not above zero')
    return count


@lru_cache(maxsize=1024)
def _host(text: str) -> float | None:
    return float(text) if text else None


@lru_cache(maxsize=1024)
def _host_bytes(text: str) -> int | None:
    return round(float(text) * GIB) if text else None


def _unmapped(found: Mapping[CardName, int], *, reasons: Mapping[str, str]) -> tuple[UnmappedRows, ...]:
    gathered: dict[tuple[str, str], dict[str, int]] = {}
    for name, rows in found.items():
        gathered.setdefault((name.gpu, name.memory_gib), {})[name.provider] = rows
    return tuple(
        UnmappedRows(
            gpu=gpu,
            memory_gib=float(memory_gib),
            providers=tuple(sorted(by_provider)),
            rows=sum(by_provider.values()),
            reason=reasons.get(squeeze(gpu), "no card of that name, form and memory in gpus.csv"),
        )
        for (gpu, memory_gib), by_provider in sorted(gathered.items())
    )
