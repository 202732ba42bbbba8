"""How much a run generates to show the change: what planning counts and what forecasts are made anew with."""

from scrimp.core.data import DataProfile
from scrimp.core.job import JobSpec

# What the trainer shows before and after: so many tokens an answer at most, and so many prompts when none are given.
_ANSWER_TOKENS = 64
_DEFAULT_PROMPTS = 2


def sampled_tokens(spec: JobSpec, profile: DataProfile) -> int:
    """Tokens that are generated at most, before and after together."""
    prompts = len(spec.sample_prompts) or min(_DEFAULT_PROMPTS, profile.eval_rows)
    return 2 * prompts * _ANSWER_TOKENS
