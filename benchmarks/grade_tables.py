"""What docs/explanation shows of grades and coverage: tables written between markers, from the recorded JSON."""

from collections.abc import Mapping
from pathlib import Path

Figures = Mapping[str, float]
# Regions with fewer groups are in calibration/coverage.json, and say nothing by themselves.
FEWEST_GROUPS = 5
NAMES = {
    "memory": "memory of one card",
    "memory_sharded": "memory of each of several cards",
    "memory_device": "what nvidia-smi shows",
    "time": "tokens a second on GPUs",
    "time_sources": "… sources and software that the fit did not see",
    "time_classes": "… classes of GPU that the fit did not see",
    "power": "power of a node",
    "process_memory": "resident set of our trainer on a CPU",
    "cpu_time": "CPU time of our trainer",
}
_MARK = "<!-- {name}: written by make calibrate -->"
_END = "<!-- end of {name} -->"


def grades_table(grades: Mapping[str, Figures]) -> str:
    """Every forecaster as shipped and on unseen rows."""
    lines = [
        "| forecast of | rows | groups | mean error of groups | median | too low by 10% | interval holds |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, figures in grades.items():
        base = name.removesuffix("_unseen")
        # What has a shipped half is named there.
        words = NAMES[base] if name == base or base not in grades else "… groups that the fit did not see"
        lines.append(_grade_line(words, figures))
    return "\n".join(lines)


def _grade_line(words: str, figures: Figures) -> str:
    shares = (figures[key] for key in ("mape_of_groups", "median", "under_by_10", "interval_holds"))
    cells = [words, f"{figures['rows']:.0f}", f"{figures['groups']:.0f}", *(f"{share:.1%}" for share in shares)]
    return f"| {' | '.join(cells)} |"


def shown_regions(regions: Mapping[str, Figures]) -> dict[str, Figures]:
    """Regions with enough groups, the whole first; a region that is all of its parent is not said twice."""
    found: dict[str, Figures] = {}
    for region, figures in sorted(regions.items()):
        parent = regions.get(region.rpartition(", ")[0])
        is_all = bool(region) and parent is not None and parent["rows"] == figures["rows"]
        if figures["groups"] >= FEWEST_GROUPS and not is_all:
            found[region or "all"] = figures
    return found


def coverage_table(regions: Mapping[str, Figures]) -> str:
    """Coverage of unseen rows, a line a region; how many regions are too small to show."""
    shown = shown_regions(regions)
    lines = [
        "| region | rows | groups | held, of groups | held, of rows | high / low |",
        "|---|---|---|---|---|---|",
        *(
            f"| {name} | {figures['rows']:.0f} | {figures['groups']:.0f} | {figures['by_group']:.0%} | "
            f"{figures['by_row']:.0%} | {figures['width']:.2f} |"
            for name, figures in shown.items()
        ),
    ]
    small = sum(figures["groups"] < FEWEST_GROUPS for figures in regions.values())
    if small:
        regions_have = "region has" if small == 1 else "regions have"
        lines.append(
            f"\nAnother {small} {regions_have} fewer than {FEWEST_GROUPS} groups (`calibration/coverage.json`)."
        )
    return "\n".join(lines)


def blocks(grades: Mapping[str, Figures], coverage: Mapping[str, Mapping[str, Figures]]) -> dict[str, str]:
    """All generated blocks by name."""
    return {
        "grades": grades_table(grades),
        **{f"coverage of {quantity}": coverage_table(regions) for quantity, regions in coverage.items()},
    }


def with_blocks(text: str, found: Mapping[str, str]) -> str:
    """A page with what stands between its markers replaced; a page needs not have every block."""
    for name, body in found.items():
        mark, end = _MARK.format(name=name), _END.format(name=name)
        if mark in text:
            head, _, rest = text.partition(mark)
            _, _, tail = rest.partition(end)
            text = f"{head}{mark}\n\n{body}\n\n{end}{tail}"
    return text


def update_pages(folder: Path, found: Mapping[str, str]) -> list[Path]:
    """Rewrite the pages of a folder whose blocks changed; which they were."""
    changed: list[Path] = []
    for path in sorted(folder.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        new = with_blocks(text, found)
        if new != text:
            path.write_text(new, encoding="utf-8")
            changed.append(path)
    return changed
