"""Plan: from a spec to everything that can be said before a cent is spent, and to the plan file that `run` executes."""

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path

from scrimp import __version__
from scrimp.catalog.carbon import grid_factors
from scrimp.catalog.devices import devices
from scrimp.catalog.local import local_device, local_offer
from scrimp.catalog.multiples import multiples
from scrimp.catalog.offers import offers
from scrimp.catalog.terms import provider_terms
from scrimp.catalog.this_machine import read_local
from scrimp.core.errors import ResourceError, SpecError
from scrimp.core.job import JobSpec, LocalMachineSpec
from scrimp.core.market import Device, Offer
from scrimp.core.model import ModelSource
from scrimp.core.plan import Candidate, Plan, PlanPoint, PlanSet
from scrimp.data.batches import StepOptions, count_steps
from scrimp.data.profile import measure_dataset
from scrimp.data.tokenizer import ChatTokenizer
from scrimp.models.prepare import tokenizer_folder
from scrimp.models.resolve import resolve
from scrimp.planner.choose import choose
from scrimp.planner.corrected import with_corrections
from scrimp.planner.forecasts import RoomForecaster
from scrimp.planner.order import cost_usd, duration_s
from scrimp.planner.question import MarketFacts, Workload, machine_of
from scrimp.planner.remedies import no_plan_error
from scrimp.spec.read import load_yaml, read_spec
from scrimp.spec.write import dump_yaml
from scrimp.workflows.corrections import read_corrections
from scrimp.workflows.sampling import sampled_tokens
from scrimp.workflows.world import World

# Plotting needs the front and the neighbourhood of the best, not a thousand points.
_MOST_POINTS = 40
_PLAN_HEAD = """\
# A plan that scrimp made. `scrimp run` executes exactly this; edit `chosen: recipe:` to change how it trains.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What `scrimp plan` is asked: a spec's path, overrides, which candidate to take, where to write it."""

    spec: str
    overrides: tuple[str, ...] = ()
    pick: int = 1
    output: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The answer: all that was found, the candidate of that rank, and the file if one was written."""

    request: PlanRequest
    plans: PlanSet
    rank: int
    chosen: Candidate
    written: Path | None


def plan_file(request: PlanRequest, *, world: World, facts: MarketFacts | None = None) -> Planned:
    """Plan the job of a spec file; with `output`, write the plan of the picked candidate there. `facts`: see `plan`.

    Raises:
        SpecError, DataError, UnknownNameError, NetworkError: the spec, the data, a name, the model.
        NoPlanError: nothing fits, or nothing meets the limits.
    """
    plans = plan(read_spec(request.spec, overrides=request.overrides), world=world, facts=facts)
    chosen = _picked(plans, request.pick)
    if request.output is not None:
        write_plan(plan_from(plans, chosen, world=world), request.output)
    return Planned(request=request, plans=plans, rank=request.pick, chosen=chosen, written=request.output)


def plan(spec: JobSpec, *, world: World, facts: MarketFacts | None = None) -> PlanSet:
    """All plans for a job, the best first. `facts` replaces the shipped catalogue and this machine.

    What `scrimp calibrate` learnt from this user's runs corrects the forecasts of the hardware that they ran on.

    Raises:
        SpecError, DataError, UnknownNameError, NetworkError: the spec, the data, a name, the model.
        NoPlanError: nothing fits, or nothing meets the limits; says what would help and what it would cost.
    """
    source = resolve(spec.model, env=world.env)
    workload = count(spec, source, world=world)
    facts = facts or market_facts(spec, world=world)
    formulas = RoomForecaster.of(
        workload,
        facts,
        model_is_here=source.folder is not None or source.kind == "bundled",
        sampled_tokens=sampled_tokens(spec, workload.profile),
    )
    plans = choose(workload, facts, with_corrections(formulas, read_corrections(world)))
    if not plans.candidates:
        raise no_plan_error(plans)
    return plans


def plan_from(plans: PlanSet, candidate: Candidate, *, world: World) -> Plan:
    """One candidate as the plan that `run` executes, with the front and the best others as points of the plot."""
    created_at = world.now().astimezone(UTC)
    front = {id(item) for item in plans.front}
    kept = [
        item
        for rank, item in enumerate(plans.candidates, start=1)
        if rank <= _MOST_POINTS or id(item) in front or item is candidate
    ]
    text = repr((created_at, plans.spec, candidate.recipe, candidate.offer))
    return Plan(
        plan_id=f"{created_at:%Y%m%d}-{hashlib.sha256(text.encode()).hexdigest()[:8]}",
        created_at=created_at,
        scrimp_version=__version__,
        spec=plans.spec,
        model_shape=plans.model_shape,
        profile=plans.profile,
        steps=plans.steps,
        chosen=candidate,
        alternatives=tuple(_point(item, on_front=id(item) in front, chosen=item is candidate) for item in kept),
    )


def write_plan(plan: Plan, path: Path) -> None:
    """As YAML that people can read, edit and commit; data paths are written relative to the file.

    Raises:
        ResourceError: the disk is full or may not be written to.
    """
    text = f"{_PLAN_HEAD}{dump_yaml(plan, folder=path.parent)}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ResourceError(
            what=f"the plan cannot be written to {path}: {error.strerror or error}",
            expected="a place that can be written to, with room for some kilobytes",
            next_step="scrimp plan SPEC -o /other/place/plan.yaml",
        ) from error


def read_plan(path: Path) -> Plan:
    """A plan file, edited by hand or not.

    Raises:
        SpecError: no such file, or not a whole plan: all mistakes, each with its line.
    """
    return load_yaml(Plan, path)


def is_plan_file(path: Path) -> bool:
    """Whether a YAML file holds a plan and not a spec: told by its top-level keys, without parsing it."""
    try:
        with path.open(encoding="utf-8") as file:
            return any(line.startswith("plan_id:") for line in file)
    except (OSError, UnicodeDecodeError):
        return False


def count(spec: JobSpec, source: ModelSource, *, world: World) -> Workload:
    """Model and data counted: with the model's own tokenizer where it is at hand, else estimated from the text.

    Raises:
        SpecError, DataError, UnknownNameError, NetworkError: the model or the data.
    """
    folder = tokenizer_folder(source, env=world.env)
    tokenizer = None if folder is None else ChatTokenizer.from_folder(folder)
    measured = measure_dataset(spec.data, tokenizer, base=world.cwd)
    return Workload(
        spec=replace(spec, model=source.name),
        shape=source.shape,
        profile=measured.profile,
        steps=count_steps(measured.sizes, options=StepOptions.of(spec.training)),
    )


def market_facts(spec: JobSpec, *, world: World) -> MarketFacts:
    """The shipped catalogue and, where the spec allows it, this machine."""
    device, own = _this_machine(spec.local) if spec.market.where != "cloud" else (None, None)
    terms = provider_terms()
    return MarketFacts(
        offers=(*offers(), *multiples(offers(), terms)),
        devices=devices(),
        today=world.now().date(),
        terms=terms,
        grid=grid_factors,
        local_device=device,
        local_offers=() if own is None else (own,),
    )


def _this_machine(prices: LocalMachineSpec) -> tuple[Device, Offer]:
    """What would train here. One card even where there are several: the trainer uses one."""
    here = read_local()
    device = local_device(
        cpuinfo=here.cpuinfo, memory_bytes=here.memory_bytes, cores=here.cores, gpu_query=here.gpu_query
    )
    return device, local_offer(device, 1, prices)


def _picked(plans: PlanSet, rank: int) -> Candidate:
    if rank > len(plans.candidates):
        raise SpecError(
            what=f"there is no plan {rank}: {len(plans.candidates)} were found",
            expected=f"a rank from 1 to {len(plans.candidates)}",
            next_step="scrimp plan SPEC --all shows them all",
        )
    return plans.candidates[rank - 1]


def _point(candidate: Candidate, *, on_front: bool, chosen: bool) -> PlanPoint:
    return PlanPoint(
        label=f"{machine_of(candidate).label} at {candidate.offer.provider}",
        method=candidate.recipe.method.name,
        market=candidate.offer.market,
        cost_usd=cost_usd(candidate),
        duration_s=duration_s(candidate),
        on_front=on_front,
        chosen=chosen,
    )
