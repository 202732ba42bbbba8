"""`scrimp forecast` on the published tables: whole, in part, broken, and into places that cannot be written."""

import csv
import json
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner

from scrimp.cli.main import cli
from scrimp.core.errors import DataError, ResourceError

CALIBRATION = Path(__file__).parents[2] / "calibration"
TABLES = {"memory": CALIBRATION / "measured_memory.csv", "time": CALIBRATION / "measured_time.csv"}
ANSWERS = {"memory": ("measured_gib", "smi_gib"), "time": ("tokens_per_s", "tokens_per_s_per_gpu", "mfu", "hfu")}
COLUMNS = ["predicted", "low", "high", "safe_need_gib", "fits", "basis"]


@pytest.fixture
def scrimp(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(cli, ["forecast", *map(str, arguments)])


def read(text):
    return list(csv.DictReader(StringIO(text)))


def write(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("kind", ["memory", "time"])
def test_the_whole_table_without_its_answers(scrimp, tmp_path, kind):
    asked = read(TABLES[kind].read_text())
    blind = [{**row, **{name: "" for name in ANSWERS[kind] if name in row}} for row in asked]
    done = scrimp(f"--{kind}", write(tmp_path / "rows.csv", blind), "-o", "out.csv")
    assert done.exception is None
    found = read((tmp_path / "out.csv").read_text())
    key = "id" if "id" in asked[0] else "row_id"
    assert list(found[0]) == [key, *COLUMNS]
    assert len(found) >= 0.99 * len(asked)
    assert {row[key] for row in found} <= {row[key] for row in asked}
    for row in found:
        assert 0 < float(row["low"]) <= float(row["predicted"]) <= float(row["high"])
        assert row["basis"]
        assert row["fits"] in ({"", "true", "false"} if kind == "memory" else {""})
    assert f"{len(found)} rows written to out.csv" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("kind", ["memory", "time"])
def test_one_bad_row_is_told_and_stops_nothing(scrimp, tmp_path, kind):
    first, second, third = read(TABLES[kind].read_text())[:3]
    path = write(tmp_path / "rows.csv", [first, {**second, "micro_batch": "lots"}, third])
    done = scrimp(f"--{kind}", path)
    assert done.exit_code == 0
    assert len(read(done.stdout)) == 2
    assert "line 3" in done.stderr
    assert "micro_batch" in done.stderr
    told = json.loads(scrimp(f"--{kind}", path, "--json").stdout)
    assert [bad["line"] for bad in told["bad"]] == [3]
    assert [row["key"] for row in told["rows"]] == [next(iter(row.values())) for row in read(done.stdout)]


def test_columns_may_be_missing_and_a_byte_order_mark_is_forgiven(scrimp, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(
        "\ufeffmodel,method,seq_len,gpu,metric\nQwen/Qwen3-8B,lora,2048,RTX 4090,torch peak allocated\n", "utf-8"
    )
    done = scrimp("--memory", path)
    assert done.exception is None
    (row,) = read(done.stdout)
    assert 10 < float(row["predicted"]) < 40
    assert row["fits"] in {"true", "false"}


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (None, DataError, "cannot be read"),
        (b"\xff\xfe\x00", DataError, "cannot be read"),
        (b"", DataError, "no column model"),
        (b"a,b\n1,2\n", DataError, "no column model and method"),
        (b"model,method\n", DataError, "no rows"),
    ],
)
def test_what_is_no_table_is_told_in_three_parts(scrimp, tmp_path, text, error, said):
    if text is not None:
        (tmp_path / "rows.csv").write_bytes(text)
    caught = scrimp("--memory", "rows.csv").exception
    assert isinstance(caught, error)
    assert said in caught.what
    assert caught.expected
    assert caught.next_step


def test_a_place_that_cannot_be_written_is_told(scrimp):
    caught = scrimp("--memory", TABLES["memory"], "-o", "nowhere/out.csv").exception
    assert isinstance(caught, ResourceError)
    assert "nowhere/out.csv" in caught.what


@pytest.mark.parametrize("arguments", [(), ("--memory", "a.csv", "--time", "b.csv")])
def test_one_table_at_a_time(scrimp, arguments):
    done = scrimp(*arguments)
    assert done.exit_code == 2
    assert "--memory" in done.stderr
