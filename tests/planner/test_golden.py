"""Golden plans: the screen and the JSON of every case under tests/golden against a frozen catalogue.

SCRIMP_UPDATE_GOLDEN=1 rewrites them (`make golden`); read the diff.
"""

import io
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scrimp.catalog.devices import parse_devices
from scrimp.catalog.local import local_device, local_offer
from scrimp.catalog.snapshot import parse_snapshot
from scrimp.catalog.terms import parse_terms
from scrimp.cli.plan import document, screen
from scrimp.core.errors import ScrimpError
from scrimp.core.job import LocalMachineSpec
from scrimp.core.market import GridFactor, GridMethod
from scrimp.planner.question import MarketFacts
from scrimp.workflows.plan import PlanRequest, plan_file
from scrimp.workflows.world import World

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/job.yaml"))
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
CPUINFO = "vendor_id : GenuineIntel\nmodel name : Frozen CPU\nflags : avx2 avx512f avx512_bf16\n"
WIDTH = 80
TOP = 3


def _text(name: str) -> str:
    return (GOLDEN / "catalogue" / name).read_text(encoding="utf-8")


def _grid(provider: str, region: str) -> tuple[GridFactor, ...]:
    frozen = GridFactor(
        place="frozen grid",
        carbon_gco2e_per_kwh=400.0,
        pue_ratio=1.2,
        year=2026,
        method=GridMethod.ZONE_CONSUMPTION,
        source="test",
    )
    return (frozen,)


@pytest.fixture(scope="module")
def frozen() -> MarketFacts:
    """The frozen catalogue and a frozen machine."""
    table = parse_devices(_text("gpus.csv"), where="gpus.csv")
    snapshot = parse_snapshot(_text("gpu_prices.csv"), where="gpu_prices.csv", table=table, reasons={})
    here = local_device(cpuinfo=CPUINFO, memory_bytes=16 * 10**9, cores=4, gpu_query=None)
    return MarketFacts(
        offers=snapshot.offers,
        devices=table.devices,
        today=NOW.date(),
        terms=parse_terms(_text("providers.csv"), where="providers.csv"),
        grid=_grid,
        local_device=here,
        local_offers=(local_offer(here, 1, LocalMachineSpec()),),
    )


@pytest.fixture
def world(tmp_path, monkeypatch) -> World:
    """No caches, no network, a stopped clock; beside the cases, so that no checkout's path moves a line break."""
    monkeypatch.chdir(GOLDEN)
    env = {"HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    return World(env=env, now=lambda: NOW, cwd=GOLDEN, note=lambda text: None)


def _answer(case: str, frozen: MarketFacts, world: World) -> tuple[str, str]:
    """(text, JSON) of one case; an error's for a job without a plan."""
    request = PlanRequest(spec=f"{case}/job.yaml")
    try:
        planned = plan_file(request, world=world, facts=frozen)
    except ScrimpError as error:
        values = {"error": type(error).__name__, "exit_code": error.exit_code, "what": error.what}
        text = f"{error}\n"
        values |= {"expected": error.expected, "next": error.next_step}
        return _neutral(text), _neutral(_json(values))
    values = document(planned, top=TOP)
    # The front's members stand in the table; written out they would make every diff several times as long.
    values["front"] = [
        f"{item['recipe']['method']['name']} on {item['offer']['instance_type']}" for item in values["front"]
    ]
    return _neutral(_screen(planned)), _neutral(_json(values))


def _screen(planned) -> str:
    from rich.console import Console

    file = io.StringIO()
    console = Console(file=file, width=WIDTH, highlight=False, color_system=None)
    for item in screen(planned, today=NOW.date(), width=WIDTH, top=8):
        console.print(item)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def _json(values: object) -> str:
    return json.dumps(_rounded(values), indent=1, ensure_ascii=False) + "\n"


def _rounded(value):
    """Six digits: what another platform's arithmetic agrees on."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value


def _neutral(text: str) -> str:
    """Without the path of this checkout."""
    return text.replace(str(GOLDEN), "tests/golden")


def test_there_are_cases():
    assert {"quickstart-local", "qwen3-8b-cloud", "llama-70b-cloud"} <= set(CASES)


@pytest.mark.parametrize("case", CASES)
def test_the_plan_is_what_it_was(case, frozen, world):
    files = (GOLDEN / case / "plan.txt", GOLDEN / case / "plan.json")
    answers = _answer(case, frozen, world)
    if os.environ.get("SCRIMP_UPDATE_GOLDEN") == "1":
        for file, text in zip(files, answers, strict=True):
            file.write_text(text, encoding="utf-8")
    for file, text in zip(files, answers, strict=True):
        assert file.is_file(), f"{file} is missing: make golden"
        assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES)
def test_no_line_is_wider_than_the_terminal(case):
    text = (GOLDEN / case / "plan.txt").read_text(encoding="utf-8")
    if not text.startswith(("no plan", "GPU")):
        assert max(map(len, text.splitlines())) <= WIDTH
