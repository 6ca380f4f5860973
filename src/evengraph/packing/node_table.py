"""NodeTable: the nodes table in Parquet files, read column by column or block by block."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from evengraph.packing.table_files import TableFiles
from evengraph.tables.cells import import_pandas

READ_ROWS = 1 << 17
INDEX_COLUMN = "__index_level_"  # what pandas calls an index without a name


class NodeTable:
    """Looks like a DataFrame to those who ask for columns, but holds none of them.

    Args:
        files: Parquet files.
        name: What messages call the table.
        stride: Of every so many rows only the first counts.
        drop: Columns that are left out.
    """

    def __init__(
        self, files: TableFiles, name: str, *, stride: int = 1, drop: Collection[str] = ()
    ) -> None:
        from pyarrow.parquet import ParquetFile

        self._files = [ParquetFile(path) for path in files.paths]
        self.num_rows: int = sum(file.metadata.num_rows for file in self._files)
        self.stride, self.attrs = stride, {"file": name}
        names = [str(name) for name in self._files[0].schema_arrow.names]
        self._names = {
            name.strip(): name
            for name in names
            if name.strip() not in drop and not name.startswith(INDEX_COLUMN)
        }

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._names)

    @property
    def iloc(self) -> Any:
        """Rows by number, of which only the first are there."""
        return next(self.blocks(self.columns, 1)).iloc

    def __len__(self) -> int:
        return -(-self.num_rows // self.stride)

    def __getitem__(self, column: str) -> Any:
        """A column as pandas reads it from Parquet."""
        import pyarrow as pa

        parts, start = [], 0
        for batch in self._batches([column], READ_ROWS):
            cells = batch.column(0)
            if self.stride > 1:
                rows = np.arange(-start % self.stride, len(cells), self.stride)
                start += len(cells)
                cells = cells.take(pa.array(rows))
            parts.append(cells)
        table = pa.table({column: pa.chunked_array(parts)})
        return table.to_pandas()[column]

    def blocks(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        """DataFrames of some columns and at most so many rows, which follow one another."""
        import_pandas()
        for batch in self._batches(columns, size):
            frame = batch.to_pandas(ignore_metadata=True)
            frame.columns = list(columns)
            frame.attrs = dict(self.attrs)
            yield frame

    def cell_bytes(self, columns: Collection[str]) -> int:
        """Bytes of the largest cell among some columns, on average over the rows."""
        sizes: dict[str, int] = {}
        for file in self._files:
            for index in range(file.metadata.num_row_groups):
                group = file.metadata.row_group(index)
                for place in range(group.num_columns):
                    column = group.column(place)
                    name = column.path_in_schema.split(".")[0].strip()
                    sizes[name] = sizes.get(name, 0) + column.total_uncompressed_size
        largest: int = max((sizes.get(column, 0) for column in columns), default=0)
        return largest // max(self.num_rows, 1)

    def _batches(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        names = [self._names[column] for column in columns]
        for file in self._files:
            for batch in file.iter_batches(batch_size=size, columns=names):
                yield batch.select(names)
