"""What a graph holds for methods: weights under both of PyG's names, relations, nothing else."""

import pytest
import torch
from torch_geometric.data import Data

from evengraph.core.task import (
    bare_graph,
    check_edge_weight,
    check_relations,
    count_relations,
    edge_weight,
    keep_edges,
)

EDGES = torch.tensor([[0, 1, 2], [1, 0, 1]])
WEIGHTS = torch.tensor([1.0, 2.0, 3.0])


def graph(**values):
    return Data(**{"x": torch.eye(3), "edge_index": EDGES, "y": torch.zeros(3)} | values)


@pytest.mark.parametrize("name", ["edge_weight", "edge_attr"])
@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_weights_under_both_names(name, shape):
    weight = edge_weight(graph(**{name: WEIGHTS.view(shape)}))
    assert torch.equal(weight, WEIGHTS)


@pytest.mark.parametrize("attributes", [torch.ones(3, 2), torch.ones(3, dtype=torch.long), "text"])
def test_other_attributes_are_no_weights(attributes):
    assert edge_weight(graph(edge_attr=attributes)) is None
    assert edge_weight(graph()) is None


def test_weights_before_attributes():
    assert torch.equal(edge_weight(graph(edge_weight=WEIGHTS, edge_attr=WEIGHTS + 1)), WEIGHTS)


def test_a_bare_graph_holds_features_and_edges_alone():
    relations = torch.tensor([[0, 1], [0, 1], [1, 2]])
    full = graph(edge_attr=WEIGHTS, relation_index=relations, num_relations=2, name="pets")
    bare = bare_graph(full, y=torch.ones(3))
    assert set(bare.keys()) == {
        "x", "edge_index", "edge_weight", "relation_index", "num_relations", "y"
    }  # fmt: skip
    assert count_relations(bare) == 2
    assert set(bare_graph(graph()).keys()) == {"x", "edge_index"}
    assert count_relations(graph()) == 0


def test_relations_are_checked():
    with pytest.raises(ValueError, match=r"shape \(3, R\)"):
        check_relations(graph(relation_index=EDGES, num_relations=2))
    index = torch.tensor([[0, 4], [0, 1], [1, 2]])
    with pytest.raises(ValueError, match="num_relations must be above 4"):
        check_relations(graph(relation_index=index, num_relations=4))
    with pytest.raises(ValueError, match="num_relations must be above 4"):
        check_relations(graph(relation_index=index))


def test_keep_some_edges():
    relations = torch.tensor([[0, 1, 1], [0, 1, 1], [1, 2, 0]])
    full = graph(
        edge_attr=torch.arange(6.0).view(3, 2),
        edge_weight=WEIGHTS,
        relation_index=relations,
        relation_weight=WEIGHTS,
        num_relations=2,
    )
    part = keep_edges(full, torch.tensor([True, True, False]))
    assert part.edge_index.tolist() == [[0, 1], [1, 0]]
    assert part.edge_attr.tolist() == [[0, 1], [2, 3]]
    assert part.edge_weight.tolist() == [1, 2]
    assert part.relation_index.T.tolist() == [[0, 0, 1], [1, 1, 0]]
    assert part.relation_weight.tolist() == [1, 3]
    assert full.edge_index is EDGES


def test_relations_between_nodes_that_lose_an_edge_are_dropped():
    edges = torch.tensor([[0, 0, 1], [1, 1, 2]])  # the second edge may be of either relation
    relations = torch.tensor([[0, 1, 0, 1], [0, 0, 1, 1], [1, 1, 2, 0]])
    full = graph(edge_index=edges, relation_index=relations, relation_time=torch.arange(4.0))
    part = keep_edges(full, torch.tensor([True, False, True]))
    assert part.relation_index.T.tolist() == [[0, 1, 2]]
    assert part.relation_time.tolist() == [2]
    known = keep_edges(full, torch.tensor([True, False, True]), full.relation_time <= 0)
    assert known.relation_index.T.tolist() == [[0, 0, 1]]


@pytest.mark.parametrize("name", ["edge_weight", "edge_attr"])
def test_an_error_names_what_holds_the_weights(name):
    with pytest.raises(ValueError, match=rf"graph.{name} must hold .*, got -1.0 for edge 0"):
        check_edge_weight(graph(**{name: -WEIGHTS}))
