"""Contributions against dense matrices, one node's features at a time."""

import pytest
import torch
from test_unified import BOTH, FIRST, PATH, SECOND, fixed, inputs_of, network

from evengraph.nn.attribution import gradient_times_input, trace_unified
from small_graphs import dense_adjacency, dense_semantic, dense_structural, dense_symmetric, normal

DIRECTION = torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64)
X = normal(7, 4)


def gated(net, x, way, gates):
    """Eq. 2, 6 and 7 without biases, the kinks of ReLU where they are for all nodes together.

    Args:
        way: The encoders that are open.
        gates: Which units are on, found where this is a list to fill.
    """
    found, fill = [], gates is None
    assignments = (FIRST, SECOND)
    structural = dense_symmetric(dense_structural(PATH, 7, 2))
    parts = None
    for layer, weights in enumerate(net.weights):
        matrices = {
            "structural": structural,
            "semantic": dense_symmetric(dense_semantic(assignments[layer])),
        }
        taken = dict.fromkeys(weights, x)
        if parts is not None:
            joint = torch.cat([parts[name] for name in net.encoders], dim=1)
            taken = {name: joint if net.share else parts[name] for name in weights}
        raw = {name: matrices[name] @ taken[name] @ weight for name, weight in weights.items()}
        if fill:
            found.append({name: (value > 0).double() for name, value in raw.items()})
        on = found[layer] if fill else gates[layer]
        parts = {name: raw[name] * on[name] * (name in way) for name in raw}
    joint = torch.cat([parts[name] for name in net.encoders], dim=1)
    conv, linear = net.classifier.conv, net.classifier.linear
    raw = dense_symmetric(dense_adjacency(PATH, 7)) @ joint @ conv.weight
    if fill:
        found.append((raw + conv.bias > 0).double())
    on = found[-1] if fill else gates[-1]
    return (raw * on) @ linear.weight.t(), found


def one_by_one(net, node, way):
    _, gates = gated(net, X, net.encoders, None)
    parts = []
    for other in range(7):
        alone = torch.zeros_like(X)
        alone[other] = X[other] - X.mean(0)
        parts.append(gated(net, alone, way, gates)[0][node] @ DIRECTION)
    return torch.stack(parts).detach()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("node", [0, 4, 6])
@pytest.mark.parametrize(
    ("encoders", "share"),
    [(BOTH, True), (BOTH, False), (("structural",), True), (("semantic",), True)],
)
def test_parts_of_the_unified_network(encoders, share, node, sparse):
    net = network(encoders=encoders, share=share)
    inputs, clusters = inputs_of(X, PATH, sparse=sparse), fixed(FIRST, SECOND)
    parts = trace_unified(net, inputs, clusters, node, DIRECTION)
    torch.testing.assert_close(parts.value, net(inputs, clusters)[node].detach() @ DIRECTION)
    torch.testing.assert_close(parts.total, one_by_one(net, node, encoders))
    torch.testing.assert_close(parts.columns["own"].sum(), parts.total[node])
    torch.testing.assert_close(sum(parts.columns.values()).sum(), parts.total.sum())
    for name, found in (
        ("structural", parts.along_paths),
        ("semantic", parts.within_clusters),
    ):
        if name in encoders:
            torch.testing.assert_close(found, one_by_one(net, node, (name,)))
        else:
            assert found is None
    expected = [FIRST, SECOND] if "semantic" in encoders else []
    assert [one.tolist() for one in parts.clusters] == [one.tolist() for one in expected]
    assert not parts.total.requires_grad
    assert all(parameter.grad is None for parameter in net.parameters())


def test_one_layer():
    net = network(layers=1)
    inputs, clusters = inputs_of(X, PATH), fixed(FIRST)
    parts = trace_unified(net, inputs, clusters, 2, DIRECTION)
    both = parts.along_paths + parts.within_clusters
    torch.testing.assert_close(parts.total, both)  # there is no layer to change ways between


def test_gradient_times_input_by_hand():
    weight = torch.tensor([[2.0, 0.0], [0.0, 3.0]])
    x = torch.tensor([[-1.5, 2.0], [1.5, -2.0]])  # its mean is zero
    mix = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    direction = torch.tensor([1.0, -1.0])
    parts = gradient_times_input(lambda x: (mix @ x @ weight + 7)[0] @ direction, x, 0)
    assert parts.total.tolist() == [-3 - 6, 3 + 6]
    assert float(parts.value) == 0
    assert parts.columns["own"].tolist() == [-3, -6]
    assert parts.columns["others"].tolist() == [3, 6]
    moved = gradient_times_input(lambda x: (mix @ x @ weight)[0] @ direction, x + 9, 0)
    assert moved.total.tolist() == parts.total.tolist()
    assert parts.along_paths is None
