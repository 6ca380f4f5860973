"""Convolutions of a graph on disk are those of memory."""

import pytest
import torch

from evengraph.disk.layers import convolved_table, relu_table
from evengraph.disk.propagation import Workspace
from evengraph.disk.tables import ArrayTable
from evengraph.nn.backbones import CONVS
from evengraph.ops.sparse import propagation_matrix
from graphs_on_disk import Arrays, random_matrix
from small_graphs import normal


@pytest.mark.parametrize("kind", ["symmetric", "row"])
@pytest.mark.parametrize("backbone", ["gcn", "sage", "gat"])
def test_two_layers_in_blocks_equal_those_in_memory(tmp_path, backbone, kind):
    matrix, x = random_matrix(60, 4, seed=0, weighted=True), normal(60, 7, dtype=torch.float32)
    first, second = CONVS[backbone](7, 5), CONVS[backbone](5, 3)
    links = Arrays(matrix, weighted=True)
    space = Workspace(links, tmp_path, memory=3_000)
    table = convolved_table(first, ArrayTable.of(x), space, kind, "first")
    table = convolved_table(second, relu_table(table), space, kind, "second")
    weights = links.matrix / links.matrix.data.mean()
    propagation = propagation_matrix(weights, torch.device("cpu"), how=kind)
    with torch.no_grad():
        expected = second(first(x, propagation).relu(), propagation)
    torch.testing.assert_close(table.read(slice(0, 60)), expected)
    torch.testing.assert_close(table.read(torch.tensor([9, 2]), slice(1, 3)), expected[[9, 2], 1:])
