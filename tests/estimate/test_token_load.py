"""What the formulas take from a data profile."""

from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.estimate.time.token_load import padding_ratio, token_load

histograms = st.dictionaries(st.integers(1, 4000), st.integers(1, 50), min_size=1, max_size=40).map(
    lambda counts: tuple(sorted(counts.items()))
)


def test_attention_sees_the_length_of_its_own_row(make):
    load = token_load(make.profile(((100, 1), (300, 1))), make.load().steps)
    # 100 tokens attend to a row of 100, 300 tokens to one of 300.
    assert load.context_tokens == (100 * 100 + 300 * 300) / 400
    assert load.trained_share == 0.5


def test_an_empty_profile_makes_an_empty_load(make):
    load = token_load(make.profile(()), make.load().steps)
    assert load.context_tokens == 0
    assert padding_ratio(load, step_rows=8, micro_batch_tokens=2048) == 1.0


def test_padding_is_counted_as_the_trainer_lays_rows_out(make):
    load = token_load(make.profile(((100, 32), (300, 32))), make.load().steps)
    # Four rows, two of 300 and two of 100: two micro-batches of 600 hold them without padding, one of 1,200 with 400.
    assert padding_ratio(load, step_rows=4, micro_batch_tokens=600) == 1.0
    assert padding_ratio(load, step_rows=4, micro_batch_tokens=1200) == 1200 / 800


@given(histogram=histograms, rows=st.floats(0.5, 64), tokens=st.integers(1, 20_000))
@settings(max_examples=100, deadline=None)
def test_padding_never_shrinks_and_equal_rows_need_none(make, histogram, rows, tokens):
    load = token_load(make.profile(histogram), make.load().steps)
    assert padding_ratio(load, step_rows=rows, micro_batch_tokens=tokens) >= 1.0
    equal = token_load(make.profile(((histogram[-1][0], 5),)), make.load().steps)
    assert padding_ratio(equal, step_rows=rows, micro_batch_tokens=tokens) == 1.0


@given(histogram=histograms)
@settings(max_examples=100, deadline=None)
def test_the_attended_length_lies_between_mean_and_longest(make, histogram):
    profile = make.profile(histogram)
    context = token_load(profile, make.load().steps).context_tokens
    assert profile.mean_row_tokens <= context * (1 + 1e-9)
    assert context <= profile.longest_row_tokens * (1 + 1e-9)
