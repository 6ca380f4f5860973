"""Given: the sets that the graph carries."""

import pytest
import torch
from protocols import check_protocol, named_toy, with_public_split

from evengraph.splits import Given


def without_validation():
    graph = with_public_split(named_toy())
    del graph.val_mask
    return graph


def test_the_shared_promises():
    check_protocol(Given(), without_validation())


def test_a_whole_split_is_taken_as_it_is():
    graph = with_public_split(named_toy())
    task = Given()(graph, seed=0)
    assert torch.equal(task.train, graph.train_mask)
    assert torch.equal(task.val, graph.val_mask)
    assert torch.equal(task.test, graph.test_mask)
    assert torch.equal(Given()(graph, seed=1).train, task.train)


def test_validation_is_a_share_of_each_class():
    graph = without_validation()
    task = Given(val=0.25)(graph, seed=0)
    assert task.class_counts.tolist() == [9] * 4
    assert torch.bincount(graph.y[task.val]).tolist() == [3] * 4
    assert torch.equal(task.train | task.val, graph.train_mask)


def test_a_class_keeps_its_only_training_node():
    graph = without_validation()
    graph.train_mask &= (graph.y != 2) | (torch.cumsum(graph.y == 2, dim=0) == 1)
    task = Given()(graph, seed=0)
    assert task.class_counts[2] == 1
    assert not (graph.y[task.val] == 2).any()


def test_nodes_without_label_are_in_no_set():
    graph = with_public_split(named_toy())
    hidden = graph.train_mask.nonzero()[0]
    graph.y[hidden] = -1
    assert not Given()(graph, seed=0).train[hidden]


def test_what_is_missing_is_told():
    with pytest.raises(ValueError, match="no node is marked train; name a column"):
        Given()(named_toy(), seed=0)
    graph = with_public_split(named_toy())
    graph.train_mask &= graph.y != 3
    with pytest.raises(
        ValueError, match="Class 'deer' has 0 labelled nodes for training, 1 are needed"
    ):
        Given()(graph, seed=0)
    graph = with_public_split(named_toy())
    graph.test_mask[:] = False
    with pytest.raises(ValueError, match="has no labelled node for test"):
        Given()(graph, seed=0)
    with pytest.raises(ValueError, match="val must lie between 0 and 1, got 1"):
        Given(val=1)
