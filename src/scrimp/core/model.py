"""The shape of a causal language model: what memory and time follow from, without any weights."""

from dataclasses import dataclass
from typing import Literal

ModelKind = Literal["bundled", "folder", "config", "hub", "table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """Dimensions out of a config.json. `source` says where they were read, with a date or revision.

    For a mixture of experts `intermediate` is the width of one expert and `shared_intermediate` that of
    the always-on expert (0 when there is none); dense layers in front are `dense_layers` of width `dense_intermediate`.
    """

    name: str
    family: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    max_positions_tokens: int
    tied_embeddings: bool
    gated_mlp: bool = True
    attention_bias: bool = False
    qk_norm: bool = False
    experts: int = 0
    experts_active: int = 0
    shared_intermediate: int = 0
    dense_layers: int = 0
    dense_intermediate: int = 0
    native_dtype: str = "bf16"
    source: str = ""

    @property
    def attention_width(self) -> int:
        """heads x head_dim: the width of the query projection."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """kv_heads x head_dim: the width of the key and of the value projection."""
        return self.kv_heads * self.head_dim

    @property
    def attention_params(self) -> int:
        """Weights of q, k, v and o in one layer, biases of q, k, v included."""
        weights = self.hidden * (2 * self.attention_width + 2 * self.kv_width)
        return weights + (self.attention_width + 2 * self.kv_width if self.attention_bias else 0)

    def mlp_params(self, width: int) -> int:
        """Weights of one feed-forward block of that width: 3 matrices when gated, else 2."""
        return (3 if self.gated_mlp else 2) * self.hidden * width

    @property
    def layer_params(self) -> int:
        """Linear weights of one layer (of one of the expert layers in a mixture)."""
        if not self.experts:
            return self.attention_params + self.mlp_params(self.intermediate)
        router = self.hidden * self.experts
        experts = self.experts * self.mlp_params(self.intermediate)
        return self.attention_params + experts + self.mlp_params(self.shared_intermediate) + router

    @property
    def active_layer_params(self) -> int:
        """Linear weights of one layer that one token multiplies."""
        if not self.experts:
            return self.layer_params
        active = self.experts_active * self.mlp_params(self.intermediate)
        shared = self.mlp_params(self.shared_intermediate)
        return self.attention_params + active + shared + self.hidden * self.experts

    @property
    def _dense_layer_params(self) -> int:
        return self.attention_params + self.mlp_params(self.dense_intermediate or self.intermediate)

    @property
    def norm_params(self) -> int:
        """Weights of all norms: two a layer, one at the end, and the per-head ones where there are any."""
        per_layer = 2 * self.hidden + (2 * self.head_dim if self.qk_norm else 0)
        return self.layers * per_layer + self.hidden

    @property
    def embedding_params(self) -> int:
        """The input embedding; a tied output head shares it."""
        return self.vocab * self.hidden

    @property
    def linear_params(self) -> int:
        """All linear weights inside the layers: what adapters sit on and what 4-bit loading packs."""
        sparse = self.layers - self.dense_layers
        return sparse * self.layer_params + self.dense_layers * self._dense_layer_params

    @property
    def params(self) -> int:
        """All parameters."""
        head = 0 if self.tied_embeddings else self.embedding_params
        return self.linear_params + self.norm_params + self.embedding_params + head

    @property
    def matmul_params(self) -> int:
        """Weights that one token is multiplied with: active linears and the output head, no input embedding."""
        sparse = self.layers - self.dense_layers
        layers = sparse * self.active_layer_params + self.dense_layers * self._dense_layer_params
        return layers + self.embedding_params


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSource:
    """Where a model's files are. `folder` is None when only the shape is known (table, hub without network)."""

    name: str
    kind: ModelKind
    folder: str | None
    revision: str | None
    shape: ModelShape
