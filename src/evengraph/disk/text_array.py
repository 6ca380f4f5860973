"""TextArray: texts of any length in two arrays, so that one long text costs no other."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray


class TextArray:
    """Texts in UTF-8, one after the other; slices and lists of rows give arrays of str.

    Args:
        content: The bytes of all texts.
        offsets: Where each text begins, and where the last ends.

    Shapes:
        content: uint8; offsets: int64, (N + 1,)
    """

    def __init__(self, content: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.content, self.offsets = content, offsets

    @property
    def shape(self) -> tuple[int]:
        """(N,)."""
        return (len(self),)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(len(self))
            return self._read(start, max(stop, start))
        if isinstance(rows, slice):
            rows = np.arange(len(self))[rows]
        if np.ndim(rows) == 0:
            row = range(len(self))[int(rows)]
            return self._read(row, row + 1)[0]
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return _objects([self[int(row)] for row in rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self._read(0, len(self))

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        bounds = np.asarray(self.offsets[start : stop + 1]).tolist()
        content = self.content[bounds[0] : bounds[-1]].tobytes()
        first = bounds[0]
        try:
            return _objects(
                [
                    content[low - first : high - first].decode("utf-8", "surrogatepass")
                    for low, high in pairwise(bounds)
                ]
            )
        except UnicodeDecodeError:
            raise ValueError(f"rows {start} to {stop - 1} are not UTF-8 text") from None


def encode_texts(texts: list[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of texts, and the length of each, (N,)."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    lengths = np.fromiter((len(text) for text in encoded), dtype=np.int64, count=len(encoded))
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), lengths


def _objects(texts: list[str]) -> NDArray[Any]:
    """An array of str objects, as pandas gives them."""
    result = np.empty(len(texts), dtype=object)
    result[:] = texts
    return result
