"""What every tuning method answers: the one abstract class of this room."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from scrimp.core.errors import SpecError
from scrimp.core.model import ModelShape
from scrimp.core.recipe import WeightDtype
from scrimp.methods.linear import Linear


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodOptions:
    """Options of a method; each method's file has its own subclass with defaults and their reasons."""


O = TypeVar("O", bound=MethodOptions)  # noqa: E741


class TuningMethod(ABC, Generic[O]):
    """One way to tune. Numbers come from the shape alone; `apply` is the only part that needs torch.

    name               the file name
    summary            one line for tables
    options_type       its options dataclass
    weight_dtypes      what the base weights may be stored in, the default first
    frozen_base        the base gets no weight gradient: 4 instead of 6 FLOPs a weight and token
    learning_rate      default, with its source in the method's file
    needs              importable packages beyond the train extra, with the extra that brings them
    """

    name: str
    summary: str
    options_type: type[O]
    weight_dtypes: tuple[WeightDtype, ...]
    frozen_base: bool
    learning_rate: float
    needs: tuple[tuple[str, str], ...] = ()

    @abstractmethod
    def check(self, options: O) -> None:
        """Refuse impossible options.

        Raises:
            SpecError: says which option and what would be possible.
        """

    @abstractmethod
    def trainable_params(self, shape: ModelShape, options: O) -> int:
        """How many parameters get a gradient.

        Raises:
            SpecError: the options name parts that a model of this shape does not have.
        """

    @abstractmethod
    def adapted_linears(self, shape: ModelShape, options: O) -> tuple[Linear, ...]:
        """The linear layers that carry an adapter; empty for methods without adapters."""

    @abstractmethod
    def variants(self, options: O) -> tuple[tuple[str, O], ...]:
        """Cheaper settings of the same method for the planner's remedies, each with its words; may be empty."""

    @abstractmethod
    def apply(self, model: Any, options: O) -> Any:
        """Make a loaded transformers model trainable by this method and return it (a PEFT model for adapters).

        The parameters counted by `trainable_params` get a gradient and no others. Adapters are in fp32, whatever the
        base is stored in.
        """

    @abstractmethod
    def save(self, model: Any, folder: str, *, base_model: str) -> None:
        """Write what users load afterwards: a PEFT adapter folder, or a whole model folder.

        `base_model` is what an adapter says that it belongs to: a name that means the same on other machines, where
        there is one.
        """


def must_be(condition: bool, *, method: str, option: str, value: object, expected: str, example: object) -> None:
    """Raise the SpecError for an impossible option value unless `condition` holds."""
    if not condition:
        raise SpecError(
            what=f'option "{option}" of method "{method}" is {value!r}',
            expected=expected,
            next_step=f"method: {{name: {method}, options: {{{option}: {example}}}}}",
        )
