"""Text that is no YAML: what the parser's complaint means for the writer, where it began, and a correct line."""

import re
from dataclasses import dataclass
from typing import Any

from scrimp.spec.places import Mistake, Place

# Line breaks as YAML counts them; str.splitlines knows more of them.
_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
_NO_SPACE = re.compile(r"\s*[A-Za-z_][\w.]*:[^\s:/\\]\S*\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slip:
    """One usual slip. `problem` is part of PyYAML's text; `from_start` points at where the construct began."""

    problem: str
    what: str
    expected: str
    example: str
    from_start: bool = False


_SLIPS = (
    _Slip(
        problem="'\\t' that cannot start",
        what="a tab where YAML wants spaces",
        expected="spaces for indentation, two for each level",
        example='two spaces, then "epochs: 2"',
    ),
    _Slip(
        problem="cannot start any token",
        what="a value begins with a character that YAML keeps for itself",
        expected="quotes around values that begin with % @ or `",
        example='name: "@home"',
    ),
    _Slip(
        problem="mapping values are not allowed",
        what="a second colon in one line, or a key that is indented unlike its neighbours",
        expected="quotes around a value that holds a colon; keys of one level in the same column",
        example='system_prompt: "Answer briefly: one line."',
    ),
    _Slip(
        problem="could not find expected ':'",
        what="a key without a colon",
        expected="a colon and a space after every key",
        example="epochs: 2",
        from_start=True,
    ),
    _Slip(
        problem="found unexpected end of stream",
        what="a quote that is never closed",
        expected="a closing quote",
        example='name: "my job"',
        from_start=True,
    ),
    _Slip(
        problem="expected ',' or",
        what="a bracket that is never closed",
        expected="a comma between entries and a closing bracket",
        example="gpus: [A100, H100]",
        from_start=True,
    ),
    _Slip(
        problem="expected a single document",
        what='a second document after "---"',
        expected="one job in one file",
        example="(leave out the line ---)",
    ),
    _Slip(
        problem="undefined alias",
        what="a * reference to a name that is defined nowhere above",
        expected="quotes around values that begin with *",
        example='name: "*"',
    ),
    _Slip(
        problem="sequence entries are not allowed",
        what='a "- " entry in the line of its key',
        expected="list entries in lines of their own, or in brackets",
        example="gpus: [A100, H100]",
    ),
    _Slip(
        problem="expected <block end>",
        what="the indentation does not fit the lines above",
        expected="the keys of one level all in the same column",
        example="training: {epochs: 2, batch_rows: 8}",
    ),
)


def split_lines(text: str) -> list[str]:
    """The lines of a text, numbered as YAML's marks number them."""
    return _BREAK.split(text)


def syntax_mistake(error: Any, *, text: str, source: str) -> Mistake:
    """A PyYAML error as a mistake with its place."""
    lines = split_lines(text)
    problem = f"{getattr(error, 'context', None) or ''} {getattr(error, 'problem', None) or error}"
    if getattr(error, "problem_mark", None) is None:
        return _unreadable(error, text=text, source=source)
    if "mapping values" in problem or "expected ':'" in problem:
        # `epochs:2` is a word to YAML, and the complaint comes with the next line.
        for index in (error.problem_mark.line - 1, getattr(error.context_mark, "line", -1)):
            if index >= 0 and _NO_SPACE.fullmatch(lines[index]):
                return _no_space(lines, index, source=source)
    for slip in _SLIPS:
        if slip.problem in problem:
            mark = (getattr(error, "context_mark", None) if slip.from_start else None) or error.problem_mark
            place = _place(source, lines, mark.line, mark.column)
            return Mistake(place=place, what=slip.what, expected=slip.expected, example=slip.example)
    place = _place(source, lines, error.problem_mark.line, error.problem_mark.column)
    return Mistake(place=place, what=problem.strip(), expected="valid YAML", example="epochs: 2")


def _no_space(lines: list[str], index: int, *, source: str) -> Mistake:
    return Mistake(
        place=_place(source, lines, index, lines[index].index(":")),
        what="no space after the colon",
        expected="a colon and a space after every key",
        example=re.sub(r":(?=\S)", ": ", lines[index].strip(), count=1),
    )


def _unreadable(error: Any, *, text: str, source: str) -> Mistake:
    """A ReaderError knows only the character and its position in the text."""
    position = min(int(getattr(error, "position", 0)), len(text))
    before = split_lines(text[:position])
    character = getattr(error, "character", "?")
    return Mistake(
        place=_place(source, split_lines(text), len(before) - 1, len(before[-1])),
        what=f"a control character (code {character}) that YAML does not allow",
        expected="a text file in UTF-8",
        example='an escape inside double quotes, such as "\\x00"',
    )


def _place(source: str, lines: list[str], line: int, column: int) -> Place:
    line = min(line, len(lines) - 1)
    return Place(source=source, line=line + 1, column=column + 1, text=lines[line])
