"""Fixtures of the ledger's tests."""

import importlib.util
from pathlib import Path

import pytest

from scrimp.ledger.store import Ledger


def _load(name, *, folder=Path(__file__).parent):
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def nouns():
    """The factory of entries, records and events."""
    return _load("run_factory")


@pytest.fixture(scope="session")
def plan():
    """The plan of a small local job."""
    return _load("plan_factory", folder=Path(__file__).parents[1] / "report").make_plan()


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'deep' / 'ledger.db'}"


@pytest.fixture
def ledger(url):
    return Ledger(url)
