"""What the flags of a price mean: how it was derived, and what to be careful about."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from scrimp.core.market import Market

FORM_ASSUMED = "form_assumed"
PER_GPU_PRICE = "per_gpu_price"
TIMES_ONE = "times_one"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFlag:
    """One flag: a word for tables, its meaning, and the markets whose price it speaks of.

    `doubtful` prices are not quoted as the cheapest of anything.
    """

    word: str
    meaning: str
    markets: tuple[Market, ...] = ("on_demand", "spot")
    doubtful: bool = False


PRICE_FLAGS: Mapping[str, PriceFlag] = MappingProxyType(
    {
        "stale": PriceFlag(word="stale", meaning="list price of 2025-02-24, not seen since", doubtful=True),
        "spot_floor": PriceFlag(
            word="floor",
            meaning="spot at a tenth of on-demand or less, a placeholder in regions without demand: proves no capacity",
            markets=("spot",),
            doubtful=True,
        ),
        "gcp_vcpu_price_missing": PriceFlag(
            word="partial", meaning="the source leaves out the price of vCPUs and RAM", doubtful=True
        ),
        "fractional_gpu": PriceFlag(word="slice", meaning="a slice of one card, in memory and in speed"),
        PER_GPU_PRICE: PriceFlag(
            word="per GPU", meaning="the source gives a price per GPU; the shape of the host is not known"
        ),
        TIMES_ONE: PriceFlag(
            word="times one", meaning="so many times the price of one card, as the provider's terms say it charges"
        ),
        "marketplace_shape_floor": PriceFlag(
            word="market", meaning="cheapest host of the marketplace that day, for a rounded 32 vCPU / 64 GiB shape"
        ),
        "spot_derived": PriceFlag(
            word="derived",
            meaning="on-demand less the saving of AWS's Spot Advisor of 2025-06-28, in whole percent",
            markets=("spot",),
        ),
        "od_us_east_1": PriceFlag(
            word="derived", meaning="list price of us-east-1, equal in every pair seen", markets=("on_demand",)
        ),
        "od_derived": PriceFlag(
            word="derived", meaning="us-east-1 price times the regional ratio of the family", markets=("on_demand",)
        ),
        "gcp_od_sku_corrected": PriceFlag(
            word="corrected",
            meaning="the source carried a reservation price; Google's list price is used",
            markets=("on_demand",),
        ),
        "gcp_od_sku_wrong_blanked": PriceFlag(
            word="unknown",
            meaning="the source carried a reservation price as on-demand; it was left out",
            markets=("on_demand",),
        ),
        "spot_ge_ondemand_dropped": PriceFlag(
            word="no spot",
            meaning="the source's spot price was not below on-demand and was left out",
            markets=("on_demand",),
        ),
        FORM_ASSUMED: PriceFlag(
            word="form?",
            meaning="the source does not say which card of that name (PCIe, SXM ...); the usual one is assumed",
        ),
    }
)


@lru_cache(maxsize=256)
def split_flags(cell: str, extra: tuple[str, ...] = ()) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The flags of a row, as (those of its on-demand price, those of its spot price).

    Raises:
        KeyError: a flag that has no meaning here.
    """
    names = (*(part for part in cell.split(";") if part), *extra)
    on_demand = tuple(name for name in names if "on_demand" in PRICE_FLAGS[name].markets)
    return on_demand, tuple(name for name in names if "spot" in PRICE_FLAGS[name].markets)


def is_doubtful(flags: tuple[str, ...]) -> bool:
    """Whether a price with these flags should not be quoted as the cheapest."""
    return any(PRICE_FLAGS[flag].doubtful for flag in flags if flag in PRICE_FLAGS)
