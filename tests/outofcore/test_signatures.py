"""Nodes of a graph on disk are recognised as in memory."""

import pytest
import torch

from evengraph.disk import signatures
from evengraph.disk.propagation import Workspace
from evengraph.disk.signatures import known_nodes
from evengraph.disk.tables import ArrayTable, row_slices
from evengraph.ops.features import matching_signatures, node_signatures
from graphs_on_disk import Arrays, random_matrix
from small_graphs import normal


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [40, 60, 75], ids=["fewer in training", "as many", "more"])
def test_the_same_nodes_are_known(tmp_path, monkeypatch, size, weighted):
    monkeypatch.setattr(signatures, "row_slices", lambda rows: row_slices(rows, 16))
    matrix, x = random_matrix(60, 4, seed=0, weighted=weighted), normal(60, 7, dtype=torch.float32)
    edges = torch.from_numpy(matrix.nonzero()[0]), torch.from_numpy(matrix.nonzero()[1])
    before = torch.zeros(size, 6, dtype=torch.float64)
    before[:60] = node_signatures(x, torch.stack(edges).long())[:size]
    x[20] += 1
    now = node_signatures(x, torch.stack(edges).long())
    space = Workspace(Arrays(matrix, weighted), tmp_path, memory=3_000)
    known = known_nodes(ArrayTable.of(x), space, before)
    assert len(known) == min(size, 60)
    assert torch.equal(known, matching_signatures(now, before)[:size])
    assert not known[20]
    assert not known[matrix[20].indices[matrix[20].indices < size]].any()
    assert known.sum() > 20
