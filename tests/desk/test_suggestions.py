"""suggest() as users call it."""

import json

import pytest
import torch

import evengraph as eg
from evengraph.desk.suggestions import Pool


@pytest.fixture(scope="module")
def pool():
    graph = eg.toy(200, 1000, 30, 3)
    graph.y = torch.where(torch.arange(200) % 10 == 0, graph.y, -1)
    return Pool.open(graph)


def test_offers_as_many_unlabelled_nodes_as_asked_for(pool):
    found = eg.suggest(pool, budget=7)
    rows = [node.row for node in found.nodes]
    assert len(set(rows)) == 7
    assert (pool.labels[rows] == -1).all()
    assert (sum(found.labelled.values()), found.unlabelled) == (20, 180)
    assert all(node.reason and node.predicted in pool.class_names for node in found.nodes)
    json.dumps(found.as_dict())


def test_labels_and_exclude_replace_and_remove(pool):
    first = eg.suggest(pool, budget=5)
    rows = [node.row for node in first.nodes]
    assert not {node.row for node in eg.suggest(pool, 5, exclude=rows).nodes} & set(rows)
    labels = pool.labels.clone()
    labels[rows] = 1
    again = eg.suggest(pool, budget=5, labels=labels)
    assert not {node.row for node in again.nodes} & set(rows)
    assert again.labelled["1"] == first.labelled["1"] + 5


def test_without_a_label_there_is_no_prediction(pool):
    found = eg.suggest(pool, 4, labels=torch.full((200,), -1))
    assert [node.predicted for node in found.nodes] == [None] * 4
    with pytest.raises(ValueError, match="strategy uncertainty needs labels of at least two"):
        eg.suggest(pool, 4, "uncertainty", labels=torch.full((200,), -1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget must be at least 1, got 0"),
        ({"strategy": "rendom"}, "Unknown strategy 'rendom'. Did you mean random"),
        ({"labels": torch.zeros(3)}, "one number for each of the 200 nodes"),
        ({"labels": torch.full((200,), 7)}, "must be below 3, the number of classes, got 7"),
        ({"exclude": range(200)}, "nothing to suggest"),
    ],
)
def test_mistakes(pool, options, message):
    with pytest.raises(ValueError, match=message):
        eg.suggest(pool, **options)
