"""The network of Uni-GNN on a graph on disk."""

import pytest
import torch

from evengraph.disk import unified
from evengraph.disk.propagation import Workspace
from evengraph.disk.tables import ArrayTable, row_slices
from evengraph.disk.unified import unified_table
from evengraph.nn.unified import Connectivity, UnifiedNetwork
from evengraph.ops.sparse import propagation_matrix
from graphs_on_disk import Arrays, random_matrix
from small_graphs import normal


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("share", [False, True])
def test_layers_in_blocks_equal_those_in_memory(tmp_path, monkeypatch, layers, share):
    monkeypatch.setattr(unified, "row_slices", lambda rows: row_slices(rows, 16))
    matrix, x = random_matrix(60, 4, seed=0), normal(60, 7, dtype=torch.float32)
    options = {"share": share, "layers": layers, "hidden": 6, "dropout": 0.5}
    net = UnifiedNetwork(7, 3, 60, num_clusters=9, encoders=("structural", "semantic"), **options)
    adjacency = propagation_matrix(matrix, torch.device("cpu"))
    inputs = Connectivity(x, adjacency, adjacency, adjacency @ x)
    with torch.no_grad():
        net.init_clusters(inputs)
        net(inputs, net.recluster)
        net.clear_cache()
        net.store_means(inputs)
        known = torch.arange(50) % 3 != 0  # of fewer nodes than there are
        padded = torch.cat([known, torch.zeros(10, dtype=torch.bool)])
        expected = net(inputs, net.stored_or_nearest(padded))
    stages = set()
    space = Workspace(Arrays(matrix), tmp_path, 6_000, progress=lambda name, _: stages.add(name))
    table = unified_table(net, ArrayTable.of(x), space, known)
    logits = net.classifier.linear(table.read(slice(0, 60)).relu())
    torch.testing.assert_close(logits.detach(), expected, rtol=1e-4, atol=1e-5)
    assert {"layer 1", "clusters of layer 1", "classifier"} <= stages
    stages.clear()
    unified_table(net, ArrayTable.of(x), space, known)
    assert not stages  # all is stored
