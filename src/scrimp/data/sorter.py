"""Rows to their sides: to train on, to evaluate on, or to leave out."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b, sha256

from scrimp.core.errors import DataError
from scrimp.core.job import DataSpec
from scrimp.data.row import Content, DataRow, SourceRow
from scrimp.data.shapes.shape import RowShape
from scrimp.data.split import are_split_names, evaluates, kind_of

SPLIT_COLUMN = "split"


def content_key(content: Content) -> bytes:
    """A hash of what a row says; equal rows have equal keys, whatever their other columns hold.

    Raises:
        UnicodeEncodeError: the text holds half a surrogate pair, which no tokenizer takes.
    """
    digest = blake2b(digest_size=16)
    if isinstance(content, str):
        digest.update(content.encode())
        return digest.digest()
    for message in content.messages:
        extra = repr(sorted(message.extra.items())) if message.extra else ""
        for part in (message.role, message.content, extra):
            data = part.encode()
            digest.update(len(data).to_bytes(8, "big"))
            digest.update(data)
    if content.tools:
        digest.update(repr(content.tools).encode())
    return digest.digest()


@dataclass(slots=True, kw_only=True)
class RowSorter:
    """Takes rows one by one, understands them, and puts them on their side.

    `by_split`: rows name the split they belong to. `left_out` counts the rows of splits that are not used.
    """

    spec: DataSpec
    shape: RowShape
    by_split: bool
    train: list[DataRow] = field(default_factory=list[DataRow])
    evaluation: list[DataRow] = field(default_factory=list[DataRow])
    roles: dict[str, None] = field(default_factory=dict[str, None])
    splits: Counter[str] = field(default_factory=Counter[str])
    left_out: Counter[str] = field(default_factory=Counter[str])
    cut_short: bool = False

    def add(self, rows: Iterable[SourceRow]) -> None:
        """Sort the rows of the main source.

        Raises:
            DataError: a row that does not have the shape, or names no split where others do (or the reverse).
        """
        for number, row in enumerate(rows, start=1):
            split = self._split_of(row)
            side = "train" if split is None else kind_of(split, train=self.spec.split)
            if side == "other" or (side == "evaluation" and self.spec.eval_path is not None):
                self.left_out[split or ""] += 1
            elif side == "evaluation":
                self.evaluation.append(self._understood(row, number=number, shape=self.shape))
            elif len(self.train) != self.spec.max_rows:
                self.train.append(self._understood(row, number=number, shape=self.shape))
            else:
                self.cut_short = True
                if not self.by_split:
                    # No evaluation rows can follow.
                    return

    def add_evaluation(self, rows: Iterable[SourceRow], *, shape: RowShape) -> None:
        """Take every row of a separate evaluation source; numbers go on from those of the main one."""
        behind = self.train[-1].number + 1 if self.train else 1
        found = enumerate(rows, start=behind)
        self.evaluation += [self._understood(row, number=number, shape=shape) for number, row in found]

    def hold_out(self) -> None:
        """Move the share `eval_share` of the training rows to evaluation, picked by their hashes."""
        rows, share = self.train, self.spec.eval_share
        self.evaluation = [row for row in rows if evaluates(row.key, share=share)]
        self.train = [row for row in rows if not evaluates(row.key, share=share)]

    def check(self) -> None:
        """Refuse a source none of whose rows trains.

        Raises:
            DataError: no row is in the training split, or all were held out.
        """
        if self.train:
            return
        if self.splits and not self.splits[self.spec.split]:
            found = ", ".join(f"{name} ({rows:,} rows)" for name, rows in self.splits.items())
            raise DataError(
                what=f'{self.spec.path} has no rows in the split "{self.spec.split}"; its splits are: {found}',
                expected="data.split to name the split to train on",
                next_step=f"data.split={self.splits.most_common(1)[0][0]}",
            )
        raise DataError(
            what=f"all {len(self.evaluation)} rows of {self.spec.path} went to evaluation "
            f"(data.eval_share is {self.spec.eval_share})",
            expected="rows left to train on",
            next_step="data.eval_share=0, or name a file for evaluation: data.eval_path=...",
        )

    def sha256(self) -> str:
        """Of what all rows say, for sources without files to hash."""
        return sha256(b"".join(row.key for row in (*self.train, *self.evaluation))).hexdigest()

    def notes(self) -> list[str]:
        """What a reader of the profile should know about the sorting."""
        lines = [f'{rows:,} rows of the split "{name}" are not used' for name, rows in self.left_out.items()]
        if self.cut_short:
            lines.append(f"only the first {self.spec.max_rows:,} training rows are read (data.max_rows)")
        seen = {row.key for row in self.train}
        shared = sum(row.key in seen for row in self.evaluation)
        if shared:
            lines.append(f"{shared:,} evaluation rows also stand in the training rows: the held-out loss will flatter")
        if not self.evaluation:
            lines.append("there are no evaluation rows, so no held-out loss will be known")
        return lines

    def _split_of(self, row: SourceRow) -> str | None:
        """The split a row belongs to, None where rows name none."""
        value = row.split if row.split is not None else row.values.get(SPLIT_COLUMN)
        named = isinstance(value, str) and value.strip() != ""
        if self.by_split and not named:
            raise _split_error(row, "names no split, while the first rows do")
        if not self.by_split and named and are_split_names([str(value)], train=self.spec.split):
            raise _split_error(row, f'names the split "{value}", while the first rows name none')
        if not self.by_split:
            return None
        split = str(value).strip()
        self.splits[split] += 1
        return split

    def _understood(self, row: SourceRow, *, number: int, shape: RowShape) -> DataRow:
        content = shape.content(row)
        try:
            key = content_key(content)
        except UnicodeEncodeError as error:
            around = error.object[max(0, error.start - 20) : error.start + 20].encode("ascii", "backslashreplace")
            raise DataError(
                what=f"{row.place} holds half a surrogate pair, a broken emoji most likely: {around.decode()}",
                expected="text that is valid Unicode",
                next_step="repair or leave out that row",
            ) from error
        for tag, role in shape.roles(row):
            self.roles[tag if tag == role else f"{tag} as {role}"] = None
        return DataRow(number=number, place=row.place, content=content, key=key)


def _split_error(row: SourceRow, what: str) -> DataError:
    return DataError(
        what=f"{row.place} {what}",
        expected=f'a "{SPLIT_COLUMN}" in every row (train, test ...), or in none',
        next_step="complete the column, or remove it",
    )
