"""How much a run generates to show the change: what planning counts and what forecasts are made anew with."""

from scrimp.core.data import DataProfile
from scrimp.core.job import JobSpec

# What the trainer shows before and after: so many tokens an answer at most, and so many prompts when none are given.
_ANSWER_TOKENS = 64
_DEFAULT_PROMPTS = 2
# Answers end when they are complete. Those of the quickstart have 64, 16, 21 and 10 tokens.
_ANSWERED_SHARE = 0.5


def sampled_tokens(spec: JobSpec, profile: DataProfile) -> int:
    """Tokens that are generated, before and after together: half of what answers have at most."""
    prompts = len(spec.sample_prompts) or min(_DEFAULT_PROMPTS, profile.eval_rows)
    return round(2 * prompts * _ANSWER_TOKENS * _ANSWERED_SHARE)
