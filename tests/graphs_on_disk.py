"""Graphs on disk, as plain arrays."""

import hashlib
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from evengraph.disk.tables import ArrayTable


@dataclass(frozen=True, eq=False)
class Arrays:
    """A graph in CSR form in memory, with what a `Workspace` asks a packed one for."""

    matrix: sp.csr_matrix
    weighted: bool = False

    @property
    def num_nodes(self):
        return self.matrix.shape[0]

    @property
    def edges_hash(self):
        parts = self.matrix.indptr, self.matrix.indices, self.matrix.data
        return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()

    @property
    def edge_weight(self):
        return self.matrix.data.astype(np.float32) if self.weighted else None

    def array(self, name):
        return {
            "indptr": self.matrix.indptr.astype(np.int64),
            "indices": self.matrix.indices,
            "edge_weight": self.matrix.data.astype(np.float32),
        }[name]


def table_of(x, kind=ArrayTable):
    """A table in memory."""
    array = np.ascontiguousarray(x)
    return kind(lambda: array, hashlib.sha256(array.tobytes()).hexdigest())


def random_matrix(num_nodes, degree, seed, weighted=False):
    """A symmetric adjacency matrix without self-loops; some nodes have no edges."""
    random = np.random.default_rng(seed)
    size = num_nodes * degree // 2
    pairs = random.integers(0, num_nodes, (2, size))
    pairs = pairs[:, pairs[0] != pairs[1]]
    matrix = sp.csr_matrix((np.ones(pairs.shape[1]), tuple(pairs)), (num_nodes, num_nodes))
    matrix.data[:] = random.uniform(0.1, 5, matrix.nnz) if weighted else 1
    matrix = matrix.maximum(matrix.T).tocsr().astype(np.float32)
    matrix.sort_indices()
    return matrix
