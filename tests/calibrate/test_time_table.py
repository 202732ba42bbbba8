"""Speed forecasts of table rows: whatever is blank, a finite answer or a reason; answers never read."""

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.calibrate.table import read_table
from scrimp.calibrate.time.table import ANSWERS, forecast_time_row
from scrimp.core.errors import SpecError

ROWS = read_table(Path(__file__).parents[2] / "calibration" / "measured_time.csv")
COLUMNS = tuple(ROWS[0])


def usual(**changes):
    """A row that says just enough, with changes."""
    row = {"row_id": "r", "model": "Llama-3-8B", "method": "lora", "gpu": "A100-SXM4-80GB", "stack": "eager"}
    return {**row, **changes}


def is_sound(found) -> bool:
    return 0 < found.low <= found.predicted <= found.high < math.inf


def test_every_row_has_a_forecast_the_unscored_too():
    assert any(row["scored"] == "no" for row in ROWS)
    for row in ROWS:
        found = forecast_time_row(row)
        assert is_sound(found), row["row_id"]
        assert found.key == row["row_id"]
        assert found.basis


def answer_to(row):
    """The forecast, or the error with its three parts."""
    try:
        return forecast_time_row(row)
    except SpecError as error:
        return error


def is_forecast_or_reason(found) -> bool:
    if isinstance(found, SpecError):
        return bool(found.what and found.expected and found.next_step)
    return is_sound(found)


@given(row=st.sampled_from(ROWS), blank=st.sets(st.sampled_from(COLUMNS)), absent=st.sets(st.sampled_from(COLUMNS)))
@settings(max_examples=300, deadline=None)
def test_any_blank_or_absent_columns_give_a_forecast_or_a_reason(row, blank, absent):
    asked = {name: "" if name in blank else value for name, value in row.items() if name not in absent}
    assert is_forecast_or_reason(answer_to(asked))


@given(row=st.sampled_from(ROWS), column=st.sampled_from(COLUMNS), text=st.text(max_size=12))
@settings(max_examples=300, deadline=None)
def test_any_text_in_a_cell_gives_a_forecast_or_a_reason(row, column, text):
    assert is_forecast_or_reason(answer_to({**row, column: text}))


@given(row=st.sampled_from(ROWS), column=st.sampled_from(COLUMNS), value=st.floats())
@settings(max_examples=300, deadline=None)
def test_any_number_in_a_cell_gives_a_forecast_or_a_reason(row, column, value):
    assert is_forecast_or_reason(answer_to({**row, column: str(value)}))


@pytest.mark.parametrize("row", ROWS[::40], ids=lambda row: row["row_id"])
def test_answers_are_not_read(row):
    false = {**row, **dict.fromkeys(ANSWERS, "123456")}
    none = {name: value for name, value in row.items() if name not in ANSWERS}
    assert forecast_time_row(false) == forecast_time_row(row) == forecast_time_row(none)


def test_sizes_come_from_the_name_and_the_basis_says_so():
    by_name = forecast_time_row(usual())
    stated = usual(params_b="8.03", matmul_params_b="7.505", n_layers="32", attn_dim="4096")
    assert by_name.predicted == pytest.approx(forecast_time_row(stated).predicted, rel=0.01)
    assert "shape of" in by_name.basis
    assert "shape of" not in forecast_time_row(stated).basis


def test_a_name_nobody_knows_goes_by_its_size():
    small, large = (forecast_time_row(usual(model="Novel", params_b=size)) for size in ("3", "30"))
    assert small.predicted > 5 * large.predicted
    assert "guessed" in small.basis


def test_the_peak_comes_from_the_catalogue():
    assert forecast_time_row(usual(peak_tflops="312")).predicted == forecast_time_row(usual()).predicted


def test_a_card_the_catalogue_does_not_know_goes_by_its_class():
    found = forecast_time_row(usual(gpu="A1000-SXM9", gpu_class="dc_ampere", peak_tflops="312"))
    assert is_sound(found)
    assert "by its class" in found.basis


def test_an_interval_is_wide_where_nothing_was_measured_and_the_basis_says_so():
    def width(found):
        return found.high / found.low

    known = forecast_time_row(usual(framework="torchtune", stack="compile"))
    other_software = forecast_time_row(usual())
    other_card = forecast_time_row(usual(gpu="V100-SXM2-32GB"))
    mixture = forecast_time_row(usual(model="Mixtral-8x7B", params_b="46.7", matmul_params_b="12.75"))
    assert width(known) <= width(other_software) < width(other_card)
    assert width(mixture) > width(other_software)
    assert "this software were measured" in known.basis
    assert "other software" in other_software.basis
    assert "no run on this class" in other_card.basis
    assert "no mixture" in mixture.basis


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gpu": ""}, "gpu is blank"),
        ({"gpu": "A10O"}, "A10O"),
        ({"model": ""}, "how large"),
        ({"n_gpus": "-3"}, "n_gpus"),
        ({"seq_len": "long"}, "seq_len"),
        ({"micro_batch": "inf"}, "micro_batch"),
        ({"stack": "magic"}, "magic"),
        ({"params_b": "1", "matmul_params_b": "7"}, "multiplies"),
    ],
)
def test_a_bad_row_is_refused_in_three_parts(changes, words):
    with pytest.raises(SpecError, match=words) as caught:
        forecast_time_row(usual(**changes))
    assert caught.value.expected
    assert caught.value.next_step
