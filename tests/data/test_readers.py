"""Every file format: rows with their lines, and the messages for broken files. The contract runs over the folder."""

import gzip
import json
from pathlib import Path

import pytest

from scrimp.core.errors import DataError
from scrimp.data import readers
from scrimp.data.readers.reader import FormatReader
from scrimp.data.source import open_source, reader_of, sha256_of

ROWS = [{"prompt": "What is é?", "completion": 'A letter, "accented"\nand more'}, {"prompt": "b", "completion": "漢🙂"}]


def write(tmp_path, name: str, text: str | bytes):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def rows_of(path):
    return list(open_source(str(path), base=path.parent).rows())


def as_csv(rows, delimiter=",") -> str:
    def cell(text):
        return '"' + text.replace('"', '""') + '"'

    lines = [delimiter.join(("prompt", "completion"))]
    return "\n".join(lines + [delimiter.join(cell(value) for value in row.values()) for row in rows]) + "\n"


def as_lines(rows) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


WRITERS = {
    ".jsonl": lambda: as_lines(ROWS).encode(),
    ".ndjson": lambda: as_lines(ROWS).encode(),
    ".json": lambda: json.dumps(ROWS).encode(),
    ".csv": lambda: as_csv(ROWS).encode(),
    ".tsv": lambda: as_csv(ROWS, "\t").encode(),
}


def _parquet() -> bytes:
    import io

    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("name", readers.names())
def test_every_format_declares_itself(name):
    reader = readers.get(name)
    assert isinstance(reader, FormatReader)
    assert reader.suffixes
    assert all(suffix == suffix.lower() and suffix.startswith(".") for suffix in reader.suffixes)


@pytest.mark.parametrize("suffix", sorted(readers.by_suffix()))
def test_every_format_gives_the_rows_as_written(tmp_path, suffix):
    plain = suffix.removesuffix(".gz")
    data = _parquet() if plain in (".parquet", ".pq") else WRITERS[plain]()
    path = write(tmp_path, f"rows{suffix}", gzip.compress(data) if suffix.endswith(".gz") else data)
    found = rows_of(path)
    assert [dict(row.values) for row in found] == ROWS
    assert [row.place.row for row in found] == [1, 2]


@pytest.mark.parametrize("suffix", sorted(suffix for suffix, reader in readers.by_suffix().items() if reader.text))
def test_a_byte_order_mark_is_skipped(tmp_path, suffix):
    data = b"\xef\xbb\xbf" + WRITERS[suffix.removesuffix(".gz")]()
    path = write(tmp_path, f"rows{suffix}", gzip.compress(data) if suffix.endswith(".gz") else data)
    assert list(rows_of(path)[0].values) == ["prompt", "completion"]


@pytest.mark.parametrize("suffix", sorted(readers.by_suffix()))
def test_an_empty_file_says_so(tmp_path, suffix):
    if suffix in (".parquet", ".pq"):
        pytest.importorskip("pyarrow")
    path = write(tmp_path, f"rows{suffix}", gzip.compress(b"", mtime=0) if suffix.endswith(".gz") else b"")
    with pytest.raises(DataError) as caught:
        rows_of(path)
    assert f"rows{suffix}" in caught.value.what


def test_lines_are_those_of_the_file(tmp_path):
    lines = rows_of(write(tmp_path, "a.jsonl", '{"text": "a"}\n\n{"text": "b"}\n'))
    assert [row.place.line for row in lines] == [1, 3]
    assert str(lines[1].place) == "a.jsonl, line 3"
    table = rows_of(write(tmp_path, "a.csv", 'text,n\n"two\nlines",1\n\nb,2\n'))
    assert [row.place.line for row in table] == [2, 5]


@pytest.mark.parametrize(
    ("name", "text", "parts"),
    [
        ("a.jsonl", '{"text": "a"}\n{"text": "b" "c"}\n', ("a.jsonl, line 2, column 14", '>>>"c"')),
        ("a.jsonl", '{"text": "a"}\n{"text": "b', ("line 2", "Unterminated string")),
        ("a.jsonl", '{"text": "a"}\n["b"]\n', ("line 2", "a list")),
        ("a.jsonl", '[\n{"text": "a"}\n]\n', ("line 1",)),
        ("a.json", '[{"text": "a"},\n {"text": b}]', ("a.json, line 2, column 11", ">>>b")),
        ("a.json", '[{"text": "a"}, 7]', ("row 2", "int")),
        ("a.json", '{"rows": [1, 2]}', ("the keys rows",)),
        ("a.csv", "prompt,completion\na,b\nc\n", ("line 3 has 1 cells", "header has 2")),
        ("a.csv", 'prompt,completion\na,"b" c\n', ("line 2", "not valid CSV")),
        ("a.csv", "prompt,\na,b\n", ("line 1 is no header", "empty cell")),
        ("a.csv", "same,same\na,b\n", ("line 1 is no header", "twice")),
        ("a.csv", "1,2\n3,4\n", ("line 1 is no header", "numbers")),
        ("a.csv", f"{'A long question ' * 5},x\na,b\n", ("line 1 is no header", "too long")),
        ("a.jsonl", b'{"text": "a"}\n{"text": "caf\xe9 au lait"}\n', ("line 2", "0xe9", "caf")),
        ("a.csv", b"text,n\ncaf\xe9,1\n", ("line 2", "0xe9")),
        ("a.jsonl", '{"text": "a"}\n'.encode("utf-16"), ("line 1", "UTF-16")),
        ("a.jsonl.gz", b"no gzip", ("not a whole gzip file",)),
        ("a.jsonl.gz", gzip.compress(b'{"text": "a"}\n', mtime=0)[:-9], ("not a whole gzip file",)),
        ("a.txt", "hello", ('format of "', "a.txt")),
    ],
)
def test_a_broken_file_is_named_with_line_and_part(tmp_path, name, text, parts):
    path = write(tmp_path, name, text)
    with pytest.raises(DataError) as caught:
        rows_of(path)
    for part in parts:
        assert part in caught.value.what
    assert caught.value.expected
    assert caught.value.next_step


def test_a_broken_parquet_file_is_named(tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match=r"a\.parquet is not a readable parquet file"):
        rows_of(write(tmp_path, "a.parquet", b"PAR1 or not"))


def test_json_documents_in_all_their_forms(tmp_path):
    for text in ('[{"text": "a"}]', '{"data": [{"text": "a"}]}', '{"text": "a"}', '{"text": "a"}\n{"text": "b"}\n'):
        assert rows_of(write(tmp_path, "a.json", text))[0].values == {"text": "a"}


def test_a_semicolon_separates_when_the_header_has_no_comma(tmp_path):
    assert rows_of(write(tmp_path, "a.csv", "prompt;completion\na, b;c\n"))[0].values == {
        "prompt": "a, b",
        "completion": "c",
    }


def test_a_folder_is_read_in_the_order_of_names_with_splits_by_name(tmp_path):
    (tmp_path / "set" / "more").mkdir(parents=True)
    for name in ("set/b-train.jsonl", "set/a.jsonl", "set/test-00000-of-00001.jsonl", "set/more/validation.jsonl"):
        write(tmp_path, name, json.dumps({"text": name}) + "\n")
    write(tmp_path, "set/README.md", "not data")
    write(tmp_path, "set/dataset_info.json", "{}")
    write(tmp_path, "set/.hidden.jsonl", "broken")
    rows = list(open_source("set", base=tmp_path).rows())
    assert [(row.place.file, row.split) for row in rows] == [
        ("a.jsonl", "train"),
        ("b-train.jsonl", "train"),
        ("more/validation.jsonl", "validation"),
        ("test-00000-of-00001.jsonl", "test"),
    ]


def test_a_folder_without_named_splits_has_none(tmp_path):
    write(tmp_path, "a.jsonl", '{"text": "a"}\n')
    assert [row.split for row in open_source(".", base=tmp_path).rows()] == [None]


def test_a_folder_without_data_says_what_it_looked_for(tmp_path):
    write(tmp_path, "notes.txt", "hello")
    with pytest.raises(DataError) as caught:
        open_source(".", base=tmp_path)
    assert ".jsonl" in caught.value.expected


def test_a_missing_file_is_answered_with_the_nearest(tmp_path):
    write(tmp_path, "train.jsonl", "{}")
    for wrong in ("trian.jsonl", "train.json"):
        with pytest.raises(DataError) as caught:
            open_source(wrong, base=tmp_path)
        assert "train.jsonl" in caught.value.expected
        assert "train.jsonl" in caught.value.next_step


def test_the_hash_follows_the_bytes(tmp_path):
    a = write(tmp_path, "a.jsonl", '{"text": "a"}\n')
    b = write(tmp_path, "b.jsonl", '{"text": "a"}\n')
    c = write(tmp_path, "c.jsonl", '{"text": "a"} \n')
    hashes = [sha256_of(open_source(str(path), base=tmp_path)) for path in (a, b, c)]
    assert hashes[0] == hashes[1] != hashes[2]
    assert len(hashes[0]) == 64


def test_the_longest_ending_decides(tmp_path):
    assert reader_of(tmp_path / "x.csv.GZ") is readers.by_suffix()[".csv"]
    assert reader_of(tmp_path / "x.zip") is None


def test_a_folder_that_may_not_be_listed_is_not_called_empty(tmp_path, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "rows").mkdir()
    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(DataError, match="cannot be listed: Permission denied"):
        open_source("rows", base=tmp_path)
