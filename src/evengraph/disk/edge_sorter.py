"""EdgeSorter: sort more edges than fit into memory, by files for ranges of nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evengraph.core.arrays import sorted_unique
from evengraph.disk.array_file import ArrayFile
from evengraph.disk.graphs import index_dtype
from evengraph.disk.writer import PackWriter

Ints = NDArray[np.int64]

SORTING_BYTES = 40
"""Memory that sorting takes for an edge: its key, a copy, a mask, both ends."""


class EdgeSorter:
    """Takes pairs of nodes in any order, and writes indptr and indices of both directions.

    Every pair goes into the files of both ends; each file is then sorted in memory.

    Args:
        writer: Writes the packed graph.
        num_nodes: N.
        num_pairs: How many pairs to expect.
        memory: Bytes for sorting a file.
    """

    def __init__(self, writer: PackWriter, num_nodes: int, num_pairs: int, memory: int) -> None:
        self.writer, self.num_nodes = writer, num_nodes
        count = min(max(-(-2 * num_pairs * SORTING_BYTES // memory), 1), num_nodes)
        self.size = -(-num_nodes // count)
        self.folder = writer.folder / "pairs"
        self.folder.mkdir(exist_ok=True)
        for path in self.folder.iterdir():  # of a run that was killed
            path.unlink()

    def add(self, first: Ints, second: Ints) -> None:
        """Add pairs of nodes, (M,) each."""
        for a, b in ((first, second), (second, first)):
            bucket = a // self.size
            keys = (a * self.num_nodes + b)[np.argsort(bucket, kind="stable")]
            counts = np.bincount(bucket)
            for number, part in enumerate(np.split(keys, np.cumsum(counts)[:-1])):
                if len(part):
                    with self._path(number).open("ab") as file:
                        file.write(part.data)

    def write(self) -> None:
        """Sort all pairs without repeats and self-loops, and write them."""
        degrees = np.zeros(self.num_nodes, dtype=np.int64)
        path = self.writer.folder / "indices.npy"
        with ArrayFile(path, index_dtype(self.num_nodes)) as indices:
            for number in range(-(-self.num_nodes // self.size)):
                file = self._path(number)
                if not file.exists():
                    continue
                sources, targets = np.divmod(
                    sorted_unique(np.fromfile(file, np.int64)), self.num_nodes
                )
                apart = sources != targets
                indices.append(targets[apart])
                start = number * self.size
                counts = np.bincount(sources[apart] - start)
                degrees[start : start + len(counts)] = counts
                file.unlink()
        self.writer.write("indptr", np.concatenate([[0], np.cumsum(degrees)]))

    def _path(self, number: int) -> Path:
        return self.folder / str(number)
