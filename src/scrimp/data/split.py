"""Which rows train and which evaluate: by split name, or by a hash of the content."""

import re
from collections.abc import Iterable
from typing import Literal

SplitKind = Literal["train", "evaluation", "other"]

_TRAIN_WORDS = {"train", "training"}
_EVALUATION_WORDS = {"test", "testing", "validation", "valid", "val", "dev", "eval", "evaluation"}


def named_split(name: str) -> str | None:
    """The split that a file name speaks of (`train-00000-of-00002`, `my_test.v2`), None when it names none."""
    words = re.split(r"[^a-z]+", name.lower())
    if any(word in _EVALUATION_WORDS for word in words):
        return next(word for word in words if word in _EVALUATION_WORDS)
    return "train" if any(word in _TRAIN_WORDS for word in words) else None


def kind_of(split: str, *, train: str) -> SplitKind:
    """What a split named `split` is for when the one named `train` was asked for to train on.

    `test_sft` beside `train_sft` counts as evaluation; a second training split (`train_gen`) is neither.
    """
    if split == train:
        return "train"
    return "evaluation" if named_split(split) in _EVALUATION_WORDS else "other"


def are_split_names(values: Iterable[str], *, train: str) -> bool:
    """Whether a column called `split` really holds splits and not, say, the halves of a sentence."""
    return any(value == train or named_split(value) is not None for value in values)


def evaluates(key: bytes, *, share: float) -> bool:
    """Whether the row with this content hash is held out, when `share` of all rows should be.

    Depends on nothing but the row itself, so new rows never move old ones across.
    """
    return int.from_bytes(key[:8], "big") < share * 2**64
