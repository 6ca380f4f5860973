"""Natural: the same share of every class."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from protocols import check_protocol, named_toy
from torch_geometric.data import Data

from evengraph.splits import Natural


def graph_with(sizes):
    y = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    return Data(x=torch.ones(len(y), 1), edge_index=torch.zeros(2, 0, dtype=torch.long), y=y)


def counts(task):
    return [
        torch.bincount(task.graph.y[mask], minlength=task.num_classes).tolist()
        for mask in (task.train, task.val, task.test)
    ]


def test_the_shared_promises():
    check_protocol(Natural())


def test_shares_of_every_class():
    task = Natural(train=0.1, val=0.2)(graph_with([100, 50, 10]), seed=0)
    assert counts(task) == [[10, 5, 1], [20, 10, 2], [70, 35, 7]]


def test_a_small_class_has_a_node_in_each_set():
    task = Natural(train=0.1, val=0.1)(graph_with([100, 3]), seed=0)
    assert [of_class[1] for of_class in counts(task)] == [1, 1, 1]


@given(
    st.lists(st.integers(3, 30), min_size=1, max_size=4),
    st.integers(1, 98),
    st.integers(1, 98),
)
def test_every_class_has_a_node_in_each_set(sizes, train, val):
    if train + val >= 100:
        return
    task = Natural(train=train / 100, val=val / 100)(graph_with(sizes), seed=0)
    sets = counts(task)
    assert [sum(column) for column in zip(*sets, strict=True)] == sizes
    assert min(min(of_class) for of_class in sets) >= 1


def test_classes_keep_their_ids_and_names():
    graph = named_toy()
    task = Natural()(graph, seed=0)
    assert torch.equal(task.graph.y, graph.y)
    assert task.class_names == ("ants", "bees", "crabs", "deer")


def test_nodes_without_label_are_in_no_set():
    graph = named_toy()
    graph.y[::2] = -1
    task = Natural()(graph, seed=0)
    assert not (task.train | task.val | task.test)[::2].any()
    assert (task.train | task.val | task.test)[1::2].all()


def test_a_class_that_is_too_small_is_refused():
    with pytest.raises(
        ValueError, match=r"Class 1 has 2 .*, 3 are needed; .*\(empty its label cells\)"
    ):
        Natural()(graph_with([5, 2]), seed=0)
    graph = graph_with([5, 2])
    graph.class_names = ["honest", "fraud"]
    with pytest.raises(ValueError, match="Class 'fraud' has 2 labelled nodes"):
        Natural()(graph, seed=0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"train": 0}, "train must lie between 0 and 1, got 0"),
        ({"val": 1}, "val must lie between 0 and 1, got 1"),
        ({"val": -0.1}, "val must lie between 0 and 1, got -0.1"),
        ({"train": 0.5, "val": 0.5}, r"train \+ val must be below 1 .*, got 1"),
    ],
)
def test_bad_shares(fields, message):
    with pytest.raises(ValueError, match=message):
        Natural(**fields)
