"""suggest() as users call it, and its parts."""

import json

import pandas
import pytest
import torch
from torch_geometric.data import Data

import evengraph as eg
from evengraph.datasets import toy
from evengraph.desk.suggestions import (
    Pool,
    choose,
    fit_members,
    level,
    node_rows,
    predict_members,
    scout,
    stood_for,
)


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
    labels = pool.labels.clone()
    labels[rows] = 1
    again = eg.suggest(pool, 5, labels=labels)
    for found in (again, eg.suggest(pool, 5, exclude=rows)):
        assert not {node.row for node in found.nodes} & set(rows)
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


LINE = torch.tensor([[0.0], [0.0], [5.0], [9.0]])
SCORES = torch.tensor([1.0, 0.99, 0.8, 0.0])
EVERY = torch.ones(4, dtype=torch.bool)


def test_a_batch_is_diverse_and_takes_each_candidate_once():
    assert choose(SCORES, LINE, EVERY, 2).tolist() == [0, 2]  # a copy gives way
    assert choose(SCORES, LINE, EVERY, 2, spread=0.0).tolist() == [0, 1]
    candidates = torch.tensor([False, True, True, True])
    assert sorted(choose(SCORES, LINE, candidates, 9).tolist()) == [1, 2, 3]
    assert sorted(choose(torch.ones(4), torch.zeros(4, 1), EVERY, 4).tolist()) == [0, 1, 2, 3]


def tables(labels):
    nodes = pandas.DataFrame({"id": [f"n{i}" for i in range(12)], "size": range(12)})
    nodes["kind"] = labels
    edges = pandas.DataFrame({"source": nodes["id"][:-1], "target": nodes["id"][1:].tolist()})
    return eg.from_frames(nodes, edges, label="kind")


def test_a_graph_has_its_rows_as_ids():
    graph = eg.toy(20, 40, 5, 2)
    pool = Pool.open(graph)
    assert (pool.ids[3], pool.class_names) == (3, ("0", "1"))
    assert torch.equal(pool.labels, graph.y)
    graph.y = graph.y[:5]
    with pytest.raises(ValueError, match="one label for each of the 20 nodes"):
        Pool.open(graph)
    graph.y = None
    assert (Pool.open(graph).labels == -1).all()
    assert Pool.open(graph).class_names == ()


def test_tables_keep_their_ids_and_classes():
    pool = Pool.open(tables(["b", "a", *[None] * 10]))
    assert pool.ids[:2] == ["n0", "n1"]
    assert pool.class_names == ("a", "b")
    assert pool.labels[:3].tolist() == [1, 0, -1]
    assert pool._renamed(("b", "c", "a")).labels[:3].tolist() == [0, 2, -1]


def test_a_model_of_a_graph_knows_the_nodes_that_it_was_trained_on(tmp_path):
    graph = eg.toy(60, 200, 8, 2)
    model = eg.TableModel(eg.Logistic(hops=1), refit=False).fit(graph)
    model.save(tmp_path / "model")
    pool = Pool.open(tmp_path / "model", known=graph)
    assert sorted((pool.labels >= 0).nonzero().squeeze(1).tolist()) == sorted(
        model.method_.labelled_.nodes.tolist()
    )
    assert torch.equal(pool.predictions, model.method_.predict_proba(graph))


def test_the_row_most_like_a_node_is_usually_of_its_class():
    graph = toy(300, 3000, 40, 2, size_ratio=1.0)
    rows = node_rows(graph)
    nearest = torch.cdist(rows, rows).fill_diagonal_(torch.inf).argmin(1)
    assert (graph.y[nearest] == graph.y).float().mean() > 0.8


def test_rows_are_the_same_twice_and_finite_without_features_or_edges():
    graph = toy(60, 120, 8, 2)
    assert torch.equal(node_rows(graph), node_rows(graph))
    for x in (torch.zeros(5, 0), torch.zeros(5, 3)):
        bare = Data(x=x, edge_index=torch.empty(2, 0, dtype=torch.long))
        assert node_rows(bare).shape == (5, 1)
        assert not node_rows(bare).any()


ROWS = torch.tensor([[0.0, 0], [0, 1], [4, 0], [4, 1], [2, 0.5]])


def test_learns_from_two_labels_and_doubts_the_node_between():
    vote = scout(ROWS, torch.tensor([0, -1, 2, -1, -1]), 4)
    assert vote.argmax(1)[:4].tolist() == [0, 0, 2, 2]
    assert vote.max(1).values.argmin() == 4
    assert torch.allclose(vote.sum(1), torch.ones(5))
    assert vote[:, [1, 3]].sum() == 0  # classes without labels
    assert scout(ROWS, torch.tensor([0, 0, -1, -1, -1]), 2) is None


def test_classes_weigh_the_same_however_many_labels_they_have():
    rows = torch.cat([ROWS[:1].repeat(50, 1), ROWS[2:3], ROWS[4:]])
    labels = torch.tensor([0] * 50 + [1, -1])
    assert abs(float(scout(rows, labels, 2)[-1, 0]) - 0.5) < 0.1


def test_the_seed_decides():
    labels = torch.tensor([0, 0, 1, 1, -1])
    first, again, other = (scout(ROWS, labels, 2, seed=s) for s in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_label_stands_for_the_nodes_that_it_is_nearest_to(monkeypatch):
    assert stood_for(ROWS, ROWS[[0, 2]]).sum() == 5
    assert stood_for(ROWS, ROWS[[0, 1, 2]]).tolist()[2] == 2
    assert stood_for(ROWS[:1], ROWS[[0, 2]]).tolist() == [1, 1]
    whole = stood_for(ROWS, ROWS[[0, 2]]).tolist()
    monkeypatch.setattr("evengraph.desk.suggestions.DISTANCES", 1)  # a row at a time
    assert stood_for(ROWS, ROWS[[0, 2]]).tolist() == whole


def test_crowded_labels_do_not_move_the_border_between_classes():
    line = torch.arange(41.0).unsqueeze(1) / 40  # class 1 begins in the middle
    labels = torch.full((41,), -1)
    labels[[5, 10]], labels[[21, 22, 23, 24, 25, 26, 27, 35]] = 0, 1

    def border(levelled: bool) -> int:
        nodes = (labels >= 0).nonzero().squeeze(1)
        each = stood_for(line, line[nodes])
        model = fit_members(line[nodes], labels[nodes], each.sqrt()[None])
        if levelled:
            model = level(model, line[nodes], labels[nodes], each[None])
        return int((predict_members(line, model)[0].argmax(1) == 0).sum())

    assert abs(border(True) - 20) < abs(border(False) - 20)
