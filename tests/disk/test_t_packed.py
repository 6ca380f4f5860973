from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import evengraph as eg
from evengraph.disk import pack, pack_graph
from evengraph.tables import FeatureEncoder
from evengraph.tables.open import is_graph_file, open_graph_file, read_nodes_table


@pytest.fixture
def folder(tmp_path):
    nodes = pd.DataFrame({"id": list("abcd"), "size": [1.0, 2, 4, 8], "label": list("xyxy")})
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    edges = pd.DataFrame({"source": list("abc"), "target": list("bcd")})
    edges.to_csv(tmp_path / "edges.csv", index=False)
    pack(tmp_path, tmp_path / "graph")
    return tmp_path


def test_a_packed_graph_is_opened_like_its_tables(folder):
    packed, tables = eg.open_graph(folder / "graph"), eg.open_graph(folder)
    for name in ("x", "edge_index", "y"):
        assert torch.equal(packed.graph[name], tables.graph[name]), name
    assert list(packed.ids) == list(tables.ids) == list("abcd")
    assert packed.class_names == tables.class_names
    assert replace(packed.encoder, notes=()) == replace(tables.encoder, notes=())
    assert packed.columns == tables.columns


def test_columns_were_named_when_it_was_packed(folder):
    with pytest.raises(ValueError, match="graph does not take label: it is packed"):
        eg.open_graph(folder / "graph", label="size")


def test_it_counts_as_a_file_of_a_whole_graph(folder):
    assert is_graph_file(folder / "graph")
    assert not is_graph_file(folder)
    assert read_nodes_table(folder / "graph") is None
    assert read_nodes_table(folder) is not None


def test_a_model_takes_the_features_that_it_was_trained_on(folder):
    encoder = eg.open_graph(folder).encoder
    columns = eg.open_graph(folder).columns
    opened = open_graph_file(folder / "graph", columns, encoder)
    assert opened.graph.num_nodes == 4
    other = FeatureEncoder.passthrough(["a"], np.ones((4, 1)))
    with pytest.raises(ValueError, match="must hold the features that the model was trained on"):
        open_graph_file(folder / "graph", columns, other)


def test_a_graph_that_does_not_fit_is_an_error_that_says_what_it_needs(folder, monkeypatch):
    monkeypatch.setattr("evengraph.disk.open.available_memory", lambda: 100)
    with pytest.raises(ValueError, match=r"needs about .* and 100 B are free"):
        eg.open_graph(folder / "graph")


def test_features_of_a_data_set_are_used_as_they_are(tmp_path):
    graph = eg.toy(20, 40, 3, 2)
    pack_graph(graph, tmp_path / "graph")
    opened = eg.open_graph(str(tmp_path / "graph"))
    assert torch.equal(opened.graph.x, graph.x)
    assert opened.encoder.names == ("x0", "x1", "x2")
    assert opened.ids.tolist() == list(range(20))
