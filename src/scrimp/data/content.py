"""A data set as conversations or texts: read, recognised, split into training and evaluation rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from scrimp.core.job import DataSpec
from scrimp.data import shapes
from scrimp.data.hub import HubLoader, HubSource, load_from_hub
from scrimp.data.row import DataRow, SourceRow
from scrimp.data.shapes.shape import RowShape
from scrimp.data.sorter import SPLIT_COLUMN, RowSorter
from scrimp.data.source import open_source, sha256_of
from scrimp.data.split import are_split_names

# Rows from which the shape is told.
_FIRST_ROWS = 20


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


def read_content(spec: DataSpec, *, base: Path, load: HubLoader = load_from_hub) -> DataContent:
    """Read what `spec` names, relative paths from `base`; `load` brings data sets of the hub.

    Evaluation rows are those of `eval_path`; else those of a test or validation split; else the share `eval_share`,
    picked by a hash of each row so that new rows never move old ones across. `max_rows` ends the reading of training
    rows; rows held out by the hash are taken from them.

    Raises:
        DataError: no rows, a broken row, an unknown shape, no rows in the training split.
        NetworkError: a hub data set that cannot be fetched.
    """
    source = open_source(spec.path, base=base, load=load)
    if isinstance(source, HubSource):
        source = source.without_others(train=spec.split)
    first, rows = _peek(source.rows())
    shape = shapes.recognise(first, label=spec.path) if spec.shape == "auto" else shapes.get(spec.shape)
    sorter = RowSorter(spec=spec, shape=shape, by_split=_name_splits(first, spec))
    sorter.add(rows)
    if spec.eval_path is not None:
        first, rows = _peek(open_source(spec.eval_path, base=base, load=load).rows())
        same = all(shape.recognises(row) for row in first)
        sorter.add_evaluation(rows, shape=shape if same else shapes.recognise(first, label=spec.eval_path))
    elif not sorter.evaluation:
        sorter.hold_out()
    sorter.check()
    return DataContent(
        train=tuple(sorter.train),
        evaluation=tuple(sorter.evaluation),
        shape=shape,
        sha256=sorter.sha256() if isinstance(source, HubSource) else sha256_of(source),
        roles=tuple(sorter.roles),
        notes=tuple(sorter.notes()),
    )


def _peek(rows: Iterator[SourceRow]) -> tuple[list[SourceRow], Iterator[SourceRow]]:
    first = list(islice(rows, _FIRST_ROWS))
    return first, chain(first, rows)


def _name_splits(first: list[SourceRow], spec: DataSpec) -> bool:
    """Whether rows belong to splits: their files or data set say so, or they have a column that does."""
    if any(row.split is not None for row in first):
        return True
    found = [value for row in first if isinstance(value := row.values.get(SPLIT_COLUMN), str)]
    return are_split_names(found, train=spec.split)
