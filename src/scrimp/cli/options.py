"""Options that several verbs share, defined once."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def json_option(function: F) -> F:
    """`--json`: the result as one JSON document on stdout, nothing else there."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on stdout.")(function)


def overrides_argument(function: F) -> F:
    """`key=value` pairs that change single values of the spec, e.g. training.epochs=2."""
    return click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")(function)
