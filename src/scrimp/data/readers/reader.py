"""What every file format answers: the one abstract class of this folder, and how text becomes lines."""

import gzip
import zlib
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from scrimp.core.errors import DataError

_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


class FormatReader(ABC):
    """One file format. Rows are streamed as (line the row starts on, or None; values by column)."""

    # Lower case, with the dot. Formats that are text are also read with `.gz` behind it.
    suffixes: tuple[str, ...]
    text: bool

    @abstractmethod
    def rows(self, path: Path, *, label: str) -> Iterator[tuple[int | None, Mapping[str, object]]]:
        """Stream the rows of one file; `label` names the file in messages.

        Raises:
            DataError: the file is not of this format, with the line.
        """


@contextmanager
def open_bytes(path: Path, *, label: str) -> Generator[Iterable[bytes]]:
    """The file's bytes, line by line, unpacked when its name ends in `.gz`.

    Raises:
        DataError: the file cannot be opened, or is no whole gzip file.
    """
    try:
        with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            what=f"{label} is not a whole gzip file: {error}",
            expected="a file packed with gzip, or a plain file without .gz in its name",
            next_step=f"gzip -t {path}",
        ) from error
    except OSError as error:
        raise DataError(
            what=f"{label} cannot be read: {error.strerror or error}",
            expected="a file that this user may read",
            next_step=f"ls -l {path}",
        ) from error


def lines_of(path: Path, *, label: str) -> Iterator[tuple[int, str]]:
    """(line number from 1, text with its line end), decoded as UTF-8; a byte order mark is skipped.

    Raises:
        DataError: a line is not UTF-8.
    """
    with open_bytes(path, label=label) as file:
        for number, raw in enumerate(file, start=1):
            line = raw.removeprefix(_UTF8_BOM) if number == 1 else raw
            try:
                yield number, line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise _not_utf8(line, error, number=number, path=path, label=label) from error


def _not_utf8(line: bytes, error: UnicodeDecodeError, *, number: int, path: Path, label: str) -> DataError:
    if number == 1 and line.startswith(_UTF16_BOMS):
        found, source = "is UTF-16", "UTF-16"
    else:
        around = line[max(0, error.start - 20) : error.start + 20].decode("latin-1").strip()
        found = f'holds byte 0x{line[error.start]:02x} at column {error.start + 1}, near "{around}"'
        source = "WINDOWS-1252"
    return DataError(
        what=f"{label}, line {number} is not UTF-8: it {found}",
        expected="text in UTF-8 (a byte order mark is fine)",
        next_step=f"iconv -f {source} -t UTF-8 {path} > utf8{''.join(path.suffixes)}",
    )
