"""Token ids equal those of transformers' apply_chat_template."""

import os
from datetime import datetime
from pathlib import Path

import pytest

from scrimp.data.answers import render
from scrimp.data.encode import EncodeOptions, encode, encode_prompt
from scrimp.data.row import Conversation, EncodedRow, Message
from scrimp.data.tokenizer import ChatTokenizer

pytestmark = pytest.mark.train

STYLES = ("chatml", "mistral", "gemma", "marked", "marked_badly", "phi3", "harmony", "thinking")
CHATS = (
    ("What is love?", "A temporary insanity curable by marriage."),
    ("Define\n\nhope (n.)", "Desire and expectation rolled into one. ", "In é漢🙂 12345?", "No."),
    ("a", "b", "c  d", "e", "f <|im_end|> g", "<think>\nhm\n</think>\n\nh"),
)


def _conversation(texts, system=None) -> Conversation:
    turns = tuple(Message(role=("user", "assistant")[i % 2], content=text) for i, text in enumerate(texts))
    return Conversation(messages=turns).with_system(system)


def _both(folder: Path):
    from transformers import AutoTokenizer

    return ChatTokenizer.from_folder(folder), AutoTokenizer.from_pretrained(str(folder))


def _check(ours: ChatTokenizer, theirs, conversation: Conversation) -> None:
    messages = [message.for_template() for message in conversation.messages]
    expected = theirs.apply_chat_template(messages, tokenize=True, return_dict=False)
    row = encode(conversation, ours, EncodeOptions(max_length_tokens=10_000))
    assert isinstance(row, EncodedRow)
    assert list(row.tokens) == expected
    asked = theirs.apply_chat_template(messages[:-1], add_generation_prompt=True, tokenize=True, return_dict=False)
    assert encode_prompt(conversation.messages[:-1], ours) == asked


@pytest.mark.parametrize("kind", ["bytes", "blanks"])
@pytest.mark.parametrize("style", STYLES)
def test_conversations_and_prompts_have_the_same_ids(model_folder, style, kind):
    ours, theirs = _both(model_folder(style, kind))
    for texts in CHATS:
        _check(ours, theirs, _conversation(texts))
    if style not in ("mistral", "gemma"):
        _check(ours, theirs, _conversation(CHATS[1], system="Be brief."))


@pytest.mark.parametrize("kind", ["bytes", "blanks"])
def test_ids_differ_only_where_a_prompt_would_merge_with_its_answer(model_folder, kind):
    # Llama 3's prompts end in two line ends: before a word two tokens, alone one, in tokenizers like GPT-2's.
    ours, theirs = _both(model_folder("llama3", kind))
    for texts in CHATS:
        conversation = _conversation(texts)
        messages = [message.for_template() for message in conversation.messages]
        row = encode(conversation, ours, EncodeOptions(max_length_tokens=10_000))
        expected = theirs.apply_chat_template(messages, tokenize=True, return_dict=False)
        assert isinstance(row, EncodedRow)
        assert ours.decode(row.tokens, skip_special=False) == theirs.decode(expected)
        asked = theirs.apply_chat_template(messages[:1], add_generation_prompt=True, tokenize=True, return_dict=False)
        assert list(row.tokens[: len(asked)]) == asked


def test_generation_tags_mark_the_same_characters(model_folder):
    ours, theirs = _both(model_folder("marked"))
    for texts in CHATS:
        conversation = _conversation(texts)
        messages = [message.for_template() for message in conversation.messages]
        expected = theirs.apply_chat_template(messages, return_dict=True, return_assistant_tokens_mask=True)
        row = encode(conversation, ours, EncodeOptions(max_length_tokens=10_000))
        assert isinstance(row, EncodedRow)
        assert list(row.labels_mask) == expected["assistant_masks"]


def test_templates_see_the_same_names_filters_and_globals(model_folder):
    folder = model_folder("chatml")
    (folder / "chat_template.jinja").write_text(
        "{{ bos_token }}{{ eos_token }}{{ unk_token }}|{{ tools | tojson }}|{{ documents }}|"
        "{{ strftime_now('%d %b %Y') }}"
        "{% set ns = namespace(seen=dict(a=1)) %}{% for m in messages %}{% if loop.index > 2 %}{% break %}{% endif %}"
        "   \n  {% if m.role == 'user' %}  \n"
        "{{ m | tojson(indent=2) }}{{ m.reasoning_content }}{{ m.thinking }}{% endif %}{% endfor %}{{ ns.seen.a }}",
        encoding="utf-8",
    )
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(str(folder))
    ours = ChatTokenizer.from_folder(folder, now=datetime.now())
    turn = Message(role="user", content="<é & 'q'>", extra={"name": "ada", "reasoning": "hm"})
    conversation = Conversation(messages=(turn, Message(role="assistant", content="b"), turn))
    messages = [message.for_template() for message in conversation.messages]
    expected = theirs.apply_chat_template(messages, tokenize=False)
    assert render(conversation, ours, train_on="all", where="here").text == expected


def test_plain_texts_begin_like_theirs(model_folder):
    from tokenizers import Tokenizer, processors

    folder = model_folder("mistral")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    bos = "<s>"
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    ours, theirs = _both(folder)
    assert encode_prompt("A text", ours) == theirs("A text")["input_ids"]
    # A chat gets the one that its template writes, and no second one.
    _check(ours, theirs, _conversation(("a", "b")))


def test_a_tokenizer_without_its_json_is_converted(model_folder, tmp_path):
    from tokenizers import Tokenizer

    source = model_folder("chatml")
    Tokenizer.from_file(str(source / "tokenizer.json")).model.save(str(tmp_path))
    for name in ("tokenizer_config.json", "chat_template.jinja"):
        text = (source / name).read_text(encoding="utf-8").replace("PreTrainedTokenizerFast", "GPT2Tokenizer")
        (tmp_path / name).write_text(text, encoding="utf-8")
    ours, theirs = _both(tmp_path)
    _check(ours, theirs, _conversation(CHATS[0]))


def test_the_bundled_model_has_the_same_ids():
    from scrimp.models.bundled import bundled_folder, is_converted

    if not is_converted(os.environ):
        pytest.skip("the bundled model has not been converted on this machine")
    ours, theirs = _both(bundled_folder(os.environ))
    for texts in CHATS:
        _check(ours, theirs, _conversation(texts))
    _check(ours, theirs, _conversation(CHATS[1], system="Be brief."))
