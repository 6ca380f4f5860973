"""Folds: every labelled node is tested once."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from protocols import check_protocol, fingerprint, named_toy
from torch_geometric.data import Data

from evengraph.splits import Folds


def graph_with(sizes):
    y = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    return Data(x=torch.ones(len(y), 1), edge_index=torch.zeros(2, 0, dtype=torch.long), y=y)


def test_the_shared_promises():
    check_protocol(Folds())


@given(
    st.lists(st.integers(4, 30), min_size=1, max_size=4),
    st.integers(2, 6),
    st.integers(1, 49),
    st.integers(0, 2),
)
def test_each_partition_tests_every_node_once(sizes, folds, val, partition):
    sizes = [max(size, folds) for size in sizes]
    graph = graph_with(sizes)
    protocol = Folds(folds=folds, val=val / 100)
    tasks = [protocol(graph, seed=folds * partition + fold) for fold in range(folds)]
    assert sum(task.test.int() for task in tasks).tolist() == [1] * sum(sizes)
    tested = [int(task.test.sum()) for task in tasks]
    assert max(tested) - min(tested) <= 1
    for task in tasks:
        assert (task.train | task.val | task.test).all()
        for mask in (task.train, task.val, task.test):
            assert torch.bincount(graph.y[mask], minlength=len(sizes)).min() >= 1


def test_counts_by_hand():
    task = Folds(folds=4, val=0.25)(graph_with([40, 8]), seed=2)
    counts = [torch.bincount(task.graph.y[m]).tolist() for m in (task.train, task.val, task.test)]
    assert counts == [[20, 4], [10, 2], [10, 2]]


def test_another_partition_has_other_folds():
    graph = named_toy()
    protocol = Folds(folds=3)
    prints = {fingerprint(protocol(graph, seed=seed)) for seed in range(6)}
    assert len(prints) == 6


def test_validation_nodes_differ_between_folds():
    graph = graph_with([60, 60])
    one, other = (Folds(folds=5)(graph, seed=seed).val for seed in (0, 1))
    assert int((one & other).sum()) < int(one.sum()) / 2


def test_nodes_without_label_are_in_no_set():
    graph = named_toy()
    graph.y[::2] = -1
    task = Folds()(graph, seed=0)
    assert torch.equal(task.train | task.val | task.test, graph.y >= 0)


@pytest.mark.parametrize(("size", "folds"), [(4, 5), (3, 2), (2, 3)])
def test_a_class_that_is_too_small_is_refused(size, folds):
    with pytest.raises(ValueError, match=rf"Class 1 has {size} nodes, .* for {folds} folds"):
        Folds(folds=folds)(graph_with([20, size]), seed=0)
    graph = graph_with([20, size])
    graph.class_names = ["honest", "fraud"]
    with pytest.raises(ValueError, match=f"Class 'fraud' has {size} nodes"):
        Folds(folds=folds)(graph, seed=0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"folds": 1}, "folds must be at least 2, got 1"),
        ({"val": 0}, "val must lie between 0 and 0.8 with 5 folds, got 0"),
        ({"folds": 2, "val": 0.5}, "between 0 and 0.5 with 2 folds"),
    ],
)
def test_bad_fields(fields, message):
    with pytest.raises(ValueError, match=message):
        Folds(**fields)
