"""Answers of the model to a few prompts, before and after: the same prompt, the most likely token each time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from scrimp.core.job import DataSpec
from scrimp.data.dataset import Dataset
from scrimp.data.encode import encode_prompt, user_prompt
from scrimp.data.row import EncodedRow
from scrimp.data.tokenizer import ChatTokenizer
from scrimp.train.forward import Forward
from scrimp.train.hardware import compute_context

# Tokens of an answer at most.
NEW_TOKENS = 64
_DEFAULT_PROMPTS = 2
# Of plain text, which has no question, the beginning is given.
_TEXT_PROMPT_TOKENS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What is asked, as text for people and as tokens for the model."""

    text: str
    tokens: tuple[int, ...]


def choose_prompts(
    texts: Sequence[str], spec: DataSpec, dataset: Dataset, tokenizer: ChatTokenizer
) -> tuple[Prompt, ...]:
    """The job's own prompts, else those of the first two evaluation rows."""
    if texts:
        return tuple(
            Prompt(
                text=text,
                tokens=tuple(encode_prompt(user_prompt(text, system_prompt=spec.system_prompt), tokenizer)),
            )
            for text in texts
        )
    return tuple(_prompt_of(row, tokenizer) for row in dataset.evaluation[:_DEFAULT_PROMPTS])


def answer(forward: Forward, prompt: Prompt, tokenizer: ChatTokenizer, *, new_tokens: int = NEW_TOKENS) -> str:
    """The model's answer, greedy, with its usual attention and a cache; training mode and attention are put back."""
    loaded, base = forward.loaded, forward.loaded.base
    loaded.module.eval()
    base.set_attn_implementation(_usual_attention(base))
    input_ids = torch.tensor([prompt.tokens], device=loaded.device)
    try:
        with torch.no_grad(), compute_context(loaded.device, loaded.compute_dtype):
            found = base.generate(
                input_ids=input_ids,
                attention_mask=torch.ones_like(input_ids),
                generation_config=_greedy(base, tokenizer, new_tokens),
            )
    finally:
        base.set_attn_implementation(forward.attention)
        loaded.module.train()
    return tokenizer.decode(found[0, len(prompt.tokens) :].tolist()).strip()


def _greedy(base: Any, tokenizer: ChatTokenizer, new_tokens: int) -> Any:
    from transformers import GenerationConfig

    named = getattr(base.generation_config, "eos_token_id", None)
    ends = set(named if isinstance(named, list) else [named]) | {tokenizer.eos_id}
    return GenerationConfig(
        max_new_tokens=new_tokens,
        do_sample=False,
        use_cache=True,
        eos_token_id=sorted(each for each in ends if each is not None) or None,
        pad_token_id=tokenizer.pad_id,
    )


def _usual_attention(base: Any) -> str:
    return "sdpa" if getattr(base, "_supports_sdpa", False) else "eager"


def _prompt_of(row: EncodedRow, tokenizer: ChatTokenizer) -> Prompt:
    """The tokens in front of the row's first answer."""
    tokens = tuple(row.tokens)
    first_answer = row.labels_mask.index(1)
    if first_answer <= 1:
        tokens = tokens[: min(_TEXT_PROMPT_TOKENS, max(1, len(tokens) // 2))]
        return Prompt(text=tokenizer.decode(tokens), tokens=tokens)
    tokens = tokens[:first_answer]
    return Prompt(text=_last_turn(tokens, tokenizer), tokens=tokens)


def _last_turn(tokens: Sequence[int], tokenizer: ChatTokenizer) -> str:
    """What the user said last: the longest stretch between special tokens among the last three."""
    special = {tokenizer.backend.token_to_id(name) for name in tokenizer.added.names}
    stretches: list[list[int]] = [[]]
    for token in tokens:
        if token in special:
            stretches.append([])
        else:
            stretches[-1].append(token)
    said = [stretch for stretch in stretches if stretch][-3:]
    text = tokenizer.decode(max(said, key=len, default=[])).strip()
    return text.removeprefix("user").strip()
