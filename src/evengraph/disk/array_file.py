"""ArrayFile: a .npy file that rows are appended to, without knowing their number."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.lib.format import write_array_header_1_0
from numpy.typing import DTypeLike, NDArray


class ArrayFile:
    """Appends rows to a .npy file; the header gets their number at the end.

    Written rows are not mapped, so they do not count as memory of the process.

    Args:
        path: The file.
        dtype: Of all rows.
        width: Number of columns; None for an array of one dimension.
    """

    def __init__(self, path: Path, dtype: DTypeLike, width: int | None = None) -> None:
        self.path, self.dtype, self.width = path, np.dtype(dtype), width
        self.length = 0

    def __enter__(self) -> Self:
        self._file = self.path.open("wb")
        self._write_header()
        return self

    def append(self, rows: NDArray[Any]) -> None:
        """Append rows, (M,) or (M, width), converted to the dtype."""
        if rows.shape[1:] != (() if self.width is None else (self.width,)):
            raise ValueError(f"rows must have width {self.width}, got shape {rows.shape}.")
        self._file.write(np.ascontiguousarray(rows, dtype=self.dtype).data)
        self.length += len(rows)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._file:
            self._file.seek(0)
            self._write_header()

    def _write_header(self) -> None:
        """NumPy leaves room in a header for a longer first axis."""
        shape = (self.length,) if self.width is None else (self.length, self.width)
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": shape}
        write_array_header_1_0(self._file, header)
