"""Where rows come from: one file, a folder of files, or a data set of the hub."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scrimp.core.errors import DataError, nearest
from scrimp.data.hub import HUB_ID, HubLoader, HubSource, load_from_hub, open_hub
from scrimp.data.readers import by_suffix
from scrimp.data.readers.reader import FormatReader
from scrimp.data.row import Place, SourceRow
from scrimp.data.split import named_split

# Files that `datasets` writes beside the rows.
_NOT_ROWS = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}
_HASH_CHUNK_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file, how it is read, and the split that its name stands for."""

    path: Path
    label: str
    reader: FormatReader
    split: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSource:
    """One file, or all files of a folder in the order of their names."""

    label: str
    files: tuple[SourceFile, ...]

    def rows(self) -> Iterator[SourceRow]:
        """All rows, file after file.

        Raises:
            DataError: a file is broken (with the line), or there is no row at all.
        """
        empty = True
        for file in self.files:
            for number, (line, values) in enumerate(file.reader.rows(file.path, label=file.label), start=1):
                empty = False
                yield SourceRow(values=values, place=Place(file=file.label, row=number, line=line), split=file.split)
        if empty:
            raise DataError(
                what=f"{self.label} is empty: it holds no rows",
                expected="at least one example",
                next_step='write rows into it, such as {"prompt": "...", "completion": "..."}',
            )


Source = FileSource | HubSource


def open_source(path: str, *, base: Path, load: HubLoader = load_from_hub) -> Source:
    """Find what `path` names: a file or folder (relative ones from `base`), else a data set of the hub.

    Raises:
        DataError: nothing of that name, or no format that can be read.
        NetworkError: a hub id, and the hub cannot be reached.
    """
    place = base / Path(path).expanduser()
    if place.is_dir():
        return _folder(place, label=path)
    if place.is_file():
        reader = reader_of(place)
        if reader is None:
            raise _unknown_format(path)
        file = SourceFile(path=place, label=place.name, reader=reader, split=None)
        return FileSource(label=path, files=(file,))
    if HUB_ID.fullmatch(path) and reader_of(place) is None and not place.parent.is_dir():
        return open_hub(path, load=load)
    raise _missing(path, place)


def sha256_of(source: FileSource) -> str:
    """Of the bytes of all files; with their names where there are several."""
    digest = hashlib.sha256()
    for file in source.files:
        if len(source.files) > 1:
            digest.update(file.label.encode() + b"\0")
        with file.path.open("rb") as opened:
            while chunk := opened.read(_HASH_CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()


def reader_of(path: Path) -> FormatReader | None:
    """The reader for a file of that name, None for a format that nobody reads."""
    name = path.name.lower()
    matching = [suffix for suffix in by_suffix() if name.endswith(suffix)]
    return by_suffix()[max(matching, key=len)] if matching else None


def _check_listable(folder: Path, *, label: str) -> None:
    """`rglob` passes over what it may not list, and an unreadable folder would look like an empty one."""
    try:
        next(folder.iterdir(), None)
    except OSError as error:
        raise DataError(
            what=f"the folder {label} cannot be listed: {error.strerror or error}",
            expected="a folder that this user may read",
            next_step=f"ls -ld {folder}",
        ) from error


def _folder(folder: Path, *, label: str) -> FileSource:
    _check_listable(folder, label=label)
    files: list[SourceFile] = []
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        hidden = any(part.startswith((".", "_")) for part in inside.parts)
        if hidden or not path.is_file() or path.name in _NOT_ROWS:
            continue
        reader = reader_of(path)
        if reader is not None:
            split = named_split(path.name)
            files.append(SourceFile(path=path, label=inside.as_posix(), reader=reader, split=split))
    if not files:
        raise DataError(
            what=f"the folder {label} holds no file that can be read",
            expected=f"files that end in {', '.join(sorted(by_suffix()))}",
            next_step="name a folder with data files, or one file",
        )
    if any(file.split for file in files):
        # Beside files that name their split, the rest trains.
        files = [file if file.split else _as_train(file) for file in files]
    return FileSource(label=label, files=tuple(files))


def _as_train(file: SourceFile) -> SourceFile:
    return SourceFile(path=file.path, label=file.label, reader=file.reader, split="train")


def _unknown_format(path: str) -> DataError:
    return DataError(
        what=f'the format of "{path}" is not known',
        expected=f"a file that ends in {', '.join(sorted(by_suffix()))}",
        next_step="convert it to JSON Lines: one object a line",
    )


def _missing(path: str, place: Path) -> DataError:
    folder = place.parent
    close: tuple[str, ...] = ()
    if folder.is_dir():
        close = nearest(place.name, (item.name for item in folder.iterdir()))
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    return DataError(
        what=f'there is no file or folder "{path}"',
        expected=f"{hint}a path that exists (looked for {place}), or the id of a hub data set: owner/name",
        next_step=f"data: {{path: {(Path(path).parent / close[0]).as_posix()}}}" if close else f"ls {folder}",
    )
