"""From a file to encoded rows: every row is accounted for, splits hold still, nothing trains on nothing."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrimp.core.errors import DataError
from scrimp.core.job import DataSpec
from scrimp.data.content import read_content
from scrimp.data.dataset import load_dataset
from scrimp.data.profile import measure_dataset, profile_dataset
from scrimp.data.row import Conversation, Message
from scrimp.data.sorter import content_key


def qa(number: int, *, answer: str = "An answer.") -> dict:
    return {"prompt": f"Question {number}?", "completion": answer}


def dropped_of(profile) -> dict[str, int]:
    return {group.reason: group.rows for group in profile.dropped}


def test_the_shipped_example_is_understood(tiny_tokenizer):
    from pathlib import Path

    examples = Path(__file__).parents[2] / "examples" / "data"
    for name, train, evaluation in (("devils_dictionary", 809, 95), ("wordnet_categories", 2400, 480)):
        dataset = load_dataset(DataSpec(path=f"{name}.jsonl"), tiny_tokenizer, base=examples)
        profile = dataset.profile
        assert (profile.shape, profile.rows_in, profile.eval_rows) == ("prompt_completion", train, evaluation)
        assert (len(dataset.train), len(dataset.evaluation)) == (train, evaluation)
        assert profile.mask_method == "prefix_rendering"
        assert profile.total_tokens == sum(len(row.tokens) for row in dataset.train)
        assert profile.trained_tokens == sum(row.labels_mask.count(1) for row in dataset.train)
        assert sum(rows for _, rows in profile.length_histogram) == profile.rows_trained
        assert dataset.sizes.total_tokens == tuple(len(row.tokens) for row in dataset.train)


TURN = st.text(st.sampled_from("ab \n."), max_size=60)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pairs=st.lists(st.tuples(TURN, TURN), min_size=1, max_size=12),
    limit=st.integers(10, 60),
    overlong=st.sampled_from(["drop", "truncate_left", "truncate_right"]),
    train_on=st.sampled_from(["answers", "last_answer", "all"]),
    share=st.sampled_from([0.0, 0.3]),
)
def test_rows_in_are_rows_trained_and_rows_dropped(tiny_tokenizer, write_rows, pairs, limit, overlong, train_on, share):
    rows = [{"prompt": question, "completion": answer} for question, answer in pairs]
    spec = DataSpec(
        path=str(write_rows("rows.jsonl", rows)),
        eval_share=share,
        max_length_tokens=limit,
        overlong=overlong,
        train_on=train_on,
    )
    for tokenizer in (tiny_tokenizer, None):
        try:
            measured = measure_dataset(spec, tokenizer, base=write_rows("x.jsonl", []).parent)
        except DataError as error:
            assert "can be trained on" in error.what or "went to evaluation" in error.what  # noqa: PT017
            continue
        profile = measured.profile
        assert profile.rows_in == profile.rows_trained + sum(dropped_of(profile).values())
        assert len(measured.sizes.total_tokens) == profile.rows_trained
        assert all(measured.sizes.trained_tokens)
        assert profile.longest_row_tokens <= limit
        assert profile.truncated_rows == 0 or overlong != "drop"
        content = read_content(spec, base=write_rows("x.jsonl", []).parent)
        assert len(content.train) + len(content.evaluation) == len(rows)
        assert profile.rows_in == len(content.train)


def test_short_rows_are_never_dropped(tiny_tokenizer, write_rows, tmp_path):
    path = write_rows("rows.jsonl", [qa(i) for i in range(100)])
    profile = load_dataset(DataSpec(path=str(path), eval_share=0), tiny_tokenizer, base=tmp_path).profile
    assert (profile.rows_in, profile.rows_trained, profile.dropped) == (100, 100, ())


def test_dropped_rows_are_named_with_reason_and_number(tiny_tokenizer, write_rows, tmp_path):
    rows = [qa(1), qa(2, answer=""), qa(3, answer="word " * 100), qa(4, answer=None), qa(5)]
    spec = DataSpec(path=str(write_rows("rows.jsonl", rows)), eval_share=0, max_length_tokens=100)
    profile = load_dataset(spec, tiny_tokenizer, base=tmp_path).profile
    assert dropped_of(profile) == {"empty": 2, "too_long": 1}
    by_reason = {group.reason: group for group in profile.dropped}
    assert by_reason["empty"].first_rows == (2, 4)
    assert by_reason["too_long"].first_rows == (3,)
    assert "max_length_tokens" in by_reason["too_long"].detail


def test_a_set_without_anything_to_train_is_an_error(tiny_tokenizer, write_rows, tmp_path):
    silent = [{"messages": [{"role": "user", "content": "anybody?"}]}] * 3
    spec = DataSpec(path=str(write_rows("silent.jsonl", silent)), eval_share=0)
    with pytest.raises(DataError) as caught:
        load_dataset(spec, tiny_tokenizer, base=tmp_path)
    assert "3 no_trained_tokens" in caught.value.what
    assert "scrimp data show" in caught.value.next_step
    spec = DataSpec(path=str(write_rows("long.jsonl", [qa(1)])), eval_share=0, max_length_tokens=5)
    with pytest.raises(DataError) as caught:
        load_dataset(spec, tiny_tokenizer, base=tmp_path)
    assert "max_length_tokens" in caught.value.next_step
    spec = DataSpec(path=str(write_rows("empty.jsonl", [qa(1, answer="")])), eval_share=0)
    with pytest.raises(DataError, match="1 empty"):
        load_dataset(spec, tiny_tokenizer, base=tmp_path)


def test_new_rows_never_move_old_ones_between_training_and_evaluation(write_rows, tmp_path):
    def sides(rows) -> dict[bytes, str]:
        content = read_content(DataSpec(path=str(write_rows("rows.jsonl", rows)), eval_share=0.2), base=tmp_path)
        return {row.key: "train" for row in content.train} | {row.key: "evaluation" for row in content.evaluation}

    before = sides([qa(i) for i in range(300)])
    after = sides([qa(i) for i in range(-50, 400)])
    assert {key: after[key] for key in before} == before
    share = sum(side == "evaluation" for side in after.values()) / len(after)
    assert 0.12 < share < 0.28
    # Other columns and the shape do not count as content.
    same = sides([{"instruction": f"Question {i}?", "output": "An answer.", "id": i} for i in range(300)])
    assert same == before


def test_evaluation_comes_from_its_own_file_first(write_rows, tmp_path):
    rows = [qa(i) | {"split": "train" if i % 2 else "test"} for i in range(10)]
    write_rows("rows.jsonl", rows)
    write_rows("held_out.jsonl", [{"instruction": "q", "output": "a"}])
    content = read_content(DataSpec(path="rows.jsonl", eval_path="held_out.jsonl"), base=tmp_path)
    assert (len(content.train), len(content.evaluation)) == (5, 1)
    assert any('5 rows of the split "test" are not used' in note for note in content.notes)
    assert content.shape.name == "prompt_completion"


@pytest.mark.parametrize("name", ["test", "validation", "eval", "dev", "val", "test_sft"])
def test_a_split_column_is_obeyed(write_rows, tmp_path, name):
    write_rows("rows.jsonl", [qa(1) | {"split": "train"}, qa(2) | {"split": name}])
    content = read_content(DataSpec(path="rows.jsonl"), base=tmp_path)
    assert ([row.number for row in content.train], [row.number for row in content.evaluation]) == ([1], [2])


def test_another_split_can_be_trained_on_and_the_rest_is_named(write_rows, tmp_path):
    rows = [qa(1) | {"split": "train"}, qa(2) | {"split": "train_big"}, qa(3) | {"split": "test"}]
    write_rows("rows.jsonl", rows)
    content = read_content(DataSpec(path="rows.jsonl", split="train_big"), base=tmp_path)
    assert [row.number for row in content.train] == [2]
    assert any('1 rows of the split "train" are not used' in note for note in content.notes)


def test_a_split_that_no_row_has_is_answered_with_those_there_are(write_rows, tmp_path):
    write_rows("rows.jsonl", [qa(1) | {"split": "training"}, qa(2) | {"split": "test"}])
    with pytest.raises(DataError) as caught:
        read_content(DataSpec(path="rows.jsonl"), base=tmp_path)
    assert "training (1 rows), test (1 rows)" in caught.value.what
    assert caught.value.next_step == "data.split=training"


def test_a_row_without_its_split_is_an_error(write_rows, tmp_path):
    write_rows("rows.jsonl", [qa(1) | {"split": "train"}, qa(2)])
    with pytest.raises(DataError, match="line 2 names no split"):
        read_content(DataSpec(path="rows.jsonl"), base=tmp_path)
    write_rows("rows.jsonl", [*[qa(i) for i in range(30)], qa(31) | {"split": "test"}])
    with pytest.raises(DataError, match='line 31 names the split "test"'):
        read_content(DataSpec(path="rows.jsonl"), base=tmp_path)


def test_a_single_row_that_the_hash_holds_out_is_explained(write_rows, tmp_path):
    write_rows("rows.jsonl", [qa(1)])
    with pytest.raises(DataError) as caught:
        read_content(DataSpec(path="rows.jsonl", eval_share=0.999999), base=tmp_path)
    assert "all 1 rows" in caught.value.what
    assert "eval_share=0" in caught.value.next_step


def test_a_column_called_split_that_holds_other_things_is_left_alone(write_rows, tmp_path):
    write_rows("rows.jsonl", [qa(1) | {"split": "left"}, qa(2) | {"split": "right"}])
    content = read_content(DataSpec(path="rows.jsonl", eval_share=0), base=tmp_path)
    assert len(content.train) == 2


def test_a_folder_of_splits(write_rows, tmp_path):
    (tmp_path / "set").mkdir()
    write_rows("set/train.jsonl", [qa(1), qa(2)])
    write_rows("set/test.jsonl", [qa(3)])
    content = read_content(DataSpec(path="set"), base=tmp_path)
    assert (len(content.train), len(content.evaluation)) == (2, 1)
    assert [row.number for row in content.train] == [2, 3]


def test_a_row_of_another_shape_is_named(write_rows, tmp_path):
    write_rows("rows.jsonl", [*[qa(i) for i in range(30)], {"text": "odd"}])
    with pytest.raises(DataError) as caught:
        read_content(DataSpec(path="rows.jsonl"), base=tmp_path)
    assert "line 31" in caught.value.what
    assert "text" in caught.value.what


def test_a_shape_can_be_asked_for(write_rows, tmp_path):
    write_rows("rows.jsonl", [qa(1) | {"text": "the whole"}])
    content = read_content(DataSpec(path="rows.jsonl", shape="text", eval_share=0), base=tmp_path)
    assert content.train[0].content == "the whole"
    with pytest.raises(DataError, match="does not have the alpaca shape"):
        read_content(DataSpec(path="rows.jsonl", shape="alpaca", eval_share=0), base=tmp_path)


def test_max_rows_limits_training_and_not_evaluation(write_rows, tmp_path):
    write_rows("rows.jsonl", [qa(i) | {"split": "test" if i > 7 else "train"} for i in range(10)])
    content = read_content(DataSpec(path="rows.jsonl", max_rows=3), base=tmp_path)
    assert ([row.number for row in content.train], len(content.evaluation)) == ([1, 2, 3], 2)
    assert any("first 3 training rows" in note for note in content.notes)
    write_rows("rows.jsonl", [qa(i) for i in range(100)])
    content = read_content(DataSpec(path="rows.jsonl", max_rows=50, eval_share=0.2), base=tmp_path)
    assert len(content.train) + len(content.evaluation) == 50
    assert content.evaluation


def test_duplicates_and_leaks_are_counted(tiny_tokenizer, write_rows, tmp_path):
    rows = [qa(1), qa(1), qa(1), qa(2), qa(3)]
    write_rows("rows.jsonl", [row | {"split": "train"} for row in rows] + [qa(2) | {"split": "test"}])
    profile = load_dataset(DataSpec(path="rows.jsonl"), tiny_tokenizer, base=tmp_path).profile
    assert profile.duplicate_rows == 2
    assert any("1 evaluation rows also stand in the training rows" in note for note in profile.notes)


def test_roles_are_listed_as_they_are_and_as_they_are_taken(tiny_tokenizer, write_rows, tmp_path):
    turns = [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}, {"from": "system", "value": "s"}]
    write_rows("rows.jsonl", [{"conversations": turns}])
    profile = load_dataset(DataSpec(path="rows.jsonl", eval_share=0), tiny_tokenizer, base=tmp_path).profile
    assert profile.roles == ("human as user", "gpt as assistant", "system")


def test_evaluation_rows_that_do_not_fit_are_reported(tiny_tokenizer, write_rows, tmp_path):
    write_rows("rows.jsonl", [qa(1) | {"split": "train"}, qa(2, answer="long " * 90) | {"split": "test"}])
    spec = DataSpec(path="rows.jsonl", max_length_tokens=60)
    profile = load_dataset(spec, tiny_tokenizer, base=tmp_path).profile
    assert profile.eval_rows == 0
    assert any("1 evaluation rows are left out: longer than" in note for note in profile.notes)


def test_without_a_tokenizer_tokens_are_estimated_and_it_says_so(tiny_tokenizer):
    from pathlib import Path

    examples = Path(__file__).parents[2] / "examples" / "data"
    spec = DataSpec(path="devils_dictionary.jsonl")
    estimated = profile_dataset(spec, None, base=examples)
    assert "estimated" in estimated.token_basis
    counted = profile_dataset(spec, tiny_tokenizer, base=examples)
    assert (estimated.rows_in, estimated.eval_rows) == (counted.rows_in, counted.eval_rows)
    assert estimated.sha256 == counted.sha256
    # SmolLM2's tokenizer finds 35,168 trained tokens here (its template adds 24 others to every row).
    assert estimated.trained_tokens == pytest.approx(35_168, rel=0.15)


def test_a_model_without_a_template_is_said_to_have_none(tiny_tokenizer_folder, write_rows, tmp_path):
    from scrimp.data.tokenizer import ChatTokenizer

    folder = tmp_path / "base-model"
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((tiny_tokenizer_folder / name).read_bytes())
    write_rows("rows.jsonl", [qa(1)])
    tokenizer = ChatTokenizer.from_folder(folder)
    dataset = load_dataset(DataSpec(path="rows.jsonl", eval_share=0), tokenizer, base=tmp_path)
    assert any("no chat template" in note for note in dataset.profile.notes)
    text = tokenizer.decode(dataset.train[0].tokens, skip_special=False)
    assert text == "### User:\nQuestion 1?\n\n### Assistant:\nAn answer.<|im_end|>\n\n"


def test_a_template_that_asks_otherwise_than_it_marks_is_noted(model_folder, write_rows, tmp_path):
    from scrimp.data.tokenizer import ChatTokenizer

    write_rows("rows.jsonl", [qa(1)])
    spec = DataSpec(path="rows.jsonl", eval_share=0)
    folder = model_folder("marked")
    dataset = load_dataset(spec, ChatTokenizer.from_folder(folder), base=tmp_path)
    assert dataset.profile.mask_method == "template_markers"
    assert not any("another beginning" in note for note in dataset.profile.notes)
    template = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    (folder / "chat_template.jinja").write_text(template + "{% if add_generation_prompt %}<think>{% endif %}")
    dataset = load_dataset(spec, ChatTokenizer.from_folder(folder), base=tmp_path)
    assert any("another beginning" in note for note in dataset.profile.notes)


def test_content_keys_tell_turns_apart():
    def key(*turns):
        return content_key(Conversation(messages=tuple(Message(role=role, content=text) for role, text in turns)))

    assert key(("user", "ab"), ("assistant", "c")) != key(("user", "a"), ("assistant", "bc"))
    assert key(("user", "a")) != key(("assistant", "a"))
    assert key(("user", "a")) == key(("user", "a"))
    assert content_key("a") != content_key("b")


def test_a_broken_emoji_is_named_with_its_row(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "fine"}\n{"text": "half an emoji: \\ud83d!"}\n', encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_content(DataSpec(path="rows.jsonl", eval_share=0), base=tmp_path)
    assert "rows.jsonl, line 2" in caught.value.what
    assert "\\ud83d!" in caught.value.what
