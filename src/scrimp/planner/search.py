"""Search: every method on every machine of every offer, each forecast once; limits are not looked at here."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from scrimp.core.market import Offer
from scrimp.core.plan import Candidate, PriceAge, Rejected, Relief
from scrimp.planner.market import is_stale, sift
from scrimp.planner.question import Forecaster, MarketFacts, Workload
from scrimp.planner.recipes import Fit, Unfit, method_choices, search_recipe
from scrimp.planner.relief import find_relief


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """All candidates that fit, in no order, whatever they cost; and the classes of those that do not."""

    candidates: tuple[Candidate, ...]
    rejected: tuple[Rejected, ...]
    considered_offers: int
    prices: PriceAge


def search(workload: Workload, facts: MarketFacts, forecaster: Forecaster) -> Found:
    """Try methods x machines x offers.

    A recipe is searched once for each (method, machine), and only the cheapest of the offers that differ in nothing but
    place and instance becomes a candidate; the others are counted as dominated.

    Raises:
        UnknownNameError, SpecError: a name or a method's option that does not exist.
    """
    sifted = sift(workload.spec.market, facts)
    candidates: list[Candidate] = []
    unfit: list[tuple[Unfit, int]] = []
    best = {machine: cheapest_of_each(offers, facts.today) for machine, offers in sifted.machines.items()}
    for choice in method_choices(workload.spec.method):
        for machine, offers in sifted.machines.items():
            found = search_recipe(workload, choice, machine, forecaster)
            if isinstance(found, Fit):
                relief = () if found.comfortable else _relief(workload, found, forecaster)
                candidates += [
                    made for offer in best[machine] if (made := _candidate(found, offer, relief, forecaster))
                ]
            else:
                unfit.append((found, len(offers)))
    dearer = sum(len(offers) for offers in sifted.machines.values()) - sum(len(offers) for offers in best.values())
    return Found(
        candidates=tuple(candidates),
        rejected=(*_nearest_first(workload, unfit, forecaster), *_dominated(dearer), *sifted.rejected),
        considered_offers=sifted.considered_offers,
        prices=sifted.prices,
    )


def cheapest_of_each(offers: Iterable[Offer], today: date) -> tuple[Offer, ...]:
    """Of offers of one machine, the cheapest of each provider and market; a stale price never hides a fresh one."""
    best: dict[tuple[str, str, bool], Offer] = {}
    for offer in offers:
        key = (offer.provider, offer.market, is_stale(offer, today))
        known = best.get(key)
        if known is None or offer_order(offer) < offer_order(known):
            best[key] = offer
    return tuple(sorted(best.values(), key=offer_order))


def offer_order(offer: Offer) -> tuple[bool, float, str, str, str, str]:
    """Cheapest first, unknown prices last; ties by provider, region, instance and market."""
    price = offer.price_usd_per_hour
    known = price is not None
    return (not known, float(price or 0), offer.provider, offer.region, offer.instance_type, offer.market)


def _nearest_first(workload: Workload, unfit: Iterable[tuple[Unfit, int]], forecaster: Forecaster) -> list[Rejected]:
    """Classes of machines that do not hold a method; the nearest of each method says what would make it fit."""
    rejected: list[Rejected] = []
    told: set[str] = set()
    for found, offers in sorted(unfit, key=lambda pair: (pair[0].excess_ratio, pair[0].machine.label, pair[0].method)):
        first = found.closest is not None and found.method not in told
        relief = _relief(workload, found.closest, forecaster) if first and found.closest else ()
        told |= {found.method} if first else set()
        rejected.append(found.rejected(offers, relief))
    return rejected


def _relief(workload: Workload, fit: Fit, forecaster: Forecaster) -> tuple[Relief, ...]:
    return find_relief(workload, fit.recipe, fit.machine, fit.memory, forecaster)


def _candidate(fit: Fit, offer: Offer, relief: tuple[Relief, ...], forecaster: Forecaster) -> Candidate | None:
    time = forecaster.time(fit.recipe, fit.machine, offer)
    money = forecaster.money(time, fit.recipe, offer)
    if money is None:
        return None
    return Candidate(
        recipe=fit.recipe,
        offer=offer,
        device=fit.machine.device,
        memory=fit.memory,
        time=time,
        money=money,
        energy=forecaster.energy(time, fit.recipe, fit.machine, offer),
        relief=relief,
    )


def _dominated(offers: int) -> tuple[Rejected, ...]:
    if not offers:
        return ()
    reason = "the same machine costs less in another region or instance of the same provider and market"
    return (Rejected(kind="dominated", subject="dearer twins", reason=reason, offers=offers),)
