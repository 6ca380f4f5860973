"""What can be asked for suggestions."""

import pandas
import pytest
import torch

import evengraph as eg
from evengraph.desk.suggestions import Pool


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


def test_a_graph_without_labels_is_a_cold_start():
    graph = eg.toy(20, 40, 5, 2)
    graph.y = None
    pool = Pool.open(graph)
    assert (pool.labels == -1).all()
    assert pool.class_names == ()


def test_tables_keep_their_ids_and_classes():
    pool = Pool.open(tables(["b", "a", *[None] * 10]))
    assert pool.ids[:2] == ["n0", "n1"]
    assert pool.class_names == ("a", "b")
    assert pool.labels[:3].tolist() == [1, 0, -1]


def test_the_classes_of_a_model_come_first():
    pool = Pool.open(tables(["b", "a", *[None] * 10])).renamed(("b", "c", "a"))
    assert pool.labels[:3].tolist() == [0, 2, -1]


def test_a_model_of_a_graph_knows_the_nodes_that_it_was_trained_on(tmp_path):
    graph = eg.toy(60, 200, 8, 2)
    model = eg.TableModel(eg.Logistic(hops=1), refit=False).fit(graph)
    model.save(tmp_path / "model")
    pool = Pool.open(tmp_path / "model", known=graph)
    assert sorted((pool.labels >= 0).nonzero().squeeze(1).tolist()) == sorted(
        model.method_.labelled_.nodes.tolist()
    )
    predicted = pool.predictions.probabilities
    assert torch.allclose(predicted[0], model.method_.predict_proba(graph))


def test_labels_of_another_length_are_refused():
    graph = eg.toy(20, 40, 5, 2)
    graph.y = graph.y[:5]
    with pytest.raises(ValueError, match="one label for each of the 20 nodes"):
        Pool.open(graph)
