"""Order: what makes one plan better than another, and the front of those that nothing beats."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from scrimp.core.job import Objective
from scrimp.core.plan import Candidate


def cost_usd(candidate: Candidate) -> Decimal:
    """The bill's value.

    Raises:
        ValueError: the price is unknown; such a candidate has no place in a comparison.
    """
    if candidate.money is None:
        raise ValueError(f"{candidate.offer.instance_type} has no known price")
    return candidate.money.total_usd.value


def duration_s(candidate: Candidate) -> float:
    """The whole job's wall-clock time."""
    return candidate.time.total_s.value


def is_tight(candidate: Candidate) -> bool:
    """Whether memory is enough by its value but not at the high end of its interval: over 1 chance in 10 of not."""
    return candidate.memory.need_bytes.high > candidate.device.memory_bytes


def in_order(candidates: Iterable[Candidate], objective: Objective) -> tuple[Candidate, ...]:
    """Those that fit comfortably first; among them the cheapest (or the fastest), ties by the other, then by name."""
    if objective == "fastest":
        return tuple(sorted(candidates, key=lambda c: (is_tight(c), duration_s(c), cost_usd(c), tie_break(c))))
    return tuple(sorted(candidates, key=lambda c: (is_tight(c), cost_usd(c), duration_s(c), tie_break(c))))


def pareto_front(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Those that no other beats in money and in time, from the cheapest to the fastest.

    Tight candidates stay out of it unless there are no others: what may not fit is no bargain.
    """
    comfortable = [candidate for candidate in candidates if not is_tight(candidate)]
    front: list[Candidate] = []
    for candidate in sorted(comfortable or candidates, key=lambda c: (cost_usd(c), duration_s(c), tie_break(c))):
        if not front or duration_s(candidate) < duration_s(front[-1]):
            front.append(candidate)
    return tuple(front)


def tie_break(candidate: Candidate) -> tuple[str, ...]:
    """Provider, region, instance, market, method: equal plans always come in the same order."""
    offer = candidate.offer
    return (offer.provider, offer.region, offer.instance_type, offer.market, candidate.recipe.method.name, offer.gpu)
