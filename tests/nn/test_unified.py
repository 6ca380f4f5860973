"""The network of Uni-GNN against the equations, with dense matrices."""

import pytest
import torch

from evengraph.fast.unignn import Connectivity, UnifiedNetwork
from evengraph.nn import unified
from evengraph.ops.semantic import prepare_clusters
from evengraph.ops.sparse import Sparse, adjacency, propagation_matrix, to_scipy
from evengraph.ops.structural import structural_adjacency
from small_graphs import (
    dense_adjacency,
    dense_semantic,
    dense_structural,
    dense_symmetric,
    edges,
    normal,
    random_edges,
)

CPU = torch.device("cpu")
BOTH = ("structural", "semantic")


def network(num_features=4, num_nodes=7, num_clusters=3, **fields):
    """A small network in double precision, without training."""
    torch.manual_seed(0)
    settings = {"encoders": BOTH, "share": True, "layers": 2, "hidden": 5, "dropout": 0.5}
    net = UnifiedNetwork(num_features, 3, num_nodes, num_clusters=num_clusters, **settings | fields)
    return net.double()


def inputs_of(x, edge_index, alpha=2, *, sparse=False):
    num_nodes = x.shape[0]
    paths = to_scipy(structural_adjacency(edge_index, num_nodes, alpha))
    return Connectivity(
        x=Sparse.from_dense(x) if sparse else x,
        structural=propagation_matrix(paths, CPU, dtype=torch.float64),
        adjacency=propagation_matrix(adjacency(edge_index, num_nodes), CPU, dtype=torch.float64),
    )


def both_ways(edge_index):
    return torch.cat([edge_index, edge_index.flip(0)], dim=1)


def fixed(*assignments, num_clusters=3):
    """Clusters that are given for each layer."""
    found = [prepare_clusters(one, num_clusters, torch.float64) for one in assignments]
    return lambda layer, embeddings: found[layer]


def equations(net, x, edge_index, alpha, assignments):
    """Eq. 1, 2, 5, 6 and 7 with dense matrices: the logits of all nodes."""
    num_nodes = x.shape[0]
    structural = dense_symmetric(dense_structural(edge_index, num_nodes, alpha))
    embeddings = None
    for layer, weights in enumerate(net.weights):
        semantic = dense_symmetric(dense_semantic(assignments[layer]))
        matrices = {"structural": structural, "semantic": semantic}
        outputs = {}
        for name, weight in weights.items():
            if embeddings is None:
                taken = x
            elif net.share:
                taken = torch.cat(list(embeddings.values()), dim=1)
            else:
                taken = embeddings[name]
            outputs[name] = (matrices[name] @ taken @ weight).relu()
        embeddings = outputs
    joint = torch.cat(list(embeddings.values()), dim=1)
    matrix = dense_symmetric(dense_adjacency(edge_index, num_nodes))
    conv, linear = net.classifier.conv, net.classifier.linear
    hidden = (matrix @ joint @ conv.weight + conv.bias).relu()
    return hidden @ linear.weight.t() + linear.bias


def gradients(net, value):
    weight = normal(*value.shape, seed=11)
    return torch.autograd.grad(value, list(net.parameters()), weight)


# A path 0 - 1 - 2 - 3 - 4, a pair 4 - 5 and an isolated node 6.
PATH = both_ways(edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]))
FIRST, SECOND = torch.tensor([0, 1, 0, 1, 2, 2, 0]), torch.tensor([0, 0, 0, 1, 1, 2, 2])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("alpha", [1, 2, 3])
@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("encoders", [BOTH, ("structural",), ("semantic",)])
def test_forward_pass_equals_the_equations(encoders, share, alpha, sparse):
    net = network(encoders=encoders, share=share)
    x = normal(7, 4, seed=3)
    value = net(inputs_of(x, PATH, alpha, sparse=sparse), fixed(FIRST, SECOND))
    dense = equations(net, x, PATH, alpha, [FIRST, SECOND])
    torch.testing.assert_close(value, dense, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(gradients(net, value), gradients(net, dense), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("layers", [1, 3])
def test_other_depths_equal_the_equations(layers):
    net = network(layers=layers)
    x = normal(7, 4, seed=3)
    assignments = [FIRST, SECOND, FIRST][:layers]
    value = net(inputs_of(x, PATH), fixed(*assignments))
    dense = equations(net, x, PATH, 2, assignments)
    torch.testing.assert_close(value, dense, rtol=1e-6, atol=1e-8)


def test_widths_of_the_layers():
    shared, apart = network(), network(share=False)
    assert [tuple(w["structural"].shape) for w in shared.weights] == [(4, 5), (10, 5)]
    assert [tuple(w["semantic"].shape) for w in apart.weights] == [(4, 5), (5, 5)]
    assert shared.classifier.conv.weight.shape == (10, 5)
    alone = network(encoders=("semantic",))
    assert [tuple(w["semantic"].shape) for w in alone.weights] == [(4, 5), (5, 5)]
    assert set(alone.weights[0]) == {"semantic"}


@pytest.mark.parametrize(("many", "large"), [(3, False), (18, True), (30, False)])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("encoders", [BOTH, ("structural",), ("semantic",)])
def test_some_nodes_alone_equal_their_rows(monkeypatch, encoders, share, layers, many, large):
    monkeypatch.setattr(unified, "LARGE", 1 if large else 10**6)
    net = network(num_nodes=60, num_clusters=6, encoders=encoders, share=share, layers=layers)
    inputs = inputs_of(normal(60, 4), both_ways(random_edges(60, 90)))
    stream = torch.Generator().manual_seed(1)
    found = fixed(*torch.randint(6, (layers, 60), generator=stream), num_clusters=6)
    nodes = torch.randperm(60, generator=stream)[:many]
    assert net.selects(nodes, inputs) == (many < 30)  # three ways of computing are tried
    near, _ = net.restrict(nodes, inputs)
    assert (near is not None) == (many == 3)
    first = net.first_layer(inputs, found)
    whole = net.logits(first, inputs, found)[nodes]
    expected = gradients(net, whole)
    first = net.first_layer(inputs, found)
    some = net.logits(first, inputs, found, nodes=nodes)
    torch.testing.assert_close(some, whole)
    torch.testing.assert_close(gradients(net, some), expected)


def test_dropout_only_when_asked_for():
    net = network()
    inputs, found = inputs_of(normal(7, 4), PATH), fixed(FIRST, SECOND)
    first = net.first_layer(inputs, found)
    assert torch.equal(net.logits(first, inputs, found), net.logits(first, inputs, found))
    dropped = net.logits(first, inputs, found, dropout=True)
    assert not torch.equal(dropped, net.logits(first, inputs, found))
