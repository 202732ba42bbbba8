"""A plan as the formulas alone foretell it today: without corrections, probes or an older version's figures."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from scrimp.catalog.carbon import grid_factors
from scrimp.catalog.terms import provider_terms
from scrimp.core.job import OptionValue
from scrimp.core.plan import Plan
from scrimp.core.run import EventValue
from scrimp.planner.forecasts import RoomForecaster
from scrimp.planner.question import MarketFacts, Workload, machine_of
from scrimp.workflows.sampling import sampled_tokens

# The feature that says whether a run's energy came from a meter.
ENERGY_METERED = "energy_metered"
_SOFTWARE = ("torch", "transformers", "peft", "bitsandbytes")


def forecaster_of(plan: Plan) -> RoomForecaster:
    """The formulas for the job of a plan."""
    workload = Workload(spec=plan.spec, shape=plan.model_shape, profile=plan.profile, steps=plan.steps)
    facts = MarketFacts(offers=(), devices={}, today=plan.created_at.date(), terms=provider_terms(), grid=grid_factors)
    # A plan that was run had its model fetched before the job began.
    return RoomForecaster.of(
        workload, facts, model_is_here=True, sampled_tokens=sampled_tokens(plan.spec, plan.profile)
    )


def formula_plan(plan: Plan) -> Plan:
    """The same plan with every forecast of the chosen candidate made anew.

    Raises:
        ValueError: the device's speed is not established.
        UnknownNameError, SpecError: the recipe's method is not known or its options are impossible.
    """
    chosen, forecaster = plan.chosen, forecaster_of(plan)
    machine = machine_of(chosen)
    time = forecaster.time(chosen.recipe, machine, chosen.offer)
    return replace(
        plan,
        chosen=replace(
            chosen,
            memory=forecaster.memory(chosen.recipe, machine),
            time=time,
            money=forecaster.money(time, chosen.recipe, chosen.offer),
            energy=forecaster.energy(time, chosen.recipe, machine, chosen.offer),
        ),
    )


def features_of(plan: Plan) -> Mapping[str, EventValue]:
    """What of a plan its forecasts depend on, flat: enough to learn from a run whose folder is gone."""
    chosen, recipe, steps = plan.chosen, plan.chosen.recipe, plan.steps
    options = {f"option_{name}": _flat(value) for name, value in sorted(recipe.method.options.items())}
    return {
        "params": plan.model_shape.params,
        "layers": plan.model_shape.layers,
        "hidden": plan.model_shape.hidden,
        "vocab": plan.model_shape.vocab,
        "weight_dtype": recipe.weight_dtype,
        "compute_dtype": recipe.compute_dtype,
        "layout": recipe.layout,
        "loss": recipe.loss,
        "sharding": recipe.sharding,
        "optimizer": recipe.optimizer,
        "checkpointing": recipe.checkpointing,
        "micro_batch_tokens": recipe.micro_batch_tokens,
        "gpus": machine_of(chosen).gpus,
        "device_kind": chosen.device.kind,
        "device_architecture": chosen.device.architecture,
        "steps": steps.steps,
        "total_tokens": steps.total_tokens,
        "trained_tokens": steps.trained_tokens,
        "longest_row_tokens": steps.longest_row_tokens,
        "eval_tokens": plan.profile.eval_total_tokens,
        **options,
    }


def software_versions() -> Mapping[str, EventValue]:
    """What a run here is trained with."""
    found: dict[str, EventValue] = {}
    for package in _SOFTWARE:
        with suppress(PackageNotFoundError):
            found[f"version_{package}"] = version(package)
    return found


def _flat(value: OptionValue) -> EventValue:
    return "+".join(value) if isinstance(value, tuple) else value
