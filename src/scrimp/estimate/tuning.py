"""A tuning method as the formulas see it: counts and widths, no names."""

from dataclasses import dataclass
from functools import lru_cache

from scrimp import methods
from scrimp.core.job import MethodChoice, OptionValue
from scrimp.core.model import ModelShape
from scrimp.methods.linear import Linear


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What a method does to a model of one shape.

    `adapted` are the linear layers with an adapter; `dropout` the share dropped in front of each adapter.
    """

    frozen_base: bool
    trainable_params: int
    adapted: tuple[Linear, ...]
    dropout: float = 0.0


def tuning_of(shape: ModelShape, choice: MethodChoice) -> Tuning:
    """Ask the methods room.

    Raises:
        UnknownNameError, SpecError: no such method, or impossible options.
    """
    options = tuple(
        (key, tuple(value) if isinstance(value, list | tuple) else value) for key, value in choice.options.items()
    )
    return _tuning(shape, choice.name, options)


@lru_cache(maxsize=256)
def _tuning(shape: ModelShape, name: str, options: tuple[tuple[str, OptionValue], ...]) -> Tuning:
    """A plan asks thousands of times for the same few answers."""
    method = methods.get(name)
    made = methods.options_for(name, dict(options))
    return Tuning(
        frozen_base=method.frozen_base,
        trainable_params=method.trainable_params(shape, made),
        adapted=method.adapted_linears(shape, made),
        dropout=float(getattr(made, "dropout", 0.0)),
    )
