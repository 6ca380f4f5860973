"""ByTime: the past, what follows, the newest."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from evengraph.splits import ByTime


def graph_of(times, labels=None):
    y = torch.tensor(labels) if labels else torch.arange(len(times)) % 2
    edges = torch.zeros(2, 0, dtype=torch.long)
    time = torch.tensor(times, dtype=torch.float64)
    graph = Data(x=torch.ones(len(times), 1), edge_index=edges, y=y, time=time)
    graph.class_names = ["a", "b"]
    return graph


def sets(task):
    return [mask.nonzero().flatten().tolist() for mask in (task.train, task.val, task.test)]


def test_by_hand():
    graph = graph_of([9, 1, 8, 2, 7, 3, 6, 4, 5, 0])
    task = ByTime(train=0.6, val=0.2)(graph, seed=0)
    assert sets(task) == [[1, 3, 5, 7, 8, 9], [4, 6], [0, 2]]
    assert sets(ByTime(train=0.6, val=0.2)(graph, seed=1)) == sets(task)
    assert task.class_names == ("a", "b")


def test_nodes_of_one_time_stay_together():
    task = ByTime(train=0.5, val=0.25)(graph_of([0, 0, 0, 0, 0, 0, 1, 2]), seed=0)
    assert sets(task) == [[0, 1, 2, 3, 4, 5], [6], [7]]


@given(st.lists(st.integers(0, 12), min_size=3, max_size=30), st.integers(1, 8), st.integers(1, 8))
def test_the_past_comes_first(times, train, val):
    if train + val >= 10:
        return
    graph = graph_of(times, [0] * len(times))
    del graph.class_names
    try:
        task = ByTime(train=train / 10, val=val / 10)(graph, seed=0)
    except ValueError as problem:
        assert "No labelled node is newer" in str(problem)  # noqa: PT017
        return
    when = graph.time
    assert when[task.train].max() < when[task.val].min()
    assert when[task.val].max() < when[task.test].min()
    assert (task.train | task.val | task.test).all()


def test_nodes_without_label_or_time_are_in_no_set():
    graph = graph_of([0, 1, 2, 3, 4, 5, 6, 7])
    graph.y[0], graph.time[7] = -1, float("nan")
    task = ByTime()(graph, seed=0)
    assert sorted(node for part in sets(task) for node in part) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("times", "labels", "message"),
    [
        ([1, 1, 1, 1], None, "No labelled node is newer than the training nodes"),
        ([0, 1, 1, 1], None, "No labelled node is newer than the validation nodes"),
        ([0, 1], None, "2 labelled nodes have a time, at least 3 are needed"),
        (
            [0, 1, 2, 3],
            [0, 0, 0, 1],
            "Class 'b' has 0 labelled nodes for training, among the oldest, 1 are",
        ),
    ],
)
def test_times_that_do_not_do(times, labels, message):
    with pytest.raises(ValueError, match=message):
        ByTime(train=0.25, val=0.25)(graph_of(times, labels), seed=0)


def test_bad_fields_and_no_times():
    graph = graph_of([0, 1, 2])
    del graph.time
    with pytest.raises(ValueError, match=r"needs the time of every node .*; name a time column"):
        ByTime()(graph, seed=0)
    with pytest.raises(ValueError, match="train must lie between 0 and 1, got 0"):
        ByTime(train=0)
    with pytest.raises(ValueError, match=r"train \+ val must be below 1"):
        ByTime(train=0.6, val=0.4)


def test_edges_of_a_graph_may_have_times():
    size = 20
    edge_index = torch.tensor([[0, 1, 2, 18, 5], [1, 0, 3, 19, 6]])
    graph = Data(
        x=torch.eye(size),
        edge_index=edge_index,
        y=torch.arange(size) % 2,
        time=torch.arange(size).double(),
        edge_time=torch.tensor([3.0, 3.0, 15.0, 16.0, float("nan")]),
        edge_weight=torch.arange(5.0),
    )
    task = ByTime(train=0.6, val=0.2)(graph, seed=0)
    assert task.past.edge_index.T.tolist() == [[0, 1], [1, 0], [2, 3]]  # the cut-off is 15
    assert task.past.edge_weight.tolist() == [0, 1, 2]
    assert task.graph is graph
    without = graph.clone()
    del without.edge_time
    assert ByTime(train=0.6, val=0.2)(without, seed=0).past is None
