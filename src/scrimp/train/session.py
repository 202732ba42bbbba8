"""What one attempt works with, and how far it has come."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from scrimp.core.recipe import ResolvedJob
from scrimp.data.batches import micro_batches
from scrimp.data.dataset import Dataset
from scrimp.data.tokenizer import ChatTokenizer
from scrimp.train.checkpoint import CheckpointState, CheckpointStore
from scrimp.train.clock import Clock
from scrimp.train.events import EventLog
from scrimp.train.forward import Forward
from scrimp.train.meter import Meter
from scrimp.train.optimizer import LossScale, optimizer_bytes
from scrimp.train.sample import Prompt
from scrimp.train.stop import StopSignals


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Everything that stays the same while one attempt trains.

    `facts` is what a checkpoint says beside its step: recipe, hashes of rows and model, versions. `idle_bytes` is what
    the driver showed as taken before this process used the card.
    """

    job: ResolvedJob
    folder: Path
    dataset: Dataset
    tokenizer: ChatTokenizer
    prompts: tuple[Prompt, ...]
    forward: Forward
    optimizer: torch.optim.Optimizer
    store: CheckpointStore
    facts: CheckpointState
    events: EventLog
    meter: Meter
    clock: Clock
    stop: StopSignals
    idle_bytes: int = 0

    @property
    def steps(self) -> int:
        """Optimizer steps of the whole run."""
        return self.job.steps.steps

    @property
    def checkpoint_bytes(self) -> int:
        """Size of one checkpoint: the trained tensors and the optimizer's state."""
        return self.forward.loaded.trainable_bytes + optimizer_bytes(self.optimizer)

    def total_tokens(self, rows: Sequence[int]) -> int:
        """Tokens of these training rows, without padding."""
        return sum(self.dataset.sizes.total_tokens[row] for row in rows)

    def memory_tokens(self, rows: Sequence[int]) -> int:
        """Tokens that these rows take as one micro-batch, padding included."""
        lengths = [self.dataset.sizes.total_tokens[row] for row in rows]
        return sum(lengths) if self.forward.layout == "packed" else max(lengths) * len(lengths)

    def micro_batches(self, rows: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """The rows of one step, divided as the recipe asks."""
        return micro_batches(
            rows,
            self.dataset.sizes.total_tokens,
            micro_batch_tokens=self.job.recipe.micro_batch_tokens,
            layout=self.forward.layout,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What changes from step to step, beside the tensors. `step` counts finished steps."""

    step: int = 0
    total_tokens: int = 0
    trained_tokens: int = 0
    train_s: float = 0.0
    loss: float = float("nan")
    loss_scale: LossScale = field(default_factory=LossScale)
