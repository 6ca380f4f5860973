"""Means per hop and per relation against loops over neighbours."""

import torch
from torch_geometric.data import Data

from evengraph.ops.sparse import neighbour_averages, relation_adjacency


def related_graph(weighted):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        arcs = torch.stack([torch.randint(high, (40,)) for high in (3, 9, 9)])
        arcs = torch.unique(arcs[:, arcs[1] != arcs[2]], dim=1)
        weight = torch.rand(arcs.shape[1]) + 0.1
    both = torch.cat([arcs[1:], arcs[1:].flip(0)], 1)
    parts = {"relation_weight": weight, "edge_weight": weight.repeat(2)} if weighted else {}
    return Data(
        x=torch.rand(9, 4, dtype=torch.float64),
        edge_index=both,
        relation_index=arcs,
        num_relations=4,  # the last one has no edge
        **parts,
    )


def looped_mean(graph, relation):
    """The weighted mean over the neighbours of each node in one relation."""
    rows = torch.zeros_like(graph.x)
    for node in range(graph.num_nodes):
        total = 0.0
        for place, (kind, end, other) in enumerate(graph.relation_index.T.tolist()):
            if kind == relation and end == node:
                weight = float(graph.relation_weight[place]) if "relation_weight" in graph else 1.0
                rows[node] += weight * graph.x[other]
                total += weight
        if total:
            rows[node] /= total
    return rows


def test_relations_stay_apart():
    for graph in (related_graph(False), related_graph(True)):
        averages = neighbour_averages(graph, 2, torch.float64)
        assert [steps for _, steps in averages] == [1, 2, 1, 1, 1, 1]
        for relation, (matrix, _) in enumerate(averages[2:]):
            torch.testing.assert_close(matrix @ graph.x, looped_mean(graph, relation))
        assert averages[0].matrix is averages[1].matrix
        assert relation_adjacency(graph, 3).nnz == 0


def test_without_relations_only_hops():
    graph = related_graph(False)
    plain = Data(x=graph.x, edge_index=graph.edge_index)
    assert len(neighbour_averages(plain, 2)) == 2
    assert neighbour_averages(graph, 0) == []
