"""What the formulas must know of the data: counts that follow from a profile and the counted steps."""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate

from scrimp.core.data import DataProfile, StepPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLoad:
    """The tokens of one job.

    steps               the steps that will be taken, counted from the batches
    eval_tokens         tokens of the held-out rows, scored once an evaluation
    trained_share       share of the training tokens that carry a label
    context_tokens      mean over all tokens of the length of their row (sum of squared lengths over sum of lengths):
                        attention costs this much per token, because packed rows do not see each other
    quantiles_tokens    a few row lengths at equal steps of the distribution, longest first, for the padding of `padded`
    sampled_tokens      tokens that the run generates in samples before and after training, prompts counted out
    """

    steps: StepPlan
    eval_tokens: int
    trained_share: float
    context_tokens: float
    quantiles_tokens: tuple[int, ...] = ()
    sampled_tokens: int = 0

    @property
    def step_tokens(self) -> float:
        """Real tokens of a mean optimizer step."""
        return self.steps.total_tokens / max(1, self.steps.steps)

    @property
    def step_rows(self) -> float:
        """Rows of a mean optimizer step."""
        return self.steps.rows / max(1, self.steps.steps)

    @property
    def mean_row_tokens(self) -> float:
        """Mean length of the rows that are trained on."""
        return self.steps.total_tokens / max(1, self.steps.rows)


def token_load(profile: DataProfile, steps: StepPlan, *, sampled_tokens: int = 0) -> TokenLoad:
    """Out of a profile and the counted steps."""
    lengths = profile.length_histogram
    tokens = sum(length * rows for length, rows in lengths)
    squares = sum(length * length * rows for length, rows in lengths)
    return TokenLoad(
        steps=steps,
        eval_tokens=profile.eval_total_tokens,
        trained_share=profile.trained_share,
        context_tokens=squares / tokens if tokens else 0.0,
        quantiles_tokens=_quantiles(lengths),
        sampled_tokens=sampled_tokens,
    )


def padding_ratio(load: TokenLoad, *, step_rows: float, micro_batch_tokens: int) -> float:
    """Tokens computed over real tokens when the rows of a mean step are padded to the longest of their micro-batch.

    The step is laid out as the trainer does it: longest row first, as many rows as fit at that length.
    """
    lengths = load.quantiles_tokens
    rows = min(len(lengths), max(1, round(step_rows)))
    if not rows:
        return 1.0
    sample = [lengths[int((index + 0.5) * len(lengths) / rows)] for index in range(rows)]
    padded, index = 0, 0
    while index < rows:
        together = min(rows - index, max(1, micro_batch_tokens // sample[index]))
        padded += sample[index] * together
        index += together
    return padded / sum(sample)


_QUANTILES = 64


def _quantiles(lengths: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    if not lengths:
        return ()
    ends = list(accumulate(rows for _, rows in lengths))
    wanted = [(index + 0.5) / _QUANTILES * ends[-1] for index in range(_QUANTILES)]
    return tuple(lengths[bisect_left(ends, place)][0] for place in reversed(wanted))
