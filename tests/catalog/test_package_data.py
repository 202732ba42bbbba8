"""The tables travel with the package, and every one of them is documented."""

import fnmatch
import tomllib
from importlib.resources import files
from pathlib import Path

from scrimp.catalog.offers import ATTRIBUTION

DATA = files("scrimp.catalog").joinpath("data")
NAMES = sorted(entry.name for entry in DATA.iterdir())


def test_every_table_matches_what_the_wheel_takes_along():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["*"]
    assert NAMES
    assert [name for name in NAMES if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns)] == []


def test_the_readme_names_every_table_and_carries_the_attribution():
    readme = DATA.joinpath("README.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if name.endswith(".csv") and name not in readme] == []
    assert ATTRIBUTION in readme


def test_the_readme_counts_are_those_of_the_tables():
    readme = DATA.joinpath("README.md").read_text(encoding="utf-8")
    for name in ("gpus.csv", "cpus.csv", "gpu_prices.csv", "providers.csv", "grid_cloud_region.csv", "pue.csv"):
        lines = DATA.joinpath(name).read_text(encoding="utf-8").splitlines()
        assert f"| {name} | {len(lines) - 1:,} |" in readme, name
