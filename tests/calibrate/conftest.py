"""What this room's tests share: builders of outcomes to import, and everything fitted again once."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def refitted():
    """The gradebook with every fit made again without each group in turn: a minute, for slow tests alone."""
    from scrimp.calibrate.gradebook import gradebook
    from scrimp.calibrate.table import read_table

    folder = Path(__file__).parents[2] / "calibration"
    return gradebook(lambda name: read_table(folder / name))
