"""Row shapes: recognised by themselves, aliases of columns and roles, and the errors. Contract over the folder."""

import json
import typing

import pytest

from scrimp.core.data import DataShape
from scrimp.core.errors import DataError
from scrimp.data import shapes
from scrimp.data.row import Conversation, Place, SourceRow
from scrimp.data.shapes.shape import ROLE_TAGS, RowShape


def row(values: dict, number: int = 1) -> SourceRow:
    return SourceRow(values=values, place=Place(file="a.jsonl", row=number, line=number))


def understood(values: dict):
    """(shape name, [(role, content)] or text)"""
    source = row(values)
    shape = shapes.recognise([source], label="a.jsonl")
    content = shape.content(source)
    if isinstance(content, Conversation):
        return shape.name, [(message.role, message.content) for message in content.messages]
    return shape.name, content


@pytest.mark.parametrize("name", shapes.names())
def test_every_shape_knows_its_own_example_and_no_other_does_first(name):
    shape = shapes.get(name)
    assert isinstance(shape, RowShape)
    assert shape.name == name
    assert name in typing.get_args(DataShape)
    source = row(dict(shape.example))
    assert shape.recognises(source)
    assert shapes.recognise([source], label="x") is shape
    assert shape.content(source)
    if name != "text":
        assert not shape.recognises(row({"unrelated": 1}))
    with pytest.raises(DataError):
        shape.content(row({"unrelated": 1}))


def test_all_shapes_are_there():
    assert set(shapes.names()) == set(typing.get_args(DataShape))


QA = [("user", "q"), ("assistant", "a")]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"instruction": "q", "input": "", "output": "a"}, ("alpaca", QA)),
        ({"instruction": "q", "output": "a", "text": "### whole"}, ("alpaca", QA)),
        ({"instruction": "q", "context": "c", "response": "a"}, ("alpaca", [("user", "q\nc"), ("assistant", "a")])),
        (
            {"instruction": "q2", "output": "a2", "system": "s", "history": [["q", "a"]]},
            ("alpaca", [("system", "s"), *QA, ("user", "q2"), ("assistant", "a2")]),
        ),
        ({"prompt": "q", "completion": "a"}, ("prompt_completion", QA)),
        ({"question": "q", "answer": "a"}, ("prompt_completion", QA)),
        ({"input": "q", "output": "a"}, ("prompt_completion", QA)),
        ({"prompt": "q", "response": "a"}, ("prompt_completion", QA)),
        ({"Question": "q", " Answer ": "a"}, ("prompt_completion", QA)),
        (
            {"system_prompt": "s", "question": "q", "response": "a"},
            ("prompt_completion", [("system", "s"), *QA]),
        ),
        (
            {"prompt": [{"role": "user", "content": "q"}], "completion": [{"role": "assistant", "content": "a"}]},
            ("prompt_completion", QA),
        ),
        ({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}, ("messages", QA)),
        (
            {"conversations": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]},
            ("messages", QA),
        ),
        (
            {"messages": json.dumps([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}])},
            ("messages", QA),
        ),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "q"}]},
                    {"role": "model", "content": "a"},
                ]
            },
            ("messages", QA),
        ),
        ({"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]}, ("sharegpt", QA)),
        (
            {"conversations": [{"from": "user", "value": "q"}, {"from": "model", "value": "a"}], "system": "s"},
            ("sharegpt", [("system", "s"), *QA]),
        ),
        (
            {
                "conversations": [
                    {"from": "human", "value": "q"},
                    {"from": "observation", "value": "o"},
                    {"from": "gpt", "value": "a"},
                ]
            },
            ("sharegpt", [("user", "q"), ("tool", "o"), ("assistant", "a")]),
        ),
        ({"text": "whole"}, ("text", "whole")),
        ({"content": "whole", "url": "x"}, ("text", "whole")),
    ],
)
def test_what_people_write_is_understood(values, expected):
    assert understood(values) == expected


@pytest.mark.parametrize("tag", sorted(ROLE_TAGS.keys() - {"function_call"}))
def test_role_tags_are_taken_for_their_roles(tag):
    _, messages = understood({"conversations": [{"from": tag.upper(), "value": "x"}]})
    assert messages == [(ROLE_TAGS[tag], "x")]


def test_tool_calls_and_tools_go_on_to_the_template():
    call = {"name": "now", "arguments": {"zone": "utc"}}
    tools = [{"type": "function", "function": {"name": "now"}}]
    source = row(
        {
            "conversations": [{"from": "human", "value": "q"}, {"from": "function_call", "value": json.dumps(call)}],
            "tools": json.dumps(tools),
        }
    )
    content = shapes.get("sharegpt").content(source)
    assert isinstance(content, Conversation)
    assert content.messages[1].extra == {"tool_calls": [{"type": "function", "function": call}]}
    assert list(content.tools) == tools
    source = row({"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}], "tools": tools})
    content = shapes.get("messages").content(source)
    assert isinstance(content, Conversation)
    assert content.messages[0].extra == {"tool_calls": [call]}
    assert not content.messages[0].says_nothing


@pytest.mark.parametrize(
    ("name", "values", "parts"),
    [
        ("alpaca", {"instruction": "q", "output": {"a": 1}}, ('column "output" holds an object', '{"a": 1}')),
        ("prompt_completion", {"prompt": "q", "completion": ["a"]}, ('column "completion" holds a list',)),
        ("prompt_completion", {"prompt": "q", "completion": 7}, ('column "completion" holds a number: 7',)),
        ("text", {"text": {"a": 1}}, ('column "text" holds an object',)),
        ("messages", {"messages": [{"role": "user", "content": {"a": 1}}]}, ("content of turn 1", "an object")),
        ("messages", {"messages": [{"role": "narrator", "content": "a"}]}, ("turn 1", '"narrator" is not known')),
        ("messages", {"messages": [{"content": "a"}]}, ("turn 1", "null is not known")),
        ("messages", {"messages": "no list"}, ('column "messages" holds', "no list")),
        ("messages", {"messages": [{"role": "user", "content": [{"type": "image"}]}]}, ("turn 1", "not text")),
        ("sharegpt", {"conversations": [{"from": "human", "value": "a"}, {"from": "x", "value": "b"}]}, ("turn 2",)),
        ("sharegpt", {"conversations": [{"from": "human", "value": 3}]}, ("value of turn 1", "a number")),
        ("sharegpt", {"conversations": [{"from": "function_call", "value": "now()"}]}, ("no JSON call",)),
        ("alpaca", {"instruction": "q", "output": "a", "history": ["q"]}, ('column "history"',)),
        ("messages", {"messages": [{"role": "user", "content": "q"}], "tools": "x"}, ('column "tools"',)),
    ],
)
def test_a_cell_that_is_not_what_it_should_be_is_named_with_its_row(name, values, parts):
    with pytest.raises(DataError) as caught:
        shapes.get(name).content(row(values, number=3))
    assert caught.value.what.startswith("a.jsonl, line 3")
    for part in parts:
        assert part in caught.value.what
    assert caught.value.next_step


def test_the_remedy_for_an_object_as_output_is_a_command_that_makes_it_text():
    with pytest.raises(DataError) as caught:
        shapes.get("alpaca").content(row({"instruction": "q", "output": {"a": 1}}))
    assert "tojson" in caught.value.next_step
    assert '."output"' in caught.value.next_step


def test_an_unknown_shape_shows_the_columns_and_an_example_of_each_shape():
    with pytest.raises(DataError) as caught:
        shapes.recognise([row({"chosen": "a", "rejected": "b"})], label="a.jsonl")
    assert "chosen, rejected" in caught.value.what
    for name in shapes.names():
        assert f"  {name}: " in caught.value.expected


def test_mixed_shapes_name_the_first_odd_row():
    rows = [row({"prompt": "a", "completion": "b"}), row({"text": "c"}, number=2)]
    with pytest.raises(DataError) as caught:
        shapes.recognise(rows, label="a.jsonl")
    assert "mixes shapes" in caught.value.what
    assert "a.jsonl, line 2" in caught.value.what
