"""What people see of a probe and of a plan that was made again: lines while it runs, tables at the end."""

import io

import pytest

from scrimp.cli.live import RunDisplay
from scrimp.cli.summary import graded_table, split_graded
from scrimp.core.run import Graded, RunEvent
from scrimp.report.words import quantity_words


@pytest.fixture
def shown(capsys):
    def show(kind, **values):
        with RunDisplay(steps=60, quiet=False) as display:
            display(RunEvent(at_s=1.0, attempt=1, kind=kind, step=0, values=values))
        return capsys.readouterr().err

    return show


def test_a_probe_is_one_line(shown):
    assert "probe of 3 steps: 1.50 s a step, 2.00 GiB at the peak" in shown(
        "probed", steps=3, step_s=1.5, peak_bytes=2 * 2**30
    )


def test_a_smaller_recipe_is_one_line(shown):
    said = shown("replanned", reason="memory ran out", change="micro-batch 512 instead of 1,002 tokens")
    assert "memory ran out, trying again: micro-batch 512 instead of 1,002 tokens" in said


def _line(quantity, forecast):
    return Graded(quantity=quantity, forecast=forecast, low=1.0, high=9.0, measured=4.0, basis="formula")


def test_lines_of_the_probe_stand_apart_from_those_of_the_plan():
    planned, probed = split_graded((_line("total_s", 2.0), _line("probed_total_s", 4.0)))
    assert [(line.quantity, line.forecast) for line in planned] == [("total_s", 2.0)]
    assert [(line.quantity, line.forecast) for line in probed] == [("total_s", 4.0)]


def test_the_table_says_which_forecast_it_is_of():
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=100).print(graded_table((_line("peak_bytes", 4.0),), title="after the probe"))
    assert "after the probe" in out.getvalue()
    assert "memory" in out.getvalue()


def test_the_report_names_both():
    assert quantity_words("total_s") == "time of the whole job"
    assert quantity_words("probed_total_s") == "time of the whole job, after the probe"
