"""Small builders of nouns for the formulas' tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import estimate_factory


@pytest.fixture(scope="session")
def make():
    """The builders of estimate_factory."""
    return estimate_factory
