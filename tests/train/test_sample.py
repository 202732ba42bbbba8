"""Prompts and greedy answers."""

from pathlib import Path

import pytest

from scrimp.core.job import DataSpec
from scrimp.data.dataset import load_dataset
from scrimp.data.tokenizer import ChatTokenizer

pytestmark = pytest.mark.train


@pytest.fixture
def tokenizer(tiny_model_folder):
    return ChatTokenizer.from_folder(tiny_model_folder)


def _prompts(spec, tokenizer, texts=()):
    from scrimp.train.sample import choose_prompts

    return choose_prompts(texts, spec, load_dataset(spec, tokenizer, base=Path.cwd()), tokenizer)


def test_the_jobs_prompts_are_asked_as_the_template_writes_them(tokenizer, tiny_rows_path):
    spec = DataSpec(path=str(tiny_rows_path), system_prompt="Be brief.")
    (prompt,) = _prompts(spec, tokenizer, ("Define hope.",))
    assert prompt.text == "Define hope."
    assert tokenizer.decode(prompt.tokens, skip_special=False) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nDefine hope.<|im_end|>\n<|im_start|>assistant\n"
    )


def test_else_the_questions_of_evaluation_rows_without_their_answers(tokenizer, tiny_rows_path):
    spec = DataSpec(path=str(tiny_rows_path), eval_share=0.2)
    prompts = _prompts(spec, tokenizer)
    rows = load_dataset(spec, tokenizer, base=Path.cwd()).evaluation
    assert len(prompts) == 2
    for prompt, row in zip(prompts, rows, strict=False):
        assert list(prompt.tokens) == list(row.tokens[: len(prompt.tokens)])
        assert row.labels_mask.index(1) == len(prompt.tokens)
        assert prompt.text.startswith('Define the word "')
        assert prompt.text.endswith("in the manner of The Devil's Dictionary.")


def test_of_plain_text_the_beginning_is_given(tokenizer, write_rows):
    path = write_rows(
        [{"text": f"{word} is a word that is used in many long sentences of this kind"} for word in "abcdefghij"]
    )
    prompts = _prompts(DataSpec(path=str(path), eval_share=0.3), tokenizer)
    assert prompts
    assert all(0 < len(prompt.tokens) <= 16 for prompt in prompts)
    assert all("is a word" in prompt.text for prompt in prompts)


def test_an_answer_is_what_greedy_decoding_gives_and_the_model_is_put_back(tokenizer, tiny_model_folder, recipe):
    import torch

    from scrimp.train.forward import Forward
    from scrimp.train.load import load_model
    from scrimp.train.sample import Prompt, answer

    loaded = load_model(tiny_model_folder, recipe(), torch.device("cpu"))
    loaded.base.set_attn_implementation("scrimp_by_document")
    loaded.module.train()
    forward = Forward(loaded=loaded, layout="packed", attention="scrimp_by_document", head=None, pad_id=2)
    tokens = tuple(tokenizer.encode_text("What is hope? A prize in"))
    said = answer(forward, Prompt(text="", tokens=tokens), tokenizer, new_tokens=9)
    assert loaded.base.config._attn_implementation == "scrimp_by_document"
    assert {each.training for each in loaded.module.modules()} == {True}
    loaded.module.eval()
    written = list(tokens)
    with torch.no_grad():
        for _ in range(9):
            following = int(loaded.base(input_ids=torch.tensor([written])).logits[0, -1].argmax())
            if following == tokenizer.eos_id:
                break
            written.append(following)
    assert said == tokenizer.decode(written[len(tokens) :]).strip()
