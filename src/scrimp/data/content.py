"""A data set as conversations or texts: read, recognised, split into training and evaluation rows."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path

from scrimp.core.errors import DataError
from scrimp.core.job import DataSpec
from scrimp.data import shapes
from scrimp.data.row import Content, DataRow, SourceRow
from scrimp.data.shapes.shape import RowShape
from scrimp.data.source import open_source, sha256_of
from scrimp.data.split import are_split_names, evaluates, kind_of

# Rows from which the shape is told.
_FIRST_ROWS = 20
_SPLIT_COLUMN = "split"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataContent:
    """What a data set says, before any tokenizer has seen it.

    `roles` are tags as the rows have them, each with the role it is taken for (`human as user`). `notes` are lines for
    people about rows that were left aside on purpose.
    """

    train: tuple[DataRow, ...]
    evaluation: tuple[DataRow, ...]
    shape: RowShape
    sha256: str
    roles: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def is_text(self) -> bool:
        """Plain documents, no conversations."""
        return self.shape.name == "text"


def read_content(spec: DataSpec, *, base: Path) -> DataContent:
    """Read what `spec` names, relative paths from `base`.

    Evaluation rows are those of `eval_path`; else those of a test or validation split; else the share `eval_share`,
    picked by a hash of each row so that new rows never move old ones across.

    Raises:
        DataError: no rows, a broken row, an unknown shape, no rows in the training split.
        NetworkError: a hub data set that cannot be fetched.
    """
    source = open_source(spec.path, base=base)
    first, rows = _peek(source.rows())
    shape = _shape(first, spec)
    sorter = _Sorter(spec=spec, shape=shape, by_split=_by_split(first, spec))
    for number, row in enumerate(rows, start=1):
        if sorter.is_full:
            break
        sorter.add(row, number=number)
    if not sorter.train:
        raise sorter.no_training_rows()
    if spec.eval_path is not None:
        sorter.add_evaluation(open_source(spec.eval_path, base=base).rows())
    return DataContent(
        train=tuple(sorter.train),
        evaluation=tuple(sorter.evaluation),
        shape=shape,
        sha256=sha256_of(source),
        roles=tuple(sorter.roles),
        notes=tuple(sorter.notes()),
    )


def content_key(content: Content) -> bytes:
    """A hash of what a row says; equal rows have equal keys, whatever their other columns hold.

    Raises:
        UnicodeEncodeError: the text holds half a surrogate pair, which no tokenizer takes.
    """
    digest = blake2b(digest_size=16)
    if isinstance(content, str):
        digest.update(content.encode())
    else:
        for message in content.messages:
            extra = repr(sorted(message.extra.items())) if message.extra else ""
            for part in (message.role, message.content, extra):
                data = part.encode()
                digest.update(len(data).to_bytes(8, "big"))
                digest.update(data)
    return digest.digest()


@dataclass(slots=True, kw_only=True)
class _Sorter:
    """Puts rows on one side or the other, and counts those that belong to neither."""

    spec: DataSpec
    shape: RowShape
    by_split: bool
    train: list[DataRow] = field(default_factory=list[DataRow])
    evaluation: list[DataRow] = field(default_factory=list[DataRow])
    roles: dict[str, None] = field(default_factory=dict[str, None])
    splits: Counter[str] = field(default_factory=Counter[str])
    left_out: Counter[str] = field(default_factory=Counter[str])

    @property
    def is_full(self) -> bool:
        """No further row can change anything: `max_rows` is reached and no evaluation split may follow."""
        return self._has_all and (not self.by_split or self.spec.eval_path is not None)

    @property
    def _has_all(self) -> bool:
        return self.spec.max_rows is not None and len(self.train) >= self.spec.max_rows

    def add(self, row: SourceRow, *, number: int) -> None:
        """Sort one row of the main source."""
        side, split = "train", ""
        if self.by_split:
            split = _split_of(row)
            self.splits[split] += 1
            side = kind_of(split, train=self.spec.split)
        if side == "other" or (side == "evaluation" and self.spec.eval_path is not None):
            self.left_out[split] += 1
            return
        if side == "train" and self._has_all:
            return
        data = self._data_row(row, number=number)
        hashed = not self.by_split and self.spec.eval_path is None
        if side == "evaluation" or (hashed and evaluates(data.key, share=self.spec.eval_share)):
            self.evaluation.append(data)
        else:
            self.train.append(data)

    def add_evaluation(self, rows: Iterator[SourceRow]) -> None:
        """Take every row of a separate evaluation source, in the same shape or its own."""
        first, everything = _peek(rows)
        if not all(self.shape.recognises(row) for row in first):
            self.shape = shapes.recognise(first, label=self.spec.eval_path or "")
        self.evaluation += [self._data_row(row, number=number) for number, row in enumerate(everything, start=1)]

    def no_training_rows(self) -> DataError:
        """The error for a source none of whose rows trains."""
        if self.by_split:
            found = ", ".join(f"{name} ({rows:,} rows)" for name, rows in self.splits.items())
            return DataError(
                what=f'{self.spec.path} has no rows in the split "{self.spec.split}"; its splits are: {found}',
                expected="data.split to name the split to train on",
                next_step=f"data.split={self.splits.most_common(1)[0][0]}",
            )
        return DataError(
            what=f"all {len(self.evaluation)} rows of {self.spec.path} went to evaluation "
            f"(data.eval_share is {self.spec.eval_share})",
            expected="rows left to train on",
            next_step="data.eval_share=0, or name a file for evaluation: data.eval_path=...",
        )

    def notes(self) -> list[str]:
        """What a reader of the profile should know about the sorting."""
        lines = [f'{rows:,} rows of the split "{name}" are not used' for name, rows in self.left_out.items()]
        if self._has_all:
            lines.append(f"training uses the first {self.spec.max_rows:,} rows alone (data.max_rows)")
        seen = {row.key for row in self.train}
        shared = sum(row.key in seen for row in self.evaluation)
        if shared:
            lines.append(f"{shared:,} evaluation rows also stand in the training rows: the held-out loss will flatter")
        if not self.evaluation:
            lines.append("there are no evaluation rows, so no held-out loss will be known")
        return lines

    def _data_row(self, row: SourceRow, *, number: int) -> DataRow:
        content = self.shape.content(row)
        try:
            key = content_key(content)
        except UnicodeEncodeError as error:
            around = error.object[max(0, error.start - 20) : error.start + 20].encode("ascii", "backslashreplace")
            raise DataError(
                what=f"{row.place} holds half a surrogate pair, a broken emoji most likely: {around.decode()}",
                expected="text that is valid Unicode",
                next_step="repair or leave out that row",
            ) from error
        for tag, role in self.shape.roles(row):
            self.roles[tag if tag == role else f"{tag} as {role}"] = None
        return DataRow(number=number, place=row.place, content=content, key=key)


def _peek(rows: Iterator[SourceRow]) -> tuple[list[SourceRow], Iterator[SourceRow]]:
    first = list(islice(rows, _FIRST_ROWS))
    return first, chain(first, rows)


def _shape(first: list[SourceRow], spec: DataSpec) -> RowShape:
    if spec.shape == "auto":
        return shapes.recognise(first, label=spec.path)
    return shapes.get(spec.shape)


def _by_split(first: list[SourceRow], spec: DataSpec) -> bool:
    if any(row.split is not None for row in first):
        return True
    found = [value for row in first if isinstance(value := row.values.get(_SPLIT_COLUMN), str)]
    return are_split_names(found, train=spec.split)


def _split_of(row: SourceRow) -> str:
    value = row.split if row.split is not None else row.values.get(_SPLIT_COLUMN)
    if not isinstance(value, str) or not value.strip():
        raise DataError(
            what=f"{row.place} names no split, while other rows of this data set do",
            expected='a "split" in every row (train, test ...), or in none',
            next_step="complete the column, or remove it",
        )
    return value.strip()
