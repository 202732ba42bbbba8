"""CPU time of forecasting one candidate: memory, time, money and energy, nothing kept from the one before.

    python benchmarks/forecast_speed.py [ROUNDS]

Candidates are recipes of all methods on machines of the catalogue, taken evenly from a plan for examples/qwen3-8b.yaml.
Medians of several rounds. Exit code 1 when the bound is broken.
"""

import statistics
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

BOUND_S = 200e-6
COUNT = 300
SPEC = Path(__file__).resolve().parents[1] / "examples" / "qwen3-8b.yaml"


def candidates():
    """(a fresh forecaster, the candidates) of a plan without limits."""
    import os

    from scrimp.workflows.plan import PlanRequest, plan_file
    from scrimp.workflows.world import World

    world = World(env=dict(os.environ), now=lambda: datetime.now(UTC), cwd=SPEC.parent, note=lambda text: None)
    overrides = ("limits.budget=100000", "limits.deadline=100d", "method.name=auto")
    found = plan_file(PlanRequest(spec=str(SPEC), overrides=overrides), world=world).plans.candidates
    return found[:: max(1, len(found) // COUNT)]


def forecast(one, load) -> None:
    """All forecasts of one candidate."""
    from scrimp.estimate.energy.forecast import forecast_energy
    from scrimp.estimate.memory.forecast import forecast_memory
    from scrimp.estimate.money import Storage, forecast_money
    from scrimp.estimate.time.forecast import forecast_time
    from scrimp.estimate.time.site import rented

    shape, recipe, offer = load["shape"], one.recipe, one.offer
    forecast_memory(shape, recipe, one.device, gpus=offer.gpu_count, longest_row_tokens=246, trained_share=0.65)
    took = forecast_time(
        shape, recipe, one.device, gpus=offer.gpu_count, load=load["tokens"], site=rented(None, download_bytes=1.6e10)
    )
    forecast_money(
        took, offer, None, storage=Storage(disk_bytes=5e10, artefact_bytes=1e8), today=load["today"], local=None
    )
    forecast_energy(took, one.device, gpus=offer.gpu_count, grids=load["grids"])


def main(rounds: int) -> int:
    """Print the figure beside its bound."""
    from scrimp.catalog.carbon import grid_factors
    from scrimp.core.data import StepPlan
    from scrimp.estimate.time.token_load import TokenLoad
    from scrimp.models.table import find_known

    found = candidates()
    known = find_known("Qwen/Qwen3-8B")
    assert known is not None
    steps = StepPlan(
        steps=153, epochs=3.0, rows=2427, total_tokens=183_000, trained_tokens=119_000, largest_step_tokens=1_800,
        longest_row_tokens=246,
    )  # fmt: skip
    tokens = TokenLoad(steps=steps, eval_tokens=7_000, trained_share=0.65, context_tokens=80.0, sampled_tokens=100)
    grids = grid_factors("aws", "us-east-1")
    load = {"shape": known[1], "tokens": tokens, "today": datetime.now(UTC).date(), "grids": grids}
    each: list[float] = []
    for turn in range(rounds):
        # Another number of parameters each round: nothing that is kept by shape is there already.
        load["shape"] = replace(known[1], vocab=known[1].vocab + turn)
        began = time.process_time()
        for one in found:
            forecast(one, load)
        each.append((time.process_time() - began) / len(found))
    middle = statistics.median(each)
    print(f"{len(found)} candidates, {rounds} rounds: {middle * 1e6:.0f} microseconds each, bound {BOUND_S * 1e6:.0f}")
    return 1 if middle > BOUND_S else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 7))
