"""The one encode function: masks, prompts, length policies, for templates of every style."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrimp.core.errors import DataError
from scrimp.data.answers import end_of_turn_ids
from scrimp.data.encode import EncodeOptions, encode, encode_prompt, user_prompt
from scrimp.data.row import Conversation, DroppedRow, EncodedRow, Message

KINDS = ("bytes", "blanks")
# Style of template: what ends an answer, what ends the last one.
ENDS = {
    "chatml": ("<|im_end|>", "<|im_end|>"),
    "llama3": ("<|eot_id|>", "<|eot_id|>"),
    "mistral": ("</s>", "</s>"),
    "gemma": ("<end_of_turn>", "<end_of_turn>"),
    "marked": ("<|im_end|>", "<|im_end|>"),
    "marked_badly": ("<|im_end|>", "<|im_end|>"),
    "phi3": ("<|end|>", "<|end|>\n</s>"),
    "harmony": ("<|end|>", "<|return|>"),
    "glm": ("<|user|>", "</s>"),
    "thinking": ("<|im_end|>", "<|im_end|>"),
}
STYLES = tuple(ENDS)
# What a template writes itself where the model answers.
HEADS = {"harmony": "<|message|>", "thinking": "<think>\n\n</think>\n\n"}
LONG = EncodeOptions(max_length_tokens=100_000)


def chat(*contents: str, system: str | None = None) -> Conversation:
    """User and assistant in turns."""
    roles = ("user", "assistant")
    turns = tuple(Message(role=roles[i % 2], content=text) for i, text in enumerate(contents))
    return Conversation(messages=turns).with_system(system)


def trained_parts(row: EncodedRow, tokenizer) -> list[str]:
    """The texts of the runs of tokens that carry labels."""
    parts: list[list[int]] = []
    before = 0
    for token, label in zip(row.tokens, row.labels_mask, strict=True):
        if label and not before:
            parts.append([])
        if label:
            parts[-1].append(token)
        before = label
    return [tokenizer.decode(part, skip_special=False) for part in parts]


def encoded(content, tokenizer, options=LONG) -> EncodedRow:
    row = encode(content, tokenizer, options)
    assert isinstance(row, EncodedRow)
    assert len(row.tokens) == len(row.labels_mask)
    return row


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("style", STYLES)
def test_all_answers_train_with_their_end_of_turn_token_and_nothing_else_does(chat_tokenizer, style, kind):
    tokenizer = chat_tokenizer(style, kind)
    row = encoded(chat("Who are you?", "A cynic.", "And Bierce?", "Another one."), tokenizer)
    first, second = (part.strip() for part in trained_parts(row, tokenizer))
    head = HEADS.get(style, "")
    assert first.removeprefix(head) == f"A cynic.{ENDS[style][0]}"
    assert second == f"{head}Another one.{ENDS[style][1]}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("style", STYLES)
def test_the_prompt_in_training_is_the_prompt_in_serving(chat_tokenizer, style, kind):
    tokenizer = chat_tokenizer(style, kind)
    turns = chat("Define  love.\n", "A temporary insanity\n\n", "\n\nAnd hope?", " Desire\nand expectation.").messages
    row = encoded(Conversation(messages=turns), tokenizer)
    for index in (1, 3):
        prompt = encode_prompt(turns[:index], tokenizer)
        assert list(row.tokens[: len(prompt)]) == prompt
        assert row.labels_mask[len(prompt)] == 1
        assert row.labels_mask[len(prompt) - 1] == 0


def test_an_answer_that_would_merge_with_the_prompt_is_cut_there(chat_tokenizer):
    tokenizer = chat_tokenizer("llama3")
    turns = chat("Hello", "There").messages
    row = encoded(Conversation(messages=turns), tokenizer)
    prompt = encode_prompt(turns[:1], tokenizer)
    whole = tokenizer.encode_text(tokenizer.template.render([m.for_template() for m in turns]))
    # This tokenizer encodes "\n\n" before a word as two tokens and alone as one, as GPT-2's and many others do.
    assert whole[: len(prompt)] != prompt
    assert list(row.tokens[: len(prompt)]) == prompt


TEXT = st.text(st.sampled_from("ab \n.,1é漢🙂'<|>/"), min_size=1, max_size=12).filter(lambda text: text.strip())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents=st.lists(TEXT, min_size=1, max_size=3), style=st.sampled_from(STYLES), kind=st.sampled_from(KINDS))
def test_any_conversation_trains_what_is_asked_for(chat_tokenizer, contents, style, kind):
    tokenizer = chat_tokenizer(style, kind)
    turns = chat(*[text for content in contents for text in ("Say: " + content, content)]).messages
    row = encoded(Conversation(messages=turns), tokenizer)
    for index in range(1, len(turns), 2):
        prompt = encode_prompt(turns[:index], tokenizer)
        assert list(row.tokens[: len(prompt)]) == prompt
    assert len(trained_parts(row, tokenizer)) == len(contents)
    assert not row.labels_mask[0]


def test_pad_equal_to_end_of_turn_does_not_mask_the_end_of_an_answer(tiny_tokenizer):
    assert tiny_tokenizer.pad_id == tiny_tokenizer.eos_id
    row = encoded(chat("Hi", "Ho"), tiny_tokenizer)
    last = max(i for i, token in enumerate(row.tokens) if token == tiny_tokenizer.eos_id)
    assert row.labels_mask[last] == 1


def test_last_answer_trains_the_last_one_alone(chat_tokenizer):
    tokenizer = chat_tokenizer("chatml")
    options = EncodeOptions(train_on="last_answer")
    row = encoded(chat("a", "first", "b", "second"), tokenizer, options)
    assert trained_parts(row, tokenizer) == ["second<|im_end|>"]


def test_all_trains_every_token_but_the_first(chat_tokenizer):
    for style in STYLES:
        tokenizer = chat_tokenizer(style)
        row = encoded(chat("a", "b"), tokenizer, EncodeOptions(train_on="all"))
        assert row.labels_mask == b"\0" + b"\1" * (len(row.tokens) - 1)
        assert row.tokens == encoded(chat("a", "b"), tokenizer).tokens


def test_an_answer_with_weight_0_is_context(chat_tokenizer):
    for style in ("chatml", "marked"):
        tokenizer = chat_tokenizer(style)
        turns = list(chat("a", "first", "b", "second").messages)
        turns[1] = Message(role="assistant", content="first", trained=False)
        row = encoded(Conversation(messages=tuple(turns)), tokenizer)
        assert trained_parts(row, tokenizer) == ["second<|im_end|>"]


def test_an_answer_that_quotes_the_end_of_turn_token_is_trained_whole(chat_tokenizer):
    tokenizer = chat_tokenizer("thinking")
    row = encoded(chat("a", "it ends with <|im_end|> always", "b", "ok"), tokenizer)
    text = "".join(trained_parts(row, tokenizer))
    assert text.startswith("it ends with <|im_end|> always<|im_end|>")


def test_a_greeting_is_context(chat_tokenizer):
    tokenizer = chat_tokenizer("chatml")
    turns = (Message(role="assistant", content="Welcome!"), *chat("a", "b").messages)
    row = encoded(Conversation(messages=turns), tokenizer)
    assert trained_parts(row, tokenizer) == ["b<|im_end|>"]


def test_a_template_whose_prompts_are_not_prefixes_is_refused_with_the_place_and_two_ways_out(model_folder):
    from scrimp.data.tokenizer import ChatTokenizer

    folder = model_folder("thinking")
    template = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    # As models that always reason do: the prompt opens the reasoning, earlier answers do not show it.
    asked = "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n"
    assert asked in template
    (folder / "chat_template.jinja").write_text(template.replace(asked, asked + "<think>\n"), encoding="utf-8")
    tokenizer = ChatTokenizer.from_folder(folder)
    with pytest.raises(DataError) as caught:
        encode(chat("a", "b", "c", "d"), tokenizer, LONG)
    assert "turn 2" in caught.value.what
    assert "<think>" in caught.value.what
    assert "last_answer" in caught.value.next_step
    assert "generation" in caught.value.next_step
    row = encoded(chat("a", "b", "c", "d"), tokenizer, EncodeOptions(train_on="last_answer"))
    prompt = encode_prompt(chat("a", "b", "c").messages, tokenizer)
    assert list(row.tokens[: len(prompt)]) == prompt


def test_a_template_that_refuses_a_conversation_is_quoted(chat_tokenizer):
    with pytest.raises(DataError) as caught:
        encode(chat("a", "b", system="Be terse."), chat_tokenizer("gemma"), LONG)
    assert "System role not supported" in caught.value.what
    assert "system, user, assistant" in caught.value.what


def test_a_system_prompt_is_put_in_front_unless_the_row_has_one(chat_tokenizer):
    tokenizer = chat_tokenizer("chatml")
    options = EncodeOptions(system_prompt="Be terse.")
    assert "Be terse." in tokenizer.decode(encoded(chat("a", "b"), tokenizer, options).tokens)
    own = tokenizer.decode(encoded(chat("a", "b", system="Be long."), tokenizer, options).tokens)
    assert "Be long." in own
    assert "Be terse." not in own
    assert user_prompt("a", system_prompt="Be terse.")[0].role == "system"


def test_texts_begin_and_end_with_the_tokens_of_text_exactly_once(model_folder):
    from scrimp.data.tokenizer import ChatTokenizer

    tokenizer = ChatTokenizer.from_folder(model_folder("llama3", add_bos_token=True))
    for text in ("A document.", "<|begin_of_text|>A document.", "A document.<|eot_id|>"):
        row = encoded(text, tokenizer)
        assert row.tokens.count(tokenizer.bos_id) == 1
        assert row.tokens[0] == tokenizer.bos_id
        assert row.tokens.count(tokenizer.eos_id) == 1
        assert row.labels_mask == b"\0" + b"\1" * (len(row.tokens) - 1)
    assert encode_prompt("A doc", tokenizer)[0] == tokenizer.bos_id
    # The template writes the token itself; nothing is added to it.
    assert encoded(chat("a", "b"), tokenizer).tokens.count(tokenizer.bos_id) == 1


def test_a_template_without_an_end_of_turn_gets_the_end_of_text_behind_the_answer(model_folder):
    from scrimp.data.tokenizer import ChatTokenizer

    folder = model_folder("chatml")
    template = "{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"  # noqa: E501
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    tokenizer = ChatTokenizer.from_folder(folder)
    row = encoded(chat("a", "b"), tokenizer)
    assert row.tokens[-1] == tokenizer.eos_id
    assert row.labels_mask[-1] == 1


def test_end_of_turn_ids_hold_the_token_that_closes_a_turn_and_the_end_of_text(chat_tokenizer):
    gemma = chat_tokenizer("gemma")
    assert end_of_turn_ids(gemma) == (gemma.backend.token_to_id("<end_of_turn>"), gemma.eos_id)
    chatml = chat_tokenizer("chatml")
    assert end_of_turn_ids(chatml) == (chatml.eos_id,)
    phi3 = chat_tokenizer("phi3")
    assert end_of_turn_ids(phi3) == (phi3.backend.token_to_id("<|end|>"), phi3.eos_id)


def test_a_tool_call_in_the_middle_is_trained_whole(chat_tokenizer):
    tokenizer = chat_tokenizer("thinking")
    call = {"type": "function", "function": {"name": "now", "arguments": {}}}
    turns = (
        Message(role="user", content="When?"),
        Message(role="assistant", content="", extra={"tool_calls": [call]}),
        Message(role="tool", content="1911"),
        Message(role="assistant", content="In 1911."),
    )
    first, second = trained_parts(encoded(Conversation(messages=turns), tokenizer), tokenizer)
    assert first.startswith("<tool_call>")
    assert first.endswith("</tool_call><|im_end|>")
    assert second.endswith("In 1911.<|im_end|>")


def test_reasoning_that_the_template_cuts_out_does_not_hide_the_end_of_an_answer(chat_tokenizer):
    tokenizer = chat_tokenizer("thinking")
    row = encoded(chat("a", "<think>\nhm\n</think>\n\nfirst", "b", "second"), tokenizer)
    assert trained_parts(row, tokenizer)[0] == "first<|im_end|>"


def test_a_template_that_leaves_the_answer_out_is_refused(model_folder):
    from scrimp.data.tokenizer import ChatTokenizer

    folder = model_folder("chatml")
    # As templates of vision models do with answers that are text and no list of parts.
    template = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    (folder / "chat_template.jinja").write_text(
        template.replace("message['content']", "(message['content'] if message['role'] == 'user' else '')"),
        encoding="utf-8",
    )
    with pytest.raises(DataError, match="leaves the answer in turn 2 out"):
        encode(chat("a", "b"), ChatTokenizer.from_folder(folder), LONG)


def test_tool_calls_need_a_template_that_knows_them(chat_tokenizer):
    call = {"type": "function", "function": {"name": "now", "arguments": {}}}
    turns = (Message(role="user", content="a"), Message(role="assistant", content="", extra={"tool_calls": [call]}))
    with pytest.raises(DataError, match="tool call"):
        encode(Conversation(messages=turns), chat_tokenizer("chatml"), LONG)


@pytest.mark.parametrize("content", ["", "  \n", chat("a", ""), chat("a", "  "), Conversation(messages=())])
def test_a_row_that_says_nothing_is_dropped_as_empty(chat_tokenizer, content):
    row = encode(content, chat_tokenizer("chatml"), LONG)
    assert isinstance(row, DroppedRow)
    assert row.reason == "empty"


def test_a_conversation_without_an_answer_has_nothing_to_train(chat_tokenizer):
    row = encode(chat("anybody there?"), chat_tokenizer("chatml"), LONG)
    assert isinstance(row, DroppedRow)
    assert row.reason == "no_trained_tokens"


def test_too_long_rows_follow_the_policy(chat_tokenizer):
    tokenizer = chat_tokenizer("chatml")
    content = chat("a word " * 30, "an answer that is not so short")
    whole = encoded(content, tokenizer)
    limit = len(whole.tokens) - 10

    def run(policy):
        return encode(content, tokenizer, EncodeOptions(max_length_tokens=limit, overlong=policy))

    dropped = run("drop")
    assert isinstance(dropped, DroppedRow)
    assert (dropped.reason, dropped.total_tokens) == ("too_long", len(whole.tokens))
    left, right = run("truncate_left"), run("truncate_right")
    assert left.truncated
    assert left.tokens == whole.tokens[10:]
    assert left.trained_tokens == whole.trained_tokens
    assert right.tokens == whole.tokens[:limit]
    assert right.trained_tokens == whole.trained_tokens - 9  # the tenth is the line end behind the answer
    with pytest.raises(DataError) as caught:
        run("error")
    assert f"{len(whole.tokens):,}" in caught.value.what


def test_truncation_never_leaves_a_row_without_labels(chat_tokenizer):
    content = chat("a word " * 50, "x")
    row = encode(content, chat_tokenizer("chatml"), EncodeOptions(max_length_tokens=40, overlong="truncate_right"))
    assert isinstance(row, DroppedRow)
    assert row.reason == "no_trained_tokens"
