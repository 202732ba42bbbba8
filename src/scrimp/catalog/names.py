"""Spellings of GPU names: keys that ignore case, blanks and dashes, and what a short name may stand for."""

import re
from collections.abc import Iterable
from functools import lru_cache

_NOT_NAME = re.compile(r"[^a-z0-9]")
_VENDOR = re.compile(r"^(?:nvidia|geforce|tesla|amd|instinct|intel)+")
_FORM_NUMBER = re.compile(r"^(sxm)\d$")


# Every offer row is matched against every card: the same few hundred spellings over and over.
@lru_cache(maxsize=4096)
def squeeze(name: str) -> str:
    """`NVIDIA GeForce RTX 4090` and `rtx-4090` as one key, `rtx4090`: lower case, no vendor, letters and digits."""
    return _VENDOR.sub("", _NOT_NAME.sub("", name.lower()))


@lru_cache(maxsize=1024)
def keys_of(name: str) -> tuple[str, ...]:
    """The keys a canonical name is found by; people leave out the RTX of GeForce cards (`4090`)."""
    key = squeeze(name)
    return (key, key[3:]) if key.startswith("rtx") and key[3:4].isdigit() else (key,)


def stands_for(query: str, name: str) -> bool:
    """Whether `query` is the family of the canonical `name` with some of its qualifiers, in any order.

    `a100`, `A100 80GB` and `a100 80 sxm` stand for A100-SXM4-80GB; `a10` does not.
    """
    family, *qualifiers = name.split("-")
    asked = squeeze(query)
    return any(asked.startswith(key) and _made_of(asked[len(key) :], qualifiers) for key in keys_of(family))


def _made_of(rest: str, qualifiers: Iterable[str]) -> bool:
    """Whether `rest` can be laid end to end from qualifiers, each used at most once."""
    if not rest:
        return True
    left = list(qualifiers)
    for index, qualifier in enumerate(left):
        others = left[:index] + left[index + 1 :]
        for form in _forms(qualifier.lower()):
            if rest.startswith(form) and _made_of(rest[len(form) :], others):
                return True
    return False


def _forms(qualifier: str) -> tuple[str, ...]:
    """Ways to say one qualifier, the longest first: sxm4 or sxm, 80gb or 80g or 80."""
    number = _FORM_NUMBER.match(qualifier)
    if number:
        return (qualifier, number.group(1))
    if qualifier.endswith("gb"):
        return (qualifier, qualifier[:-1], qualifier[:-2])
    return (qualifier,)
