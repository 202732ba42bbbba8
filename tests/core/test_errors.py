"""The tree: every error has its exit code, and unknown names are answered with the nearest."""

import inspect
import re

from scrimp.core import errors


def test_the_drawn_tree_is_the_real_one():
    drawn = {name: int(code) for name, code in re.findall(r"(\w+Error)\s+exit (\d+)", errors.__doc__ or "")}
    real = {
        name: item.exit_code
        for name, item in inspect.getmembers(errors, inspect.isclass)
        if issubclass(item, errors.ScrimpError)
    }
    assert drawn == real
    assert len(set(real.values())) == len(real), "exit codes are distinct"


def test_a_message_has_three_parts():
    error = errors.SpecError(what="it broke", expected="a number", next_step="type 3")
    assert str(error).splitlines() == ["it broke", "expected: a number", "next: type 3"]


def test_nearest_names():
    error = errors.unknown_name("GPU", "A10O", ["A10", "A100", "RTX4090"], list_command="scrimp gpus")
    assert 'GPU "A10O" is not known' in error.what
    assert "A100" in error.expected
    assert "A10" in error.expected
    assert error.next_step == "scrimp gpus"
    assert errors.unknown_name("GPU", "zzz", ["A10"], list_command="x").expected == "one of the known names"


def test_an_error_that_another_process_wrote_down_is_the_same_error():
    for error in (
        errors.ResourceError(what="full", expected="room", next_step="df"),
        errors.DataError(what="two\nlines"),
        errors.SpecError(what="x", next_step="y"),
    ):
        again = errors.error_from(str(error), exit_code=error.exit_code)
        assert type(again) is type(error)
        assert (again.what, again.expected, again.next_step) == (error.what, error.expected, error.next_step)
