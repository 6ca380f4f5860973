"""Uni-GNN: the paper's file and the quick form against the equations, and against each other."""

from functools import partial

import pytest
import torch
from torch_geometric.data import Data

from evengraph import fast
from evengraph.fast import unignn
from evengraph.fast.unignn import Connectivity, Examples, UnifiedNetwork
from evengraph.methods import UniGNN
from evengraph.ops.semantic import prepare_clusters
from evengraph.ops.sparse import Sparse, adjacency, propagation_matrix, to_scipy
from evengraph.ops.structural import structural_adjacency
from evengraph.pipeline import explanation
from evengraph.testing.contract import with_graph
from small_graphs import (
    dense_adjacency,
    dense_semantic,
    dense_structural,
    dense_symmetric,
    edges,
    graph_of,
    normal,
    random_edges,
    small_task,
)

CPU = torch.device("cpu")
ENCODERS = ("both", "structural", "semantic")


def untrained(num_nodes=7, **fields):
    """A small method in double precision with initial weights, and its quick network."""
    settings = {"clusters_per_class": 1, "hidden": 5, "alpha": 2}
    method = UniGNN(**settings | fields)
    method.num_features_, method.num_classes_, method.num_nodes_ = 4, 3, num_nodes
    method.alpha_, method.device_ = method.alpha, CPU
    torch.manual_seed(0)
    method.net_ = method._build_network().double()
    return method, UnifiedNetwork(method, method.net_)


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


def equations(method, x, edge_index, alpha, assignments, *, way=None, gates=None):
    """Eq. 1, 2, 5, 6 and 7 with dense matrices: logits of all nodes, and which units are on.

    With gates it is linear: those units are on, the encoders of a way are open, no biases.
    """
    num_nodes, net, found, parts = x.shape[0], method.net_, [], None
    matrices = {"structural": dense_symmetric(dense_structural(edge_index, num_nodes, alpha))}
    for layer, weights in enumerate(net.weights):
        matrices["semantic"] = dense_symmetric(dense_semantic(assignments[layer]))
        taken = dict.fromkeys(weights, x)
        if parts is not None:
            joint = torch.cat([parts[name] for name in sorted(parts)], dim=1)
            taken = {name: joint if method.share_embeddings else parts[name] for name in weights}
        raw = {name: matrices[name] @ taken[name] @ weight for name, weight in weights.items()}
        found.append({name: (value > 0).double() for name, value in raw.items()})
        on = found[layer] if gates is None else gates[layer]
        parts = {name: raw[name] * on[name] * (way is None or name in way) for name in raw}
    joint = torch.cat([parts[name] for name in sorted(parts)], dim=1)
    conv, linear, biased = net.classifier["conv"], net.classifier["linear"], gates is None
    matrix = dense_symmetric(dense_adjacency(edge_index, num_nodes))
    raw = matrix @ joint @ conv["weight"] + biased * conv["bias"]
    found.append((raw > 0).double())
    on = found[-1] if gates is None else gates[-1]
    return (raw * on) @ linear.weight.t() + biased * linear.bias, found


def gradients(method, value):
    weight = normal(*value.shape, seed=11)
    return torch.autograd.grad(value, list(method.net_.parameters()), weight)


# A path 0 - 1 - 2 - 3 - 4, a pair 4 - 5 and an isolated node 6.
PATH = both_ways(edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]))
FIRST, SECOND = torch.tensor([0, 1, 0, 1, 2, 2, 0]), torch.tensor([0, 0, 0, 1, 1, 2, 2])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("layers", "alpha"), [(2, 1), (2, 2), (2, 3), (1, 2), (3, 2)])
@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("encoders", ENCODERS)
def test_both_forms_equal_the_equations(encoders, share, layers, alpha, sparse):
    method, net = untrained(encoders=encoders, share_embeddings=share, layers=layers)
    x, assignments = normal(7, 4, seed=3), [FIRST, SECOND, FIRST][:layers]
    inputs = inputs_of(x, PATH, alpha, sparse=sparse)
    dense, _ = equations(method, x, PATH, alpha, assignments)
    expected = gradients(method, dense)
    quick = net(inputs, fixed(*assignments))
    plain = method._forward(inputs, lambda layer, h: assignments[layer])
    for value in (quick, plain):
        torch.testing.assert_close(value, dense, rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(gradients(method, value), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("alpha", [1, 2, 3, 6])
def test_both_forms_connect_a_graph_alike(alpha):
    graph = graph_of(normal(7, 4, dtype=torch.float32), PATH[:, :5].t().tolist(), [0] * 7)
    method, _ = untrained(alpha=alpha)
    plain, quick = method._inputs(graph), unignn.connect(method, graph)
    structural = dense_symmetric(dense_structural(PATH, 7, alpha)).float()
    matrix = dense_symmetric(dense_adjacency(PATH, 7)).float()
    for one in (plain, quick):
        torch.testing.assert_close(one.structural.matrix.to_dense(), structural)
        torch.testing.assert_close(one.adjacency.matrix.to_dense(), matrix)


SAME = {"dropout": 0.0, "hidden": 16, "max_epochs": 12, "clusters_per_class": 4, "threshold": 0.35}
SETTINGS = [
    {},
    {"share_embeddings": False},  # the paper's ablations
    {"pseudo_labels": "none"},
    {"alpha": 1},
    {"encoders": "semantic"},
    {"encoders": "structural"},
    {"pseudo_labels": "all"},
    {"recluster_every": 0},
    {"class_weights": False},
    {"class_weights": False, "keep_total": True},
    {"mean_loss": True},  # other readings
    {"ranked_by": "log_odds"},
    {"unit_rows": True},
    {"stop_on": "loss", "patience": 2},
    {"stop_on": "accuracy", "patience": 2},
    {"cluster_starts": 3, "alpha": 3},
    {"layers": 3},
    {"layers": 1, "pseudo_weight": 0.3},
]


@pytest.mark.parametrize("features", ["sparse", "dense"])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_short_trainings_of_both_forms_are_equal(settings, features):
    task = small_task()
    if features == "dense":
        task = with_graph(task, x=task.graph.x + 0.01)
    models = [UniGNN(**SAME | {"alpha": 2, "recluster_every": 3} | settings) for _ in range(2)]
    quick = models[0].fit(task, seed=3)
    with fast.off():
        plain = models[1].fit(task, seed=3)
        values = [model.predict_proba(task.graph) for model in models]
    histories = [model.history_[0] for model in models]
    assert histories[0].epochs == histories[1].epochs
    assert histories[0].loss == pytest.approx(histories[1].loss, abs=1e-4)
    assert histories[0].score == pytest.approx(histories[1].score, abs=1e-4)
    torch.testing.assert_close(values[0], values[1], rtol=0, atol=1e-4)
    grown = task.graph.clone()  # ten new nodes, and a neighbour more for a known one
    grown.x = torch.cat([grown.x, 2 * grown.x[:10]])
    grown.edge_index = torch.cat([grown.edge_index, torch.tensor([[0], [150]])], dim=1)
    for graph in (task.graph, grown):
        expected = quick.predict_proba(graph)
        with fast.off():  # a model of one form predicts with the other
            torch.testing.assert_close(quick.predict_proba(graph), expected, rtol=0, atol=1e-5)
        torch.testing.assert_close(plain.predict_proba(graph), expected, rtol=0, atol=1e-4)


def test_the_switch():
    task, calls = small_task(), []
    model = UniGNN(max_epochs=0, clusters_per_class=4)
    assert fast.form_of(model) is unignn
    with fast.off():
        assert fast.form_of(model) is None
        model.fit(task, on_epoch=calls.append)
    assert fast.form_of(model) is unignn
    assert len(calls) == 1
    named_alike = type("UniGNN", (), {})()
    assert fast.form_of(named_alike) is None


@pytest.mark.parametrize(("many", "large"), [(3, False), (18, True), (30, False)])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("encoders", ENCODERS)
def test_some_nodes_alone_equal_their_rows(monkeypatch, encoders, share, layers, many, large):
    monkeypatch.setattr(unignn, "LARGE", 1 if large else 10**6)
    fields = {"encoders": encoders, "share_embeddings": share, "layers": layers}
    method, net = untrained(60, clusters_per_class=2, **fields)
    inputs = inputs_of(normal(60, 4), both_ways(random_edges(60, 90)))
    stream = torch.Generator().manual_seed(1)
    found = fixed(*torch.randint(6, (layers, 60), generator=stream), num_clusters=6)
    nodes = torch.randperm(60, generator=stream)[:many]
    assert net.selects(nodes, inputs) == (many < 30)  # three ways of computing are tried
    near, _ = net.restrict(nodes, inputs)
    assert (near is not None) == (many == 3)
    first = net.first_layer(inputs, found)
    whole = net.logits(first, inputs, found)[nodes]
    expected = gradients(method, whole)
    first = net.first_layer(inputs, found)
    some = net.logits(first, inputs, found, nodes=nodes)
    torch.testing.assert_close(some, whole)
    torch.testing.assert_close(gradients(method, some), expected)


def test_dropout_only_when_asked_for():
    _, net = untrained()
    inputs, found = inputs_of(normal(7, 4), PATH), fixed(FIRST, SECOND)
    first = net.first_layer(inputs, found)
    assert torch.equal(net.logits(first, inputs, found), net.logits(first, inputs, found))
    dropped = net.logits(first, inputs, found, dropout=True)
    assert not torch.equal(dropped, net.logits(first, inputs, found))


def test_both_layouts_of_the_loss_by_hand():
    """Labelled nodes 0 and 1, pseudo-labels 2 to 4."""
    logits, targets = normal(5, 3), torch.tensor([0, 2, 1, 1, 0])
    omega = UniGNN()._omega(torch.tensor([4, 1, 2]))
    assert omega.tolist() == [0.25, 1.0, 0.5]
    weights = omega.double()[targets[:2]]
    each = [-row.log_softmax(0)[label].item() for row, label in zip(logits, targets, strict=True)]
    expected = 0.25 * each[0] + 0.5 * each[1] + 0.7 * sum(each[2:]) / 3
    listed = Examples(targets, weights, pseudo_weight=0.7)
    assert unignn.unified_loss(logits, listed).item() == pytest.approx(expected)
    every = torch.cat([weights, torch.full((3,), 0.7 / 3, dtype=torch.float64)])
    batch = Examples(targets.unsqueeze(0), every.unsqueeze(0))
    assert unignn.unified_loss(logits.unsqueeze(0), batch).tolist() == pytest.approx([expected])


# Explaining.

DIRECTION = torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64)
X = normal(7, 4)


def one_by_one(method, node):
    """The part of each node's features, with the activations of all features held fixed."""
    clusters, parts = (FIRST, SECOND), []
    _, gates = equations(method, X, PATH, 2, clusters)
    for other in range(7):
        alone = torch.zeros_like(X)
        alone[other] = X[other] - X.mean(0)
        logits, _ = equations(method, alone, PATH, 2, clusters, gates=gates)
        parts.append(logits[node] @ DIRECTION)
    return torch.stack(parts).detach()


@pytest.mark.parametrize("node", [0, 4, 6])
@pytest.mark.parametrize(
    ("encoders", "share", "layers"),
    [
        *(("both", share, layers) for share in (True, False) for layers in (1, 2)),
        *((name, True, 2) for name in ("structural", "semantic")),
    ],
)
def test_parts_of_a_prediction(monkeypatch, encoders, share, layers, node):
    method, net = untrained(encoders=encoders, share_embeddings=share, layers=layers)
    inputs, clusters = inputs_of(X, PATH), fixed(FIRST, SECOND)
    monkeypatch.setattr(
        UniGNN, "_logits", lambda _, graph: net(inputs._replace(x=graph.x.double()), clusters)
    )
    parts = explanation.contributions(method, Data(x=X), node, DIRECTION)
    close = partial(torch.testing.assert_close, check_dtype=False, atol=1e-5, rtol=1e-5)
    close(parts.value, net(inputs, clusters)[node].detach() @ DIRECTION)  # features are float32
    close(parts.total, one_by_one(method, node))
    close(parts.columns["own"].sum(), parts.total[node])
    close(sum(parts.columns.values()).sum(), parts.total.sum())
    assert not parts.total.requires_grad
    assert all(parameter.grad is None for parameter in net.parameters())
