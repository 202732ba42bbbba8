"""Choose: from everything that fits to the order of preference, the front of money against time, and the reasons."""

from scrimp.core.plan import PlanSet
from scrimp.planner.limits import judge
from scrimp.planner.order import in_order, pareto_front
from scrimp.planner.question import Forecaster, MarketFacts, Workload
from scrimp.planner.remedies import find_remedies
from scrimp.planner.search import search


def choose(workload: Workload, facts: MarketFacts, forecaster: Forecaster) -> PlanSet:
    """Everything that planning can say about one job.

    `candidates` meet budget and deadline and come best first; when there are none, `remedies` say what would help.

    Raises:
        UnknownNameError, SpecError: a name or a method's option that does not exist.
    """
    spec = workload.spec
    found = search(workload, facts, forecaster)
    judged = judge(found.candidates, spec.limits)
    remedies = () if judged.within else find_remedies(workload, facts, forecaster, judged.beyond)
    return PlanSet(
        spec=spec,
        model_shape=workload.shape,
        profile=workload.profile,
        steps=workload.steps,
        candidates=in_order(judged.within, spec.market.objective),
        front=pareto_front(judged.within),
        rejected=(*judged.rejected, *found.rejected),
        remedies=remedies,
        considered_offers=found.considered_offers,
        prices=found.prices,
    )
