"""Which values of a spec are possible: a bound for every number, a form for every name, rules between keys.

The bounds are the outermost that make sense, so that slips (a share of 5, a learning rate of 20, a seed that no
generator takes) are caught before anything is paid for; whether a job fits and converges is the planner's to say.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from typing import cast

from scrimp.core.job import JobSpec
from scrimp.core.units import DAY_S, MINUTE_S, format_duration

_TEN_YEARS_S = 3650.0 * DAY_S
_MAX_DIGITS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The numbers that are possible: from `low` to `high`, which themselves count unless `above` or `below` is set."""

    low: float
    high: float
    above: bool = False
    below: bool = False

    def holds(self, value: float | Decimal) -> bool:
        """Whether the value lies inside; a NaN never does."""
        # Python compares whole numbers, floats and Decimals exactly, so nothing is converted (10**400 is no float).
        return is_finite(value) and (
            (value > self.low if self.above else value >= self.low)
            and (value < self.high if self.below else value <= self.high)
        )

    def in_words(self, key: str) -> str:
        """`from 1 to 1000`, `above 0, below 1`, in the unit of the key."""
        low, high = shown(key, self.low), shown(key, self.high)
        if not self.above and not self.below:
            return f"from {low} to {high}"
        return f"{f'above {low}' if self.above else f'{low} or more'}, {'below' if self.below else 'at most'} {high}"


_SHARE = Bound(low=0, high=1, below=True)
_COUNT = Bound(low=1, high=10**9)
_PRICE = Bound(low=0, high=10**6)
_CAP = Bound(low=0, high=10**9, above=True)

BOUNDS: Mapping[str, Bound] = {
    "data.eval_share": _SHARE,
    # Two tokens are the shortest row with something to predict.
    "data.max_length_tokens": Bound(low=2, high=10**7),
    "data.max_rows": _COUNT,
    "training.epochs": Bound(low=0, high=10**4, above=True),
    "training.max_steps": _COUNT,
    "training.batch_rows": Bound(low=1, high=10**6),
    "training.batch_tokens": Bound(low=2, high=10**9),
    "training.micro_batch_tokens": Bound(low=2, high=10**9),
    "training.learning_rate": Bound(low=0, high=10, above=True),
    "training.warmup_share": _SHARE,
    "training.weight_decay": Bound(low=0, high=1),
    # Zero would scale every gradient to nothing.
    "training.clip_norm": Bound(low=0, high=10**9, above=True),
    # What every generator in use takes: numpy's legacy seed is the narrowest.
    "training.seed": Bound(low=0, high=2**32 - 1),
    "training.eval_every_steps": _COUNT,
    "training.checkpoint_every_steps": _COUNT,
    "training.keep_checkpoints": Bound(low=1, high=10**6),
    "limits.budget_usd": _CAP,
    "limits.deadline_s": Bound(low=MINUTE_S, high=_TEN_YEARS_S),
    "market.max_gpus": Bound(low=1, high=4096),
    "market.max_price_usd_per_hour": _CAP,
    "market.max_price_age_s": Bound(low=0, high=_TEN_YEARS_S, above=True),
    "local.price_usd_per_hour": _PRICE,
    "local.power_w": Bound(low=0, high=10**6),
    "local.electricity_usd_per_kwh": _PRICE,
    "local.grid_gco2e_per_kwh": Bound(low=0, high=10**4),
}

# Texts that must not be empty, and names that become parts of file names (on every file system and object store).
_FILE_NAME = (re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"), "letters, digits, _ . and -, 64 at most")
_SOME_TEXT = (re.compile(r".*\S.*", re.DOTALL), "some text")
FORMS: Mapping[str, tuple[re.Pattern[str], str]] = {
    "model": _SOME_TEXT,
    "name": _FILE_NAME,
    "project": _FILE_NAME,
    "output_dir": _SOME_TEXT,
    "data.path": _SOME_TEXT,
    "data.eval_path": _SOME_TEXT,
    "data.split": _SOME_TEXT,
    "market.gpus": _SOME_TEXT,
    "market.providers": _SOME_TEXT,
    "market.regions": _SOME_TEXT,
    "sample_prompts": _SOME_TEXT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A value that is of the right type and still impossible; `key` is its dotted name, `expected` what would do.

    `example` is a value that would do, where the key's usual example would not.
    """

    key: str
    what: str
    expected: str
    example: object = None


def check_spec(spec: JobSpec) -> tuple[Fault, ...]:
    """Everything impossible in a spec, however it was made; empty when all is well."""
    return (*check_values(flatten(spec)), *check_rules(spec))


def check_values(values: Mapping[str, object]) -> tuple[Fault, ...]:
    """The impossible ones among single values by dotted key; values of a wrong type are not judged here."""
    found: list[Fault] = []
    for key, value in values.items():
        bound, form = BOUNDS.get(key), FORMS.get(key)
        if bound and isinstance(value, int | float | Decimal) and not bound.holds(value):
            found.append(Fault(key=key, what=f"{key} is {shown(key, value)}", expected=bound.in_words(key)))
        texts = cast(tuple[object, ...], value) if isinstance(value, tuple) else (value,)
        if form and any(isinstance(text, str) and not form[0].fullmatch(text) for text in texts):
            said = "empty" if form is _SOME_TEXT else f'"{value}"'
            found.append(Fault(key=key, what=f"{key} is {said}", expected=form[1]))
    return tuple(found)


def check_rules(spec: JobSpec) -> tuple[Fault, ...]:
    """What is wrong between keys that are each right alone."""
    return tuple(fault for rule in RULES if (fault := rule(spec)) is not None)


def _a_row_fits_into_a_step(spec: JobSpec) -> Fault | None:
    limit, longest = spec.training.batch_tokens, spec.data.max_length_tokens
    if limit is None or limit >= longest:
        return None
    return Fault(
        key="training.batch_tokens",
        what=f"training.batch_tokens is {limit}, and one row may have {longest} tokens (data.max_length_tokens)",
        expected=f"batch_tokens of {longest} or more, or max_length_tokens of {limit} or less",
        example=longest,
    )


def _spot_machines_are_rented(spec: JobSpec) -> Fault | None:
    if spec.market.where != "local" or spec.market.spot != "only":
        return None
    return Fault(
        key="market.spot",
        what="market.spot is only, and market.where is local, where no machine is ever a spot machine",
        expected="where: cloud or any, or spot: auto",
        example="auto",
    )


def _evaluation_rows_are_other_rows(spec: JobSpec) -> Fault | None:
    if spec.data.eval_path is None or spec.data.eval_path != spec.data.path:
        return None
    return Fault(
        key="data.eval_path",
        what="data.eval_path is the file that is trained on: its loss would say nothing",
        expected="another file, or no eval_path: eval_share then holds rows out",
    )


RULES: tuple[Callable[[JobSpec], Fault | None], ...] = (
    _a_row_fits_into_a_step,
    _spot_machines_are_rented,
    _evaluation_rows_are_other_rows,
)


def flatten(noun: object, *, prefix: str = "") -> dict[str, object]:
    """Values by dotted key; mappings (method options) stay whole."""
    found: dict[str, object] = {}
    if not is_dataclass(noun):
        return found
    for item in fields(noun):
        value: object = getattr(noun, item.name)
        if is_dataclass(value):
            found |= flatten(value, prefix=f"{prefix}{item.name}.")
        else:
            found[f"{prefix}{item.name}"] = value
    return found


def is_finite(value: float | Decimal) -> bool:
    """Whether a number is one: no NaN, no infinity."""
    if isinstance(value, Decimal):
        return value.is_finite()
    return isinstance(value, int) or math.isfinite(value)


def shown(key: str, value: float | Decimal) -> str:
    """A number for a message: durations and money with their unit, others as they are."""
    if key.endswith("_usd") and is_finite(value):
        return f"{value} USD"
    if key.endswith("_s") and is_finite(value) and 0 <= value < 10**12:
        return format_duration(float(value))
    text = f"{value:.10g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _MAX_DIGITS else f"{text[:_MAX_DIGITS]}... ({len(text)} digits)"
