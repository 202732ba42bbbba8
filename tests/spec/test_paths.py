"""Paths: relative to the file on disk, relative to the working directory in memory."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrimp.core.job import DataSpec, JobSpec
from scrimp.spec.paths import from_folder, to_folder
from scrimp.spec.read import load_yaml, read_spec
from scrimp.spec.write import dump_yaml


def job(path, *, model="m", eval_path=None):
    return JobSpec(model=model, data=DataSpec(path=path, eval_path=eval_path))


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("rows.jsonl", "jobs/rows.jsonl"),
        ("./rows", "./jobs/rows"),
        ("../data/rows.csv", "data/rows.csv"),
        ("/data/rows", "/data/rows"),
        ("~/rows.jsonl", "~/rows.jsonl"),
        ("tatsu-lab/alpaca", "tatsu-lab/alpaca"),
        ("alpaca", "alpaca"),
    ],
)
def test_files_are_joined_to_the_folder_and_hub_ids_are_not(written, seen):
    assert from_folder(job(written), Path("jobs")).data.path == seen


def test_a_spec_in_the_working_directory_stays_as_it_is():
    spec = job("./rows.jsonl", model="./model", eval_path="x/y.jsonl")
    assert from_folder(spec, Path()) == spec


def test_what_exists_beside_the_file_is_a_file(tmp_path, monkeypatch):
    (tmp_path / "jobs" / "owner" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert from_folder(job("owner/name"), Path("jobs")).data.path == "jobs/owner/name"
    assert from_folder(job("x.jsonl", model="owner/name"), Path("jobs")).model == "jobs/owner/name"
    assert from_folder(job("x.jsonl", model="owner/other"), Path("jobs")).model == "owner/other"


def test_a_local_model_keeps_the_mark_that_tells_it_from_a_hub_id():
    seen = from_folder(job("x.jsonl", model="./tuned"), Path("jobs"))
    assert seen.model == "./jobs/tuned"
    assert to_folder(seen, Path("jobs")).model == "./tuned"


NAMES = st.from_regex(r"[a-z]{1,6}", fullmatch=True)


@given(folders=st.lists(NAMES, max_size=3), base=st.lists(NAMES, max_size=3), name=NAMES)
def test_writing_to_a_folder_and_reading_from_it_changes_nothing(folders, base, name):
    spec = job("/".join([*folders, f"{name}.jsonl"]), model=f"./{name}")
    folder = Path("/".join(base)) if base else Path()
    assert from_folder(to_folder(spec, folder), folder) == spec


def test_a_file_can_be_moved_together_with_its_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = job("project/data/rows.jsonl", eval_path="/elsewhere/test.jsonl")
    Path("project/plans").mkdir(parents=True)
    text = dump_yaml(spec, folder=Path("project/plans"))
    assert "path: ../data/rows.jsonl" in text
    Path("project/plans/spec.yaml").write_text(text, encoding="utf-8")
    Path("project").rename("moved")
    read = load_yaml(JobSpec, Path("moved/plans/spec.yaml"))
    assert read.data.path == "moved/data/rows.jsonl"
    assert read.data.eval_path == "/elsewhere/test.jsonl"
    assert read_spec("moved/plans/spec.yaml") == read


def test_an_absolute_path_inside_the_folder_becomes_relative(tmp_path):
    assert to_folder(job(str(tmp_path / "a" / "rows.jsonl")), tmp_path).data.path == "a/rows.jsonl"
