"""What `make calibrate` fits: every file inside the package is one of a fit, and a new date alone rewrites none."""

import json
from datetime import date
from pathlib import Path

import pytest

import scrimp.estimate
from scrimp.calibrate.fits import FITS, Fit, write_fit

TODAY = date(2026, 12, 1)


def fit_of(file, **content):
    """A fit whose document is that content."""

    def document(tables, today):
        return {"source": {"rows": len(tables("rows.csv")), "date": today.isoformat()}, **content}

    return Fit(name="test", file=file, document=document)


def test_every_fitted_file_of_the_package_is_written_by_a_fit():
    shipped = set(Path(scrimp.estimate.__file__).parent.rglob("fitted.json"))
    assert shipped == {fit.file for fit in FITS}


@pytest.mark.parametrize("fit", FITS, ids=lambda fit: fit.name)
def test_a_fitted_file_says_what_it_stands_on(fit):
    found = json.loads(fit.file.read_text(encoding="utf-8"))
    source = found["source"]

    assert source["rows"] > source["groups"] > 1
    assert date.fromisoformat(source["date"])
    assert (Path(__file__).parents[2] / source["table"]).is_file()
    assert source["written_by"] == "make calibrate"
    assert "" in found["intervals"]
    assert all(0 < ends["low"] <= ends["high"] for ends in found["intervals"].values())


def test_a_new_date_alone_rewrites_nothing(tmp_path):
    file = tmp_path / "fitted.json"
    tables = {"rows.csv": [{}, {}]}.__getitem__

    assert write_fit(fit_of(file, ratio=1.0), tables, today=TODAY)
    assert not write_fit(fit_of(file, ratio=1.0), tables, today=date(2027, 1, 1))
    assert json.loads(file.read_text(encoding="utf-8"))["source"]["date"] == "2026-12-01"
    assert write_fit(fit_of(file, ratio=1.1), tables, today=date(2027, 1, 1))
    found = json.loads(file.read_text(encoding="utf-8"))
    assert (found["ratio"], found["source"]) == (1.1, {"rows": 2, "date": "2027-01-01"})


@pytest.mark.slow
@pytest.mark.parametrize("fit", FITS, ids=lambda fit: fit.name)
def test_what_is_shipped_is_what_the_tables_give(fit, tmp_path):
    from scrimp.calibrate.table import read_table

    folder = Path(__file__).parents[2] / "calibration"
    shipped = json.loads(fit.file.read_text(encoding="utf-8"))
    now = fit.document(lambda name: read_table(folder / name), TODAY)

    for region, ends in shipped["intervals"].items():
        found = now["intervals"][region]
        assert (found["low"], found["high"]) == pytest.approx((ends["low"], ends["high"]), rel=0.01), region
    assert now["source"]["rows"] == shipped["source"]["rows"]
