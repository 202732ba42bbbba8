"""Parquet, through pyarrow (the data extra)."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from scrimp._lazy import need
from scrimp.core.errors import DataError
from scrimp.data.readers.reader import FormatReader

_BATCH_ROWS = 1024


class Parquet(FormatReader):
    """`.parquet` and `.pq`."""

    suffixes = (".parquet", ".pq")
    text = False

    def rows(self, path: Path, *, label: str) -> Iterator[tuple[int | None, Mapping[str, object]]]:
        """Rows by column, batch after batch."""
        parquet = need("pyarrow.parquet", extra="data", why="to read parquet files")
        arrow = need("pyarrow", extra="data", why="to read parquet files")
        try:
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=_BATCH_ROWS):
                    for values in batch.to_pylist():
                        yield None, values
        except (arrow.ArrowException, OSError) as error:
            raise DataError(
                what=f"{label} is not a readable parquet file: {error}",
                expected="a whole parquet file",
                next_step=f'python -c "import pyarrow.parquet as p; print(p.ParquetFile({str(path)!r}).schema)"',
            ) from error


READER = Parquet()
