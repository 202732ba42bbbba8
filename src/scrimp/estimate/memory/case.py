"""What a memory forecast is made from, resolved once: bytes of weights, gradients and optimizer states."""

from dataclasses import dataclass

from scrimp.core.model import ModelShape
from scrimp.core.recipe import Recipe, WeightDtype
from scrimp.estimate.stack import Stack
from scrimp.estimate.tuning import Tuning
from scrimp.methods.linear import packable_params

# Bytes of a linear weight inside the layers. NF4 with double quantisation (Dettmers et al. 2023, section 3): 4 bits,
# an 8-bit scale per 64 weights and an fp32 scale per 256 scales. int8: one byte and an fp32 scale a row.
LINEAR_BYTES: dict[WeightDtype, float] = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0, "int8": 1.004, "nf4": 0.516}
# NF4 with one fp32 scale per 64 weights.
NF4_SINGLE_BYTES = 0.5625
# Embedding, head and norms are not packed, bar the heads of `Stack.packs_head`.
OTHER_BYTES: dict[WeightDtype, float] = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0, "int8": 2.0, "nf4": 2.0}

# Values that share a scale in 8-bit optimizer states (Dettmers et al. 2022, arXiv:2110.02861; bitsandbytes 0.43 on).
OPTIMIZER_BLOCK = 256
# Both moments of one trained value in 8 bit, with an fp32 scale a block.
PACKED_STATE_BYTES = 2 * (1 + 4 / OPTIMIZER_BLOCK)

# A logit of a piece: in fp32, where its gradient is formed in place, beside its 16-bit form before and after.
PIECE_BYTES = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCase:
    """One model, recipe and software on `gpus` cards.

    `trained_share` is the share of a micro-batch's tokens that carry a label, at its worst.
    """

    shape: ModelShape
    recipe: Recipe
    tuning: Tuning
    gpus: int
    longest_row_tokens: int
    trained_share: float
    stack: Stack

    @property
    def tokens(self) -> int:
        """Tokens of the fullest micro-batch: one row always fits."""
        return max(self.recipe.micro_batch_tokens, self.longest_row_tokens)

    @property
    def scored_tokens(self) -> float:
        """Tokens of it whose logits are made."""
        return self.tokens * (self.trained_share if self.recipe.loss == "selected" else 1.0)

    @property
    def logits_bytes(self) -> float:
        """What the loss holds beyond the hidden states, at its peak: logits, their copies and their gradient.

        Made in pieces, a logit is there in fp32 and in 16 bit. A trained head gathers its gradient in fp32, and adds
        that of a piece to it: in 16 bit beside the piece's logits, then in fp32 as well. Made at once, it is whatever
        the software keeps of it.
        """
        logits = self.scored_tokens * self.shape.vocab
        if self.recipe.loss == "fused":
            return 0.0
        if self.recipe.loss == "full" or self.stack.piece_logits is None:
            return logits * self.stack.full_loss_bytes
        piece = min(logits, self.stack.piece_logits)
        if self.tuning.frozen_base:
            return piece * PIECE_BYTES
        head = self.shape.embedding_params
        return 4 * head + max(piece * PIECE_BYTES + 2 * head, piece * 4 + 6 * head)

    @property
    def makes_pieces(self) -> bool:
        """Whether logits are made in pieces, and only where there is a label."""
        return self.recipe.loss == "selected" and self.stack.piece_logits is not None

    @property
    def shards(self) -> int:
        """Over how many cards the weights are split."""
        return max(1, self.gpus) if self.recipe.sharding == "fsdp" else 1

    @property
    def state_shards(self) -> int:
        """Over how many cards gradients and optimizer states are split."""
        return max(1, self.gpus) if self.recipe.sharding in {"fsdp", "zero2"} else 1

    @property
    def compute_bytes(self) -> int:
        """Bytes of one value in matrix products."""
        return 4 if self.recipe.compute_dtype == "fp32" else 2

    @property
    def autocasts_weights(self) -> bool:
        """Whether fp32 weights are cast to 16 bit for each product; sharded ones are cast when they are gathered."""
        return self.recipe.weight_dtype == "fp32" and self.compute_bytes == 2 and self.shards == 1

    @property
    def residual_bytes(self) -> int:
        """Bytes of one value of the residual stream: autocast leaves it in the dtype of the embedding."""
        return 4 if self.autocasts_weights or self.upcasts else self.compute_bytes

    @property
    def upcasts(self) -> bool:
        """Whether what is not packed is kept in fp32."""
        return self.stack.upcasts_16bit and self.shards == 1

    @property
    def other_params(self) -> int:
        """Embedding, head and norms."""
        return self.shape.params - self.shape.linear_params

    @property
    def weight_bytes(self) -> float:
        """The model's own weights, whole."""
        other = 4.0 if self.upcasts else OTHER_BYTES[self.recipe.weight_dtype]
        dtype = self.recipe.weight_dtype
        leaves_experts = self.shape.experts and dtype in ("nf4", "int8") and not self.stack.packs_experts
        packed = packable_params(self.shape) if leaves_experts else self.shape.linear_params
        packed += self.shape.embedding_params if self.packs_head else 0
        return packed * self._linear_bytes + (self.shape.params - packed) * other

    @property
    def packs_head(self) -> bool:
        """Whether the output head is stored in 4 bits; a tied one is the embedding and is not."""
        return self.stack.packs_head and self.recipe.weight_dtype == "nf4" and not self.shape.tied_embeddings

    @property
    def _linear_bytes(self) -> float:
        if self.recipe.weight_dtype == "nf4" and not self.stack.double_quantised:
            return NF4_SINGLE_BYTES
        return LINEAR_BYTES[self.recipe.weight_dtype]

    @property
    def gradient_bytes(self) -> float:
        """One gradient a trainable weight in that weight's dtype; adapters are fp32 unless they follow the base."""
        if not self.tuning.frozen_base:
            each = OTHER_BYTES[self.recipe.weight_dtype]
        else:
            each = float(self.compute_bytes) if self.stack.adapter_math == "base" else 4.0
        return self.tuning.trainable_params * each

    @property
    def adapter_bytes(self) -> float:
        """Adapter weights; none when the base itself is trained."""
        return self.gradient_bytes if self.tuning.frozen_base else 0.0

    @property
    def live_gradient_bytes(self) -> float:
        """Gradients that exist all at once."""
        return 0.0 if self.stack.optimizer_step == "in_backward" else self.gradient_bytes

    @property
    def state_bytes(self) -> float:
        """Adam's two moments and an fp32 copy of 16-bit weights where the software keeps one.

        Plain SGD has no moments; paged ones live outside the allocator; 8-bit ones carry an fp32 scale a block.
        """
        trained = self.shape.params if self.stack.flat_shards else self.tuning.trainable_params
        master = 4.0 * trained if self.stack.master_weights else 0.0
        if self.recipe.optimizer in {"sgd", "paged_adamw", "paged_adamw_8bit"}:
            return master
        if self.recipe.optimizer == "adamw_8bit":
            return master + trained * PACKED_STATE_BYTES
        if self.stack.flat_shards:
            return 2.0 * trained * self.compute_bytes
        return master + (8.0 * trained if self.stack.master_weights else 2 * self.gradient_bytes)

    @property
    def largest_linear_params(self) -> int:
        """Weights of the largest matrix inside a layer."""
        width = max(self.shape.intermediate, self.shape.dense_intermediate, self.shape.shared_intermediate)
        return self.shape.hidden * max(width, self.shape.attention_width)
