"""80% intervals on rows that they were not made from: they hold by region, and the docs show what was found."""

import json
import sys
from math import sqrt
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "explanation").glob("*.md"))
RECORDED = json.loads((ROOT / "calibration" / "coverage.json").read_text(encoding="utf-8"))
GRADES = json.loads((ROOT / "calibration" / "grades.json").read_text(encoding="utf-8"))
REGIONS = [(quantity, region) for quantity, regions in RECORDED.items() for region in regions]
# The fewest groups of which a share says anything: see calibrate/conformal.py.
TELLING = 9


@pytest.fixture(scope="module")
def benchmarks():
    """The scripts' modules by name."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import coverage_chart
        import grade_forecasts
        import grade_tables
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    return {"tables": grade_tables, "chart": coverage_chart, "grades": grade_forecasts}


@pytest.mark.parametrize("quantity", RECORDED)
def test_the_promise_is_kept_as_a_whole(quantity):
    whole = RECORDED[quantity][""]
    assert whole["by_group"] >= 0.80
    assert whole["by_row"] >= 0.80


@pytest.mark.parametrize(("quantity", "region"), REGIONS)
def test_the_promise_is_kept_in_every_region_as_far_as_its_groups_can_tell(quantity, region):
    found = RECORDED[quantity][region]
    if found["groups"] >= TELLING:
        assert found["by_group"] >= 0.80 - 2 * sqrt(0.8 * 0.2 / found["groups"]), found


@pytest.mark.slow
def test_what_is_recorded_is_what_is_found_now(benchmarks, refitted):
    now = benchmarks["grades"].coverage_of(refitted)
    assert {name: set(regions) for name, regions in now.items()} == {n: set(r) for n, r in RECORDED.items()}
    for quantity, region in REGIONS:
        assert now[quantity][region] == pytest.approx(RECORDED[quantity][region], abs=0.002), (quantity, region)


def test_the_pages_show_what_is_recorded(benchmarks):
    tables = benchmarks["tables"]
    found = tables.blocks(GRADES, RECORDED)
    texts = {path: path.read_text(encoding="utf-8") for path in PAGES}
    for path, text in texts.items():
        assert tables.with_blocks(text, found) == text, f"{path.name} is out of date: run make calibrate"
    everything = "\n".join(texts.values())
    for name, body in found.items():
        assert body in everything, f"no page shows {name}"


@pytest.mark.parametrize("quantity", RECORDED)
def test_the_charts_are_drawn_and_shown(quantity):
    shown = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    for name in (f"{quantity}_coverage.svg", f"{quantity}_error.svg"):
        assert f"({name})" in shown
        assert (ROOT / "docs" / "explanation" / name).is_file()


def test_the_drawn_range_is_binomial(benchmarks):
    expected_range = benchmarks["chart"].expected_range

    assert expected_range(10) == (0.6, 1.0)
    low, high = expected_range(400)
    assert low == pytest.approx(0.8 - 1.645 * 0.02, abs=0.003)
    assert high == pytest.approx(0.8 + 1.645 * 0.02, abs=0.003)


def test_a_chart_is_an_svg_with_a_bar_a_region(benchmarks, tmp_path):
    from xml.etree import ElementTree

    chart = benchmarks["chart"]
    bars = [chart.Bar(name="a < b", groups=12, held=0.75), chart.Bar(name="c", groups=1, held=0.0)]
    chart.write_coverage_chart(tmp_path / "c.svg", bars, title="t")
    texts = [item.text for item in ElementTree.parse(tmp_path / "c.svg").iter("{http://www.w3.org/2000/svg}text")]

    assert {"a < b", "75%, 12 groups", "0%, 1 group"} <= set(texts)


def test_small_regions_and_repetitions_are_not_shown(benchmarks):
    def region(rows, groups):
        return {"rows": rows, "groups": groups, "by_group": 0.8, "by_row": 0.8, "width": 2.0}

    regions = {"": region(30, 20), "a": region(30, 20), "a, b": region(20, 12), "a, c": region(10, 3)}
    tables = benchmarks["tables"]

    assert list(tables.shown_regions(regions)) == ["all", "a, b"]
    assert "Another 1 region" in tables.coverage_table(regions)


def test_a_page_without_markers_is_left_alone(benchmarks):
    tables = benchmarks["tables"]
    page = "# Title\n<!-- grades: written by make calibrate -->\n\nold\n\n<!-- end of grades -->\nrest\n"

    assert tables.with_blocks("# Title\n", {"grades": "new"}) == "# Title\n"
    assert tables.with_blocks(page, {"grades": "new"}) == page.replace("old", "new")
