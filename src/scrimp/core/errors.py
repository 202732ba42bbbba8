"""Every error that scrimp raises on purpose.

    ScrimpError                    exit 1
    ├── SpecError                  exit 2   the spec, an option or an argument is wrong
    ├── DataError                  exit 3   the data set cannot be trained on
    ├── UnknownNameError           exit 4   no such GPU, model, provider, method or run
    ├── NoPlanError                exit 5   nothing fits, or no plan meets the limits
    ├── BudgetError                exit 6   a spending or time limit stops or refuses the work
    ├── MissingPackageError        exit 7   an extra is not installed
    ├── ResourceError              exit 8   disk, memory or a device is not enough
    ├── CheckpointError            exit 9   nothing whole to resume from, or it does not match
    ├── TrainingError              exit 10  the training itself went wrong (NaN loss, dead adapter)
    ├── NetworkError               exit 11  a hub or price source could not be reached
    └── InterruptedRunError        exit 130 stopped by a signal after a checkpoint

A message has three parts: what happened, what was expected, what to type next.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class ScrimpError(Exception):
    """Root of the tree; `exit_code` is what the command line ends with."""

    exit_code = 1

    def __init__(self, *, what: str, expected: str = "", next_step: str = "") -> None:
        """Keep the three parts apart so that every front end can lay them out."""
        self.what = what
        self.expected = expected
        self.next_step = next_step
        super().__init__(str(self))

    def __str__(self) -> str:
        """The three parts on lines of their own; empty parts are left out."""
        lines = [self.what]
        if self.expected:
            lines.append(f"expected: {self.expected}")
        if self.next_step:
            lines.append(f"next: {self.next_step}")
        return "\n".join(lines)


class SpecError(ScrimpError):
    """A spec file, an override or an option is wrong."""

    exit_code = 2


class DataError(ScrimpError):
    """The data set cannot be read or holds nothing to train on."""

    exit_code = 3


class UnknownNameError(ScrimpError):
    """A name that nothing here carries."""

    exit_code = 4


class NoPlanError(ScrimpError):
    """No candidate fits, or none meets the budget and the deadline."""

    exit_code = 5


class BudgetError(ScrimpError):
    """A limit on money or time refuses or stops the work."""

    exit_code = 6


class MissingPackageError(ScrimpError):
    """An optional package is not installed."""

    exit_code = 7


class ResourceError(ScrimpError):
    """Disk, memory or a device is not enough."""

    exit_code = 8


class CheckpointError(ScrimpError):
    """No whole checkpoint, or one that belongs to another job."""

    exit_code = 9


class TrainingError(ScrimpError):
    """The training itself failed: a loss that is not a number, an adapter that does not learn."""

    exit_code = 10


class NetworkError(ScrimpError):
    """A hub or a price source could not be reached."""

    exit_code = 11


class InterruptedRunError(ScrimpError):
    """A signal stopped the run after a checkpoint was written."""

    exit_code = 130


def error_class(exit_code: int) -> type[ScrimpError]:
    """The class whose exit code that is; the root for codes that no class has."""
    return next((item for item in ScrimpError.__subclasses__() if item.exit_code == exit_code), ScrimpError)


def error_from(text: str, *, exit_code: int) -> ScrimpError:
    """The error whose `str` another process wrote down, with its parts and its class."""
    what, _, next_step = text.partition("\nnext: ")
    what, _, expected = what.partition("\nexpected: ")
    return error_class(exit_code)(what=what, expected=expected, next_step=next_step)


def nearest(name: str, known: Iterable[str], *, count: int = 3) -> tuple[str, ...]:
    """The known names most like `name`, best first, compared without case."""
    by_lower = {item.lower(): item for item in known}
    found = get_close_matches(name.lower(), by_lower, n=count, cutoff=0.5)
    return tuple(by_lower[item] for item in found)


def unknown_name(kind: str, name: str, known: Iterable[str], *, list_command: str) -> UnknownNameError:
    """The error for a name that is not known: it suggests the nearest and how to list all."""
    close = nearest(name, known)
    hint = f"Did you mean {' or '.join(close)}? " if close else ""
    return UnknownNameError(
        what=f'{kind} "{name}" is not known',
        expected=f"{hint}one of the known names".strip(),
        next_step=list_command,
    )
