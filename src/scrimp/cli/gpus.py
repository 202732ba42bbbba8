"""List the GPUs of the catalogue and where each is cheapest, or show all that is known of one."""

from typing import TYPE_CHECKING, Any

import click

from scrimp.cli.options import json_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType
    from rich.table import Table

    from scrimp.cli.output import Column
    from scrimp.core.market import Device, Offer
    from scrimp.workflows.gpus import GpuDetails, GpuListing, GpuRow

SORTS = ("price", "spot-price", "memory", "bandwidth", "flops", "power", "flops-per-usd", "name")
PIPED_WIDTH = 160


@click.command()
@click.argument("name", required=False)
@click.option("--vendor", help="NVIDIA, AMD or Intel.")
@click.option("--class", "device_class", help="Class of cards that reach the same share of their peak, as dc_ampere.")
@click.option("--min-memory", metavar="SIZE", help="Memory, at least: 24 (GB as sold) or 22 GiB.")
@click.option("--bf16", is_flag=True, help="Only cards with bf16.")
@click.option("--offered", is_flag=True, help="Only cards that the price snapshot has an offer of.")
@click.option("--sort", type=click.Choice(SORTS), default="price", show_default=True, help="Order.")
@click.option("--limit", type=click.IntRange(min=0), default=0, help="How many; 0 for all.")
@json_option
def command(name: str | None, as_json: bool, **options: Any) -> None:
    """List the GPUs of the catalogue, or show everything about the one called NAME, in any spelling.

    \b
    scrimp gpus                                all, the cheapest to rent first
    scrimp gpus --min-memory 40 --bf16         for models that need room
    scrimp gpus --sort flops-per-usd --limit 10
    scrimp gpus 4090                           one card: rates, sources, offers
    scrimp gpus "h100 pcie" --json

    Prices are of one whole card for an hour, on-demand and spot, from the cheapest machine that has it. Serverless
    functions, slices of a card and doubtful prices are left out here; scrimp offers has them.
    """
    from scrimp.cli.output import print_json, print_note, print_renderables, stdout_console
    from scrimp.workflows.gpus import GpuQuery, describe_gpu, list_gpus
    from scrimp.workflows.world import real_world

    world = real_world(note=print_note)
    console = stdout_console(piped_width=PIPED_WIDTH)
    if name:
        details = describe_gpu(name, world=world)
        if as_json:
            print_json(details_document(details))
        else:
            print_renderables(*details_screen(details), console=console)
        return
    query = GpuQuery(
        vendor=options["vendor"],
        device_class=options["device_class"],
        min_memory_bytes=_memory(options["min_memory"]),
        bf16=options["bf16"],
        offered=options["offered"],
        sort=options["sort"],
        limit=options["limit"] or None,
    )
    listing = list_gpus(query, world=world)
    if as_json:
        print_json(document(listing))
    else:
        print_renderables(*screen(listing, width=console.width), console=console)


def _memory(text: str | None) -> float | None:
    from scrimp.cli.offers import parse_vram, read_option

    return read_option("--min-memory", text, parse_vram, "24 or 22 GiB")


def document(listing: "GpuListing") -> dict[str, Any]:
    """The listing as plain JSON values."""
    return {
        "found": listing.found,
        "today": listing.today.isoformat(),
        "gpus": [_row_document(row) for row in listing.rows],
        "attribution": listing.attribution,
    }


def details_document(details: "GpuDetails") -> dict[str, Any]:
    """One card as plain JSON values: the noun, its row as written, its cheapest offers."""
    from scrimp.spec.codec import dump

    return {
        **dump(details.device),
        "row": dict(details.cells),
        "offers": details.offers,
        "cheapest": {
            "on_demand": [dump(offer) for offer in details.on_demand],
            "spot": [dump(offer) for offer in details.spot],
        },
        "today": details.today.isoformat(),
        "attribution": details.attribution,
    }


def _row_document(row: "GpuRow") -> dict[str, Any]:
    from scrimp.spec.codec import dump

    cheapest = {"on_demand": row.on_demand, "spot": row.spot}
    return {**dump(row.device), "cheapest": {market: _price_document(offer) for market, offer in cheapest.items()}}


def _price_document(offer: "Offer | None") -> dict[str, Any] | None:
    from scrimp.cli.offers import usd_text
    from scrimp.spec.codec import dump

    return None if offer is None else {**dump(offer), "usd_per_gpu_hour": usd_text(offer.usd_per_gpu_hour)}


def screen(listing: "GpuListing", *, width: int) -> "list[RenderableType]":
    """The table, the count and the attribution."""
    from rich.text import Text

    from scrimp.cli.offers import WIDE
    from scrimp.cli.output import fitted_table

    if not listing.rows:
        return [Text("no GPU of the catalogue meets these filters; scrimp gpus lists all")]
    table, hidden = fitted_table(columns(listing.rows, wide=width >= WIDE), width=width)
    below = [f"{len(listing.rows)} of {listing.found} GPUs" if len(listing.rows) < listing.found else _counted(listing)]
    if hidden:
        below.append(f"not shown at this width: {', '.join(hidden)} (a wider terminal or --json has them)")
    return [table, "", *(Text(line) for line in below), Text(listing.attribution, style="dim")]


def columns(rows: "Sequence[GpuRow]", *, wide: bool) -> "Sequence[Column]":
    """All columns of the GPU table, with the order in which they give way on narrow terminals."""
    from scrimp.cli.output import Column
    from scrimp.core.units import GB, GIB, TFLOPS

    cards = [row.device for row in rows]
    on_demand, spot = [row.on_demand for row in rows], [row.spot for row in rows]
    return (
        Column(heading="GPU", cells=[card.name for card in cards]),
        Column(heading="GiB", cells=[f"{card.memory_bytes / GIB:.1f}" for card in cards], justify="right"),
        Column(
            heading="GB/s", cells=[_in(card.bandwidth_bytes_per_s, GB) for card in cards], justify="right", gives_way=3
        ),
        Column(heading="TFLOPS", cells=[_tflops(card, TFLOPS) for card in cards], justify="right"),
        Column(heading="W", cells=[_in(card.power_w, 1) for card in cards], justify="right", gives_way=4),
        Column(heading="class", cells=[card.device_class for card in cards], gives_way=5),
        Column(heading="$/h", cells=[_price(offer) for offer in on_demand], justify="right"),
        Column(heading="at", cells=[_where(offer, region=wide) for offer in on_demand], shrinks_to=9, gives_way=2),
        Column(heading="spot $/h", cells=[_price(offer) for offer in spot], justify="right"),
        Column(heading="at", cells=[_where(offer, region=wide) for offer in spot], shrinks_to=9, gives_way=1),
    )


def details_screen(details: "GpuDetails") -> "list[RenderableType]":
    """Rates, features, what was written in the row, cheapest offers, sources and flags."""
    from rich.text import Text

    card = details.device
    parts: list[RenderableType] = [
        Text(f"{card.name}  {card.vendor} {card.architecture}, class {card.device_class}", style="bold"),
        _facts(details),
    ]
    for title, offers in (("cheapest on-demand", details.on_demand), ("cheapest spot", details.spot)):
        if offers:
            parts += ["", Text(f"{title}, a card for an hour", style="bold"), _offers(offers, details)]
    if not details.offers:
        parts += ["", Text("the price snapshot has no offer of this card")]
    parts += ["", Text("source", style="bold"), Text(card.source)]
    if card.flags:
        parts += ["", Text("to know", style="bold"), *(Text(f"- {flag}") for flag in card.flags)]
    if details.offers:
        parts += ["", Text(f"{details.offers} offers in all: scrimp offers --gpu {card.name}")]
        parts.append(Text(details.attribution, style="dim"))
    return parts


def _facts(details: "GpuDetails") -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for label, value in _fact_rows(details):
        table.add_row(label, value)
    return table


def _fact_rows(details: "GpuDetails") -> "list[tuple[str, str]]":
    from scrimp.core.units import GIB

    card, cells = details.device, details.cells
    driver = cells["vram_usable_source"]
    sold = f"{cells['vram_gb_nominal']} GB {cells['memory_type']}"
    return [
        ("memory", f"{card.memory_bytes / GIB:.2f} GiB of {sold} ({driver})"),
        ("bandwidth", f"{cells['memory_bandwidth_gb_s']} GB/s"),
        ("16-bit tensor", f"{cells['bf16_fp16_dense_tflops']} TFLOPS {cells['tflops_basis']}"),
        ("verified by", f"{cells['tensor_verified']}: {cells['tensor_source']}"),
        ("SM x clock", cells["tflops_check_sm_clock"] or "not worked out"),
        ("fp8", f"{cells['fp8_dense_tflops']} TFLOPS dense" if cells["fp8_dense_tflops"] else "none"),
        ("int8", f"{cells['int8_dense_tops']} TOPS dense" if cells["int8_dense_tops"] else "not established"),
        ("fp32", f"{cells['fp32_tflops']} TFLOPS" if cells["fp32_tflops"] else "not established"),
        ("power", f"{cells['tdp_w']} W"),
        ("GPU link", f"{cells['nvlink_gb_s']} GB/s" if cells["nvlink_gb_s"] not in ("", "0") else "none"),
        ("PCIe", cells["pcie"]),
        ("bf16", "yes" if card.supports_bf16 else "no"),
        ("FlashAttention 2", _yes_no(cells["flash_attention_2"])),
        ("compute capability", cells["compute_capability"]),
        ("also called", ", ".join(card.aliases) or "-"),
    ]


def _yes_no(cell: str) -> str:
    """`y (ROCm)` as `yes (ROCm)`."""
    return {"y": "yes", "n": "no"}[cell[0]] + cell[1:]


def _offers(offers: "Sequence[Offer]", details: "GpuDetails") -> "Table":
    from rich.table import Table

    from scrimp.catalog.offers import age_words, price_age_days
    from scrimp.cli.offers import flag_words, usd_words

    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for justify in ("right", "left", "left", "left", "left"):
        table.add_column(justify=justify, no_wrap=True)  # type: ignore[arg-type] # a literal by construction
    for offer in offers:
        age = age_words(price_age_days(offer, today=details.today))
        machine = f"{offer.gpu_count:g}x"
        table.add_row(
            f"${usd_words(offer.usd_per_gpu_hour)}", machine, _where(offer, region=True), age, flag_words(offer)
        )
    return table


def _counted(listing: "GpuListing") -> str:
    return f"{listing.found} GPUs; TFLOPS are dense 16-bit with fp32 accumulation, * fp16 where the card has no bf16"


def _in(number: float | None, unit: float) -> str:
    return "?" if number is None else f"{number / unit:,.0f}"


def _tflops(card: "Device", unit: float) -> str:
    return f"{_in(card.bf16_flops, unit)}{' ' if card.supports_bf16 else '*'}"


def _price(offer: "Offer | None") -> str:
    from scrimp.cli.offers import usd_words

    return "-" if offer is None else usd_words(offer.usd_per_gpu_hour)


def _where(offer: "Offer | None", *, region: bool) -> str:
    if offer is None:
        return ""
    return f"{offer.provider} {offer.region}" if region and offer.region != "any" else offer.provider
