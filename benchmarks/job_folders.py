"""Run folders for benchmarks: planned once by scrimp itself, then copied for every arm."""

import json
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCSTRINGS = HERE / "data" / "stdlib_docstrings.jsonl"


def planned_job(folder: Path, spec_text: str) -> Path:
    """resolved.json of a job that scrimp planned for this machine."""
    from scrimp.workflows.run import open_run, plan_to_run
    from scrimp.workflows.world import real_world

    spec = folder / "spec.yaml"
    spec.write_text(spec_text, encoding="utf-8")
    world = real_world(note=lambda text: None)
    overrides = (f"output_dir={folder / 'planned'}",)
    return open_run(plan_to_run(spec, overrides=overrides, world=world), world=world).folder / "resolved.json"


def copied_job(resolved: Path, folder: Path) -> Path:
    """The same job in an empty run folder of its own; its resolved.json."""
    folder.mkdir(parents=True)
    values = json.loads(resolved.read_text()) | {"run_folder": str(folder)}
    copy = folder / "resolved.json"
    copy.write_text(json.dumps(values), encoding="utf-8")
    return copy
