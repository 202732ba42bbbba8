"""What each kind of checkpointing holds for backward and costs, on the bundled model and this machine's CPU.

    python benchmarks/checkpointing.py [--tokens 512] [--rounds 3] [--only WORDS]

Forward and backward over one row, one thread. Bytes: storages that live between the two, beyond the weights, for each
token and layer. Seconds: CPU time of this process, the least of the rounds; the kinds take turns, so that what else the
machine does falls on all alike. Loss and gradients must have the same bits under all three.
"""

import argparse
import gc
import os
import time
from pathlib import Path

KINDS = ("none", "selective", "full")


def arms():
    """(label, method, weight dtype, compute dtype)."""
    from scrimp.core.job import MethodChoice

    return (
        ("lora, dropout, bf16", MethodChoice(name="lora", options={"rank": 8, "dropout": 0.1}), "bf16", "bf16"),
        ("lora, bf16", MethodChoice(name="lora", options={"rank": 8}), "bf16", "bf16"),
        ("full, fp32 in bf16", MethodChoice(name="full"), "fp32", "bf16"),
        ("full, fp32", MethodChoice(name="full"), "fp32", "fp32"),
    )


def recipe_of(folder: Path, method, weights: str, compute: str, kind: str):
    """What loading reads of a recipe; the rest is never looked at."""
    from dataclasses import replace

    from scrimp.calibrate.table import BLANK_RECIPE

    return replace(
        BLANK_RECIPE, model=str(folder), method=method, weight_dtype=weights, compute_dtype=compute, checkpointing=kind
    )


class Arm:
    """One model ready to go forward and backward over `tokens` tokens."""

    def __init__(self, folder: Path, recipe, tokens: int) -> None:
        import torch

        from scrimp.train.attention import BY_DOCUMENT
        from scrimp.train.load import load_model

        self.loaded = load_model(folder, recipe, torch.device("cpu"))
        self.loaded.module.train()
        self.loaded.base.set_attn_implementation(BY_DOCUMENT)
        self.tokens = tokens
        self.ids = torch.arange(tokens)[None] % 1000 + 5

    def forward(self):
        """A loss that every hidden state takes part in; the head would only add to all kinds alike."""
        import torch

        from scrimp.train.hardware import compute_context

        torch.manual_seed(1)
        for each in self.loaded.trainable.values():
            each.grad = None
        with compute_context(self.loaded.device, self.loaded.compute_dtype):
            decoder = self.loaded.base.get_decoder()
            hidden = decoder(input_ids=self.ids, use_cache=False, document_lengths=[self.tokens]).last_hidden_state
        return hidden.float().pow(2).mean()

    def seconds(self) -> float:
        """CPU seconds of one forward and backward pass."""
        began = time.process_time()
        self.forward().backward()
        return time.process_time() - began

    def held_bytes(self) -> int:
        """Storages made by the forward pass that are still alive at its end; then backward, for the gradients."""
        import torch
        from torch.multiprocessing.reductions import StorageWeakRef
        from torch.utils._python_dispatch import TorchDispatchMode
        from torch.utils._pytree import tree_leaves

        made: dict[int, tuple[StorageWeakRef, int]] = {}

        class Watch(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                result = func(*args, **(kwargs or {}))
                for each in tree_leaves(result):
                    if isinstance(each, torch.Tensor):
                        storage = each.untyped_storage()
                        made[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
                return result

        weights = {each.untyped_storage()._cdata for each in self.loaded.module.parameters()}
        with Watch():
            loss = self.forward()
        gc.collect()
        held = sum(size for key, (alive, size) in made.items() if not alive.expired() and key not in weights)
        loss.backward()
        return held

    def gradients(self):
        """A copy by name."""
        return {name: each.grad.clone() for name, each in self.loaded.trainable.items()}


def main() -> None:
    """Print a line for each arm and kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="arms whose label holds these words")
    asked = parser.parse_args()

    import torch

    from scrimp.models.prepare import prepare
    from scrimp.models.resolve import resolve

    torch.set_num_threads(1)
    source = prepare(resolve("smollm2-135m-instruct", env=os.environ), env=os.environ, report=lambda text: None)
    folder = Path(source.folder or "")
    print(f"{'':22}{'kind':12}{'B/token/layer':>14}{'CPU s':>8}{'time':>8}")
    for label, *of in (arm for arm in arms() if asked.only in arm[0]):
        made = {kind: Arm(folder, recipe_of(folder, *of, kind), asked.tokens) for kind in KINDS}
        held = {kind: arm.held_bytes() for kind, arm in made.items()}
        reference = made["none"].gradients()
        for kind, arm in made.items():
            if not all(torch.equal(reference[name], grad) for name, grad in arm.gradients().items()):
                raise SystemExit(f"{label}: gradients under {kind} are not those without checkpointing")
        rounds = [{kind: arm.seconds() for kind, arm in made.items()} for _ in range(asked.rounds)]
        least = {kind: min(each[kind] for each in rounds) for kind in KINDS}
        layers = made["none"].loaded.base.config.num_hidden_layers
        for kind in KINDS:
            print(
                f"{label:22}{kind:12}{held[kind] / asked.tokens / layers:14,.0f}{least[kind]:8.2f}"
                f"{least[kind] / least['none']:7.0%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
