"""How much there is to compute for one token: weights passed, attention, passes over the weights.

Per token, P linear weights passed (experts: the active ones), L layers, d = heads x head_dim, S attended length:

    forward pass           2 P + a          a = 2 L d S (causal attention)
    backward, frozen base  2 P + 2 a        input gradients alone: 4 P in all ("4N")
    backward, all trained  4 P + 2 a        6 P in all ("6N")
    checkpointing, full    2 P + a more     one forward pass again
    selective              traffic alone    products and attention are kept; what lies between them is computed again

Checks: NVIDIA's MLPerf configuration counts 2,598 TFLOP for 8,192 tokens of Llama-2-70B LoRA, 4 P + 3 a gives 2,516;
GPT-3 is 6 x 175e9 x 300e9 = 3.15e23.
"""

from dataclasses import dataclass
from functools import lru_cache

from scrimp.core.model import ModelShape
from scrimp.core.recipe import Checkpointing


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """What one token costs in a model.

    linear_params    weights inside the layers that a token is multiplied with
    head_params      weights of the output head
    stored_params    all weights of the model (what sharding moves and 4-bit loading unpacks)
    """

    linear_params: float
    head_params: float
    stored_params: float
    layers: int
    attention_width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Passes over the weights for one token: `products` counts forward and backward, `attention` likewise.

    `again` is how many of them are forward passes computed a second time. `again_bytes` is the traffic of what is
    computed again without products: norms, activation functions, casts. `interpreted` says that every operator of two
    of the passes goes through Python, as under selective checkpointing.
    """

    products: int
    attention: int
    weights: int
    again: int = 0
    again_bytes: float = 0.0
    interpreted: bool = False

    @property
    def launches(self) -> int:
        """Passes by the time that launching takes, whatever the tokens.

        32 tokens through SmolLM2-135M with LoRA took 0.30 s without checkpointing (2 passes), 0.50 s with full (3) and
        0.59 s with selective: the interpreter's share is about one more.
        """
        return self.weights + (1 if self.interpreted else 0)

    @property
    def between(self) -> int:
        """Passes over all that lies between products: one forward, two backward, one when computed again."""
        return 1 if self.weights == 1 else 3 + self.again


@lru_cache(maxsize=64)
def arithmetic_of(shape: ModelShape) -> Arithmetic:
    """Counted from a model's shape; a plan asks thousands of times for the same one."""
    return Arithmetic(
        linear_params=shape.matmul_params - shape.embedding_params,
        head_params=shape.embedding_params,
        stored_params=shape.params,
        layers=shape.layers,
        attention_width=shape.attention_width,
    )


def training_passes(*, frozen_base: bool, checkpointing: Checkpointing) -> Passes:
    """Forward, backward and, with full checkpointing, forward again.

    Selective checkpointing keeps what products and attention give, and passes the weights again all the same: sharded
    ones are gathered and 4-bit ones unpacked.
    """
    again = 1 if checkpointing == "full" else 0
    weights = 2 if checkpointing == "none" else 3
    return Passes(
        products=(2 if frozen_base else 3) + again, attention=3 + again, weights=weights, again=again,
        interpreted=checkpointing == "selective",
    )  # fmt: skip


EVALUATION = Passes(products=1, attention=1, weights=1)
