"""EnlargedGraph: its matrix by blocks, what is trained on it, what is predicted with it."""

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import (
    DENSE,
    as_dense,
    check_chosen,
    check_losses,
    dense_graph,
    dense_logits,
    dense_propagation,
    first_loss,
    labelled,
    task_with,
)
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from evengraph.datasets import toy
from evengraph.methods import Oversampling
from evengraph.methods.bases.network import EnlargedGraph
from evengraph.metrics.multiclass import validation_score
from small_graphs import edge_lists, graph_of, small_task


@dataclass(kw_only=True)
class Shifted(Oversampling):
    """Copies whose features are one more than those of their originals."""

    def _new_features(self, x, labels, copies):
        return x[copies.positions] + 1


def blocks(matrix, seeds):
    """[P, P[:, S]; P[S, :], P[S, S]]."""
    upper = torch.cat([matrix, matrix[:, seeds]], dim=1)
    lower = torch.cat([matrix[seeds], matrix[seeds][:, seeds]], dim=1)
    return torch.cat([upper, lower])


def enlarged(graph, seeds, how="row", sound=False):
    copies = EnlargedGraph(graph.x[:0], torch.as_tensor(seeds))
    propagation = Oversampling(normalisation=how)._propagation(graph)
    matrix = copies.normalised(graph, how) if sound else copies.repeated(propagation)
    return as_dense(matrix).double()


@st.composite
def graphs_and_seeds(draw):
    edge_index, num_nodes = draw(edge_lists())
    seeds = draw(st.lists(st.integers(0, num_nodes - 1), max_size=6))
    return Data(x=torch.zeros(num_nodes, 1), edge_index=edge_index), torch.tensor(seeds).long()


@given(graphs_and_seeds(), st.sampled_from(["row", "symmetric"]))
def test_rows_and_columns_of_the_normalised_matrix_are_repeated(drawn, how):
    graph, seeds = drawn
    expected = blocks(DENSE[how](dense_graph(graph)), seeds)
    torch.testing.assert_close(enlarged(graph, seeds, how), expected)


@given(graphs_and_seeds(), st.sampled_from(["row", "symmetric"]))
def test_where_sound_the_graph_is_enlarged_and_then_normalised(drawn, how):
    graph, seeds = drawn
    looped = blocks(dense_graph(graph) + torch.eye(graph.num_nodes), seeds)
    expected = DENSE[how](looped - torch.eye(looped.shape[0]))
    found = enlarged(graph, seeds, how, sound=True)
    torch.testing.assert_close(found, expected)
    if how == "row":
        torch.testing.assert_close(found.sum(1), torch.ones(found.shape[0], dtype=found.dtype))


def test_a_copy_by_hand():
    graph = graph_of(torch.zeros(3, 1), [(1, 2)], [0, 0, 1])
    a = 1 / 2
    expected = [[1, 0, 0, 0], [0, a, a, a], [0, a, a, a], [0, a, a, a]]
    assert enlarged(graph, [2]).tolist() == expected
    a = 1 / 3
    expected = torch.tensor([[1, 0, 0, 0], [0, a, a, a], [0, a, a, a], [0, a, a, a]])
    torch.testing.assert_close(enlarged(graph, [2], sound=True), expected.double())


def dense_inputs(method, task, seeds):
    """Features and propagation of the enlarged graph."""
    x = torch.cat([task.graph.x, task.graph.x[seeds] + 1])
    if method.sound:
        size = task.graph.num_nodes
        looped = blocks(dense_graph(task.graph) + torch.eye(size), seeds)
        return x, DENSE[method.normalisation](looped - torch.eye(looped.shape[0]))
    return x, blocks(dense_propagation(task.graph, method.normalisation), seeds)


@pytest.mark.parametrize("sound", [False, True])
@pytest.mark.parametrize(
    ("how", "backbone"), [("row", "gcn"), ("symmetric", "gcn"), ("row", "sage"), ("row", "gat")]
)
@pytest.mark.parametrize("times", [1, 2])
def test_copies_join_the_training_nodes(sound, how, backbone, times):
    task = small_task()
    nodes, labels = labelled(task)
    rare = nodes[labels == 2]
    seeds = rare.repeat(times)
    fields = {"sound": sound, "normalisation": how, "backbone": backbone, "dropout": 0}
    method = Shifted(copies=times, max_epochs=4, **fields)
    x, matrix = dense_inputs(method, task, seeds)
    rows = torch.cat([nodes, torch.arange(seeds.numel()) + task.graph.num_nodes])
    labels = torch.cat([labels, torch.full_like(seeds, 2)])
    start, _ = first_loss(method, task)
    check_losses(
        method,
        task,
        start.net_,
        lambda net: cross_entropy(dense_logits(net, x, matrix)[rows], labels),
    )


@pytest.mark.parametrize("sound", [False, True])
def test_the_training_graph_is_predicted_with_its_copies_unless_sound(sound):
    task = small_task()
    method = Shifted(max_epochs=3, sound=sound).fit(task, seed=0)
    nodes, labels = labelled(task)
    large = dense_logits(method.net_, *dense_inputs(method, task, nodes[labels == 2]))[:150]
    plain = dense_logits(method.net_, task.graph.x, dense_propagation(task.graph))
    assert not torch.allclose(large.softmax(1), plain.softmax(1), atol=1e-4)
    expected = (plain if sound else large).softmax(1)
    values = method.predict_proba(task.graph).double()
    torch.testing.assert_close(values, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("sound", [False, True])
def test_it_validates_on_what_it_predicts_with(sound):
    task = small_task()
    method = Shifted(max_epochs=20, copies=20, sound=sound).fit(task, seed=0)
    check_chosen(method, task)
    # in the other graph the same weights score otherwise
    nodes, labels = labelled(task)
    plain = task.graph.x, dense_propagation(task.graph)
    large = dense_inputs(Shifted(), task, nodes[labels == 2].repeat(20))
    other = dense_logits(method.net_, *(large if sound else plain))[:150]
    score = validation_score(other, task)
    assert method.history_[0].best_score != pytest.approx(float(score), abs=1e-3)


@pytest.mark.parametrize("sound", [False, True])
def test_another_graph_is_predicted_as_it_is(sound):
    task = small_task()
    method = Shifted(max_epochs=3, sound=sound).fit(task, seed=0)
    fewer = task.graph.clone()
    fewer.edge_index = fewer.edge_index[:, 2:]
    for graph in (fewer, toy(90, 200, 64, 3, seed=9)):
        expected = dense_logits(method.net_, graph.x, dense_propagation(graph)).softmax(1)
        values = method.predict_proba(graph).double()
        torch.testing.assert_close(values, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("counts", "fields", "added"),
    [
        ((9, 9, 2), {}, 2),
        ((9, 9, 2), {"copies": 3}, 6),
        ((9, 9, 2), {"copies": 0}, 7),
        ((9, 9, 2), {"minority": 2}, 11),
        ((9, 4, 1), {}, 1),
        ((9, 4, 1), {"copies": 0, "minority": 1}, 13),
        ((5, 5, 5), {}, 0),
        ((5, 5, 5), {"minority": 1}, 5),
    ],
)
def test_how_many_nodes_are_added(counts, fields, added):
    method = Shifted(max_epochs=0, **fields).fit(task_with(*counts), seed=0)
    assert method.enlarged_.new.shape == (added, 64)
    assert method.enlarged_.originals.shape == (added,)


def test_too_many_rare_classes_are_refused():
    with pytest.raises(ValueError, match="minority must be below the 3 classes, got 4"):
        Shifted(minority=4).fit(small_task(), seed=0)
