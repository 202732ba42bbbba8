"""List the machines for rent: filter, sort, see how old each price is."""

from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from scrimp.cli.options import json_option
from scrimp.core.job import Tier

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import RenderableType

    from scrimp.catalog.offers import OfferQuery
    from scrimp.cli.output import Column
    from scrimp.core.market import Offer
    from scrimp.workflows.offers import OfferListing

T = TypeVar("T")

SORTS = ("price", "gpu-price", "memory-price", "memory", "gpu", "provider", "age")
PIPED_WIDTH = 160
# From this width on ages and places are written out.
WIDE = 110


@click.command()
@click.option("--gpu", "gpus", multiple=True, help="GPU, in any spelling; a100 covers all A100s.")
@click.option("--min-vram", metavar="SIZE", help="GPU memory of the whole machine, at least.")
@click.option("--min-gpu-vram", metavar="SIZE", help="Memory of one GPU, at least.")
@click.option("--count", type=float, metavar="N", help="Exactly so many GPUs.")
@click.option("--max-gpus", type=float, metavar="N", help="At most so many GPUs.")
@click.option("--provider", "providers", multiple=True, help="Provider.")
@click.option("--tier", "tiers", multiple=True, help=f"Kind of provider: {', '.join(get_args(Tier)[:-1])}.")
@click.option("--region", "regions", multiple=True, help='Region, or a glob as "eu-*". any: not bound to one.')
@click.option("--spot/--on-demand", "spot", default=None, help="One market only.")
@click.option("--max-price", metavar="USD", help="Price of the machine for an hour, at most.")
@click.option("--max-gpu-price", metavar="USD", help="Price of one GPU for an hour, at most.")
@click.option("--max-age", metavar="DAYS", help="Age of the price, at most: 90 (days), 12h; undated ones drop out.")
@click.option("--exclude-flag", "exclude_flags", multiple=True, help="Leave out prices with this flag, e.g. stale.")
@click.option("--sort", type=click.Choice(SORTS), default="price", show_default=True, help="Order.")
@click.option("--limit", type=click.IntRange(min=0), default=20, show_default=True, help="How many; 0 for all.")
@json_option
def command(as_json: bool, **options: Any) -> None:
    """List machines for rent out of the shipped price snapshot.

    \b
    scrimp offers --gpu a100              every A100, cheapest machine first
    scrimp offers --min-vram 80 --spot    80 GB or more in all, spot only
    scrimp offers --gpu h100 --count 8 --sort gpu-price
    scrimp offers --provider aws,gcp --region "us-*" --max-price 2
    scrimp offers --tier community --max-age 180d --limit 0

    Several values: repeat the option, or put commas between them. A plain --min-vram is in GB as sold; 75 GiB is
    75 GiB. Prices are of the whole machine; --max-gpu-price is of one card. Offers whose price is not known come last.
    """
    from scrimp.cli.output import print_json, print_note, print_renderables, stdout_console
    from scrimp.workflows.offers import find_offers
    from scrimp.workflows.world import real_world

    query = query_of(options)
    # People read lines, and one line holds equal offers of several regions: there the limit is on lines.
    listing = find_offers(query if as_json else replace(query, limit=None), world=real_world(note=print_note))
    if as_json:
        print_json(document(listing))
        return
    console = stdout_console(piped_width=PIPED_WIDTH)
    print_renderables(*screen(listing, width=console.width, limit=query.limit), console=console)


def query_of(options: dict[str, Any]) -> "OfferQuery":
    """The query that the options mean.

    Raises:
        SpecError: a size, price or age that cannot be read.
    """
    from scrimp.catalog.offers import OfferQuery
    from scrimp.core.units import parse_usd

    spot = options["spot"]
    return OfferQuery(
        gpus=_split(options["gpus"]),
        min_total_memory_bytes=read_option("--min-vram", options["min_vram"], parse_vram, "80 or 75 GiB"),
        min_gpu_memory_bytes=read_option("--min-gpu-vram", options["min_gpu_vram"], parse_vram, "80 or 75 GiB"),
        gpu_count=options["count"],
        max_gpus=options["max_gpus"],
        providers=_split(options["providers"]),
        tiers=_split(options["tiers"]),
        # Regions of marketplaces hold commas themselves.
        regions=options["regions"],
        markets=() if spot is None else ("spot",) if spot else ("on_demand",),
        max_price_usd_per_hour=read_option("--max-price", options["max_price"], parse_usd, "2.50"),
        max_price_usd_per_gpu_hour=read_option("--max-gpu-price", options["max_gpu_price"], parse_usd, "2.50"),
        max_price_age_s=read_option("--max-age", options["max_age"], parse_age_s, "90 or 12h"),
        exclude_flags=_split(options["exclude_flags"]),
        sort=options["sort"],
        limit=options["limit"] or None,
    )


def parse_vram(text: str) -> float:
    """`80` and `80 GB` are what the box says, 80 x 10^9; `75 GiB` is exact."""
    from scrimp.core.units import GB, parse_bytes

    stripped = text.strip()
    return float(stripped) * GB if stripped.replace(".", "", 1).isdigit() else parse_bytes(stripped)


def parse_age_s(text: str) -> float:
    """A plain number is days; `12h` and `90d` are durations."""
    from scrimp.core.units import DAY_S, parse_duration_s

    stripped = text.strip()
    return float(stripped) * DAY_S if stripped.replace(".", "", 1).isdigit() else parse_duration_s(stripped)


def read_option(option: str, text: str | None, parse: "Callable[[str], T]", example: str) -> "T | None":
    """The value that `parse` reads in an option's text, None when the option was not given.

    Raises:
        SpecError: the text cannot be read; `example` shows how it would.
    """
    from scrimp.core.errors import SpecError

    if text is None:
        return None
    try:
        return parse(text)
    except ValueError as error:
        raise SpecError(
            what=f"{option}: {error}", expected=f"such as {example}", next_step="scrimp offers -h"
        ) from error


def _split(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def document(listing: "OfferListing") -> dict[str, Any]:
    """The listing as plain JSON values; every offer also with its price per GPU and its age in days."""
    from scrimp.catalog.offers import price_age_days
    from scrimp.spec.codec import dump

    return {
        "found": listing.found,
        "considered": listing.considered,
        "today": listing.today.isoformat(),
        "prices": dump(listing.prices),
        "offers": [
            {
                **dump(offer),
                "usd_per_gpu_hour": usd_text(offer.usd_per_gpu_hour),
                "price_age_days": price_age_days(offer, today=listing.today),
            }
            for offer in listing.offers
        ],
        "flags": dict(listing.flags),
        "found_without": dict(listing.without),
        "unmapped": [dump(rows) for rows in listing.unmapped],
        "attribution": listing.attribution,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the table: an offer, and how many others differ from it in the region alone."""

    offer: "Offer"
    other_regions: int


def lines_of(offers: "Sequence[Offer]") -> tuple[Line, ...]:
    """Offers of equal price, machine and terms as one line, in the order of their first."""
    counts: dict[Offer, int] = {}
    first: dict[Offer, Offer] = {}
    for offer in offers:
        key = replace(offer, region="")
        first.setdefault(key, offer)
        counts[key] = counts.get(key, 0) + 1
    return tuple(Line(offer=first[key], other_regions=count - 1) for key, count in counts.items())


def screen(listing: "OfferListing", *, width: int, limit: int | None) -> "list[RenderableType]":
    """The table, what was found, what the flags mean, and the attribution."""
    from rich.text import Text

    from scrimp.cli.output import fitted_table

    if not listing.found:
        return [*(Text(line) for line in _nothing(listing)), Text(listing.attribution, style="dim")]
    lines = lines_of(listing.offers)
    shown = lines[:limit]
    table, hidden = fitted_table(columns(shown, today=listing.today, wide=width >= WIDE), width=width)
    below = [_counted(listing, shown=len(shown), lines=len(lines))]
    if hidden:
        below.append(f"not shown at this width: {', '.join(hidden)} (a wider terminal or --json has them)")
    if listing.found == listing.considered and listing.unmapped:
        names = ", ".join(rows.gpu for rows in listing.unmapped)
        left_out = sum(rows.rows for rows in listing.unmapped)
        below.append(f"left out: {left_out} rows of {names}, cards that cannot train (--json tells why)")
    meanings = [f"{word}: {meaning}" for word, meaning in _meanings(shown).items()]
    return [
        table,
        "",
        *(Text(line) for line in below),
        *(Text(line, style="dim") for line in (*meanings, listing.attribution)),
    ]


def columns(lines: "Sequence[Line]", *, today: date, wide: bool) -> "Sequence[Column]":
    """All columns of the offer table, with the order in which they give way on narrow terminals."""
    from scrimp.catalog.offers import age_words, price_age_days
    from scrimp.cli.output import Column
    from scrimp.core.units import GIB

    shown = [line.offer for line in lines]
    memory = [f"{o.total_memory_bytes / GIB:.0f}" for o in shown]
    ages = [age_words(price_age_days(o, today=today), short=not wide) for o in shown]
    return (
        Column(heading="$/h", cells=[usd_words(o.price_usd_per_hour) for o in shown], justify="right"),
        Column(heading="$/GPU-h", cells=[usd_words(o.usd_per_gpu_hour) for o in shown], justify="right", gives_way=5),
        Column(heading="machine", cells=[f"{o.gpu_count:g}x {o.gpu}" for o in shown]),
        Column(heading="GiB", cells=memory, justify="right", gives_way=4),
        Column(heading="provider", cells=[o.provider for o in shown], shrinks_to=9),
        Column(heading="region", cells=[_region(line) for line in lines], shrinks_to=12, gives_way=2),
        Column(heading="market", cells=[market_words(o) for o in shown], gives_way=1),
        Column(heading="age", cells=ages),
        Column(heading="flags", cells=[flag_words(o) for o in shown], shrinks_to=7, gives_way=3),
        Column(heading="tier", cells=[o.tier for o in shown], gives_way=7),
        Column(heading="instance", cells=[o.instance_type for o in shown], shrinks_to=12, gives_way=6),
        Column(heading="host", cells=[_host(o) for o in shown], gives_way=8),
    )


def _region(line: Line) -> str:
    return f"{line.offer.region} +{line.other_regions}" if line.other_regions else line.offer.region


def usd_text(amount: Decimal | None) -> str | None:
    """Dollars for JSON, to the millionth: a third of a card makes endless digits."""
    return None if amount is None else str(round(amount, 6))


def usd_words(amount: Decimal | None) -> str:
    """Dollars of a table whose heading has the sign: `0.34`, `12.29`, `0.0670`; `unknown` is a word of its own."""
    from scrimp.core.units import format_usd

    return "unknown" if amount is None else format_usd(amount).replace("$", "")


def market_words(offer: "Offer") -> str:
    """`on-demand` or `spot`."""
    return offer.market.replace("_", "-")


def flag_words(offer: "Offer") -> str:
    """The flags of a price, each as the word that the legend explains."""
    from scrimp.catalog.flags import PRICE_FLAGS

    return ", ".join(dict.fromkeys(PRICE_FLAGS[flag].word for flag in offer.flags))


def _host(offer: "Offer") -> str:
    from scrimp.core.units import GIB

    if offer.vcpus is None:
        return ""
    memory = "" if offer.host_memory_bytes is None else f" {offer.host_memory_bytes / GIB:.0f} GiB"
    return f"{offer.vcpus:g} vCPU{memory}"


def _meanings(lines: "Sequence[Line]") -> dict[str, str]:
    """The legend of the flags that are shown; flags that share a word share a line."""
    from scrimp.catalog.flags import PRICE_FLAGS

    present = {flag for line in lines for flag in line.offer.flags}
    found: dict[str, str] = {}
    for flag, item in PRICE_FLAGS.items():
        if flag in present:
            found[item.word] = f"{found[item.word]}; or {item.meaning}" if item.word in found else item.meaning
    return found


def _counted(listing: "OfferListing", *, shown: int, lines: int) -> str:
    from scrimp.catalog.offers import age_words

    cut = f"; {shown} of {lines:,} lines shown, --limit 0 shows all" if shown < lines else ""
    prices = listing.prices
    words = f"{listing.found:,} offers match"
    if prices.newest is None or prices.oldest is None:
        return f"{words}, none with a date of its price{cut}"
    age = age_words((listing.today - prices.newest).days)
    undated = f" and {prices.undated_offers:,} without a date" if prices.undated_offers else ""
    return f"{words}, prices of {prices.oldest} to {prices.newest} ({age} old at best){undated}{cut}"


def _nothing(listing: "OfferListing") -> list[str]:
    """What to loosen: the filter whose absence would let most offers through."""
    lines = [f"none of {listing.considered:,} offers match"]
    for name, count in sorted(listing.without.items(), key=lambda item: -item[1]):
        if count:
            lines.append(f"  without --{name}: {count:,} would")
    if len(lines) == 1:
        lines.append("  dropping one filter alone is not enough")
    return lines
