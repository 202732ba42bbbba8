"""Fixtures of the ledger's tests."""

import importlib.util
from pathlib import Path

import pytest

from scrimp.ledger.store import Ledger


def _load(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def nouns():
    """The factory of entries, records and events."""
    return _load("run_factory")


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'deep' / 'ledger.db'}"


@pytest.fixture
def ledger(url):
    return Ledger(url)
