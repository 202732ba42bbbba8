"""Reading a model's tokenizer and template from its folder."""

import json

import pytest

from scrimp.core.errors import SpecError
from scrimp.data.encode import encode_prompt, user_prompt
from scrimp.data.tokenizer import PLAIN_ORIGIN, ChatTokenizer


def test_special_tokens_vocabulary_and_template(tiny_tokenizer, tiny_tokenizer_folder):
    assert tiny_tokenizer.vocab_size == 1024
    assert (tiny_tokenizer.bos_id, tiny_tokenizer.eos_id, tiny_tokenizer.pad_id) == (1, 2, 2)
    assert tiny_tokenizer.name == tiny_tokenizer_folder.name
    assert tiny_tokenizer.template.origin == "chat_template.jinja"
    assert not tiny_tokenizer.template.marks_answers
    assert tiny_tokenizer.pieces.free


def test_text_comes_back_from_its_ids(tiny_tokenizer):
    text = "Naïve  words,\n\n漢字 🙂 and 1911."
    assert tiny_tokenizer.decode(tiny_tokenizer.encode_text(text)) == text
    ids = encode_prompt(user_prompt("Hi"), tiny_tokenizer)
    assert "<|im_start|>" not in tiny_tokenizer.decode(ids)
    assert tiny_tokenizer.decode(ids, skip_special=False).endswith("<|im_start|>assistant\n")


@pytest.mark.parametrize("kind", ["bytes", "blanks"])
def test_the_texts_of_tokens_join_to_the_text(chat_tokenizer, kind):
    tokenizer = chat_tokenizer("chatml", kind)
    text = "A word, then  another." + ("é漢🙂" if kind == "bytes" else "")
    ids = tokenizer.encode_text(text)
    texts = tokenizer.token_texts(ids)
    assert len(texts) == len(ids)
    assert "".join(texts) == text


def test_settings_that_cut_or_fill_texts_are_switched_off(model_folder):
    from tokenizers import Tokenizer

    folder = model_folder("chatml")
    saved = Tokenizer.from_file(str(folder / "tokenizer.json"))
    saved.enable_truncation(max_length=4)
    saved.enable_padding(length=64)
    saved.save(str(folder / "tokenizer.json"))
    tokenizer = ChatTokenizer.from_folder(folder)
    assert tokenizer.decode(tokenizer.encode_text("one two three four five six")) == "one two three four five six"


def test_the_template_of_its_own_file_goes_before_the_one_in_the_config(model_folder):
    folder = model_folder("chatml", chat_template="from the config")
    assert ChatTokenizer.from_folder(folder).template.origin == "chat_template.jinja"
    (folder / "chat_template.jinja").unlink()
    assert ChatTokenizer.from_folder(folder).template.text == "from the config"
    named = [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "the default"}]
    folder = model_folder("chatml", chat_template=named)
    (folder / "chat_template.jinja").unlink()
    assert ChatTokenizer.from_folder(folder).template.text == "the default"
    folder = model_folder("chatml")
    (folder / "chat_template.jinja").unlink()
    assert ChatTokenizer.from_folder(folder).template.origin == PLAIN_ORIGIN


def test_special_tokens_may_be_objects_or_stand_in_their_own_file(model_folder):
    folder = model_folder("chatml", eos_token={"content": "</s>", "lstrip": False}, bos_token=None)
    (folder / "special_tokens_map.json").write_text(json.dumps({"unk_token": "<s>"}), encoding="utf-8")
    tokenizer = ChatTokenizer.from_folder(folder)
    assert tokenizer.special["eos_token"] == "</s>"
    assert tokenizer.special["unk_token"] == "<s>"
    assert tokenizer.bos_id is None
    assert not tokenizer.adds_bos


def test_dates_in_templates_hold_still(model_folder):
    folder = model_folder("chatml")
    (folder / "chat_template.jinja").write_text("{{ strftime_now('%d %b %Y') }}", encoding="utf-8")
    assert ChatTokenizer.from_folder(folder).template.render([]) == "26 Jul 2024"


@pytest.mark.parametrize(
    "attack",
    [
        "{{ ''.__class__.__mro__ }}",
        "{% set ns = namespace() %}{% set ns.__class__ = 1 %}",
        "{{ namespace(_secret=1) }}",
        "{{ messages.append(1) }}",
    ],
)
def test_templates_run_in_a_sandbox(model_folder, attack):
    from jinja2.exceptions import SecurityError

    folder = model_folder("chatml")
    (folder / "chat_template.jinja").write_text(attack, encoding="utf-8")
    template = ChatTokenizer.from_folder(folder).template
    with pytest.raises(SecurityError):
        template.render([{"role": "user", "content": "a"}])


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("tokenizer.json", "{}", "not a readable tokenizer"),
        ("tokenizer_config.json", "{", "not valid JSON"),
        ("chat_template.jinja", "{% for %}", "broken at line 1"),
    ],
)
def test_broken_files_are_named(model_folder, name, text, part):
    folder = model_folder("chatml")
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        ChatTokenizer.from_folder(folder)
    assert name in caught.value.what
    assert part in caught.value.what


def test_a_folder_without_a_tokenizer_says_so(tmp_path):
    with pytest.raises(SpecError, match="no tokenizer"):
        ChatTokenizer.from_folder(tmp_path)
    with pytest.raises(SpecError, match="no tokenizer"):
        ChatTokenizer.from_folder(tmp_path / "nowhere")
