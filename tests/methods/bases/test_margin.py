"""TAM upon balanced softmax, ReNode and GraphENS: where it acts, and where it does not."""

import pytest
import torch
from oracles import task_with

from evengraph.fast.replicas import share_batch
from evengraph.methods import BalancedSoftmax, GraphENS, ReNode
from evengraph.methods.bases.network import WARMUP
from evengraph.ops.losses import soft_labels, topology_margins
from evengraph.ops.sparse import propagation_matrix, undirected_adjacency
from evengraph.training.loop import RECORD_AFTER
from small_graphs import small_task

BASES = [BalancedSoftmax, ReNode, GraphENS]


def losses(kind, task, epochs=WARMUP + 4, **fields):
    fields = {"dropout": 0.0, "max_epochs": epochs, "patience": epochs} | fields
    return kind(**fields).fit(task, seed=0).history_[0].loss


@pytest.mark.parametrize("kind", BASES)
def test_it_begins_after_the_first_epochs(kind):
    task = small_task()
    plain, ours = losses(kind, task), losses(kind, task, margin="tam")
    assert ours[:WARMUP] == plain[:WARMUP]
    assert ours[WARMUP] != plain[WARMUP]


@pytest.mark.parametrize("kind", BASES)
def test_without_strength_it_is_the_method_alone(kind):
    task = small_task()
    strengths = {"tam_connectivity": 0.0, "tam_distribution": 0.0}
    ours = losses(kind, task, margin="tam", **strengths)
    assert ours == pytest.approx(losses(kind, task), rel=1e-5)


@pytest.mark.parametrize("kind", [BalancedSoftmax, ReNode])
def test_one_node_in_every_class_is_as_usual(kind):
    task = task_with(1, 1, 1)
    assert losses(kind, task, margin="tam") == pytest.approx(losses(kind, task), rel=1e-4)


def test_margins_are_those_of_the_formula():
    task = small_task()
    graph, nodes = task.graph, task.train.nonzero().squeeze(1)
    method = BalancedSoftmax(margin="tam", tam_connectivity=1.5, tam_temperature=0.8)
    margins = method._margins(task)
    stream = torch.Generator().manual_seed(0)
    for epoch in range(WARMUP + 2):
        logits = torch.randn(graph.num_nodes, 3, generator=stream)
        found = margins(logits)
        if epoch < WARMUP:
            assert not found.any()
    classes = soft_labels(logits, nodes, graph.y[nodes], task.class_counts, 0.8)
    matrix = undirected_adjacency(graph.edge_index, graph.num_nodes)
    around = (propagation_matrix(matrix, graph.x.device, how="row") @ classes)[nodes]
    expected = topology_margins(around, graph.y[nodes], 1.5, 0.5)
    torch.testing.assert_close(found, expected)
    assert found.shape == (nodes.numel(), 3)


def test_a_margin_is_trained_alone():
    assert share_batch(BalancedSoftmax(), BalancedSoftmax())
    assert not share_batch(BalancedSoftmax(margin="tam"), BalancedSoftmax(margin="tam"))


def test_margins_are_there_when_an_epoch_is_recorded():
    assert RECORD_AFTER > WARMUP
