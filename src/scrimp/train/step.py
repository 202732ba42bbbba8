"""What every optimizer step begins with: random numbers of its own, and gradients summed over its micro-batches."""

import hashlib
from collections.abc import Sequence

import torch

from scrimp.train.session import Session


def seed_step(seed: int, step: int) -> None:
    """Random numbers of a step (dropout) follow from seed and step alone, so a resumed run draws the same ones."""
    mixed = hashlib.sha256(f"scrimp step {seed} {step}".encode()).digest()
    torch.manual_seed(int.from_bytes(mixed[:8], "big") >> 1)


def backward(session: Session, groups: Sequence[Sequence[int]], *, factor: float) -> float:
    """Forward and back over micro-batches of training rows; the sum of their losses, each times `factor`."""
    losses: list[torch.Tensor] = []
    for group in groups:
        batch = session.forward.lay_out([session.dataset.train[row] for row in group])
        loss = session.forward.loss(batch, factor=factor)
        loss.backward()
        losses.append(loss.detach())
    return float(torch.stack(losses).sum())
