"""Errors of edges, and batches that cut a run of equal edges; the rest is in test_pack.py."""

import numpy as np
import pandas as pd
import pytest
from tables_on_disk import assert_same, make_tables, write

from evengraph.disk import pack
from evengraph.tables import UnknownNodeError


def pack_edges(tmp_path, edges, nodes=None, **options):
    nodes = pd.DataFrame({"id": list("abc"), "size": [1.0, 2, 4]}) if nodes is None else nodes
    paths = write(nodes, tmp_path / "nodes.csv"), write(edges, tmp_path / "edges.csv")
    return pack(paths[0], tmp_path / "graph", edges=paths[1], **options)


def test_an_unknown_end_is_an_error(tmp_path):
    edges = pd.DataFrame({"source": list("abb"), "target": list("bcx")})
    message = r"column 'target' names 'x', which is not the id of a node; 1 of 3 edges"
    with pytest.raises(UnknownNodeError, match=message):
        pack_edges(tmp_path, edges, id="id")


def test_an_empty_end_or_id_is_an_error(tmp_path):
    edges = pd.DataFrame({"source": ["a", None], "target": ["b", "c"]})
    with pytest.raises(ValueError, match=r"'source' is empty in 1 row; an edge needs both ends"):
        pack_edges(tmp_path, edges, id="id")
    nodes = pd.DataFrame({"id": ["a", None], "size": [1, 2]})
    with pytest.raises(ValueError, match=r"every node needs an id \(empty ids: 1\)"):
        pack_edges(tmp_path, edges.iloc[:0], nodes, id="id")


@pytest.mark.parametrize("weight", ["-1", "inf", "much", ""])
def test_wrong_weights_are_errors(tmp_path, weight):
    edges = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "w": ["1", weight]})
    with pytest.raises(ValueError, match=r"'w': a weight must be a number from 0 on"):
        pack_edges(tmp_path, edges, weight="w")


def test_notes_count_what_is_left_out(tmp_path):
    rows = [("a", "b", 1), ("b", "a", 3), ("a", "b", 1), ("a", "a", 1), ("b", "c", 0)]
    packed = pack_edges(tmp_path, pd.DataFrame(rows, columns=["source", "target", "weight"]))
    assert packed.indices.tolist() == [1, 0]
    assert packed.edge_weight.tolist() == [3.0, 3.0]  # the larger of 1 + 1 and 3
    notes = packed.header["notes"]
    assert "Dropped 1 edge: weight 0." in notes
    assert "Dropped 1 self-loop." in notes
    assert "Merged 2 repeated or reverse edges, their weights summed." in notes
    assert "Nodes without edges: 1 of 3." in notes


def test_a_graph_without_edges_is_packed(tmp_path):
    packed = pack_edges(tmp_path, pd.DataFrame({"source": [], "target": []}), id="id")
    assert packed.num_edges == 0
    assert packed.indptr.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("weight", [False, True])
def test_edges_are_sorted_in_ranges_of_nodes_that_fit_into_memory(tmp_path, monkeypatch, weight):
    monkeypatch.setattr("evengraph.disk.engine.SORT_BYTES", 2**22)  # 32 and more at a time
    nodes, edges = make_tables(200, 500, weight=weight)
    paths = write(nodes, tmp_path / "nodes.parquet"), write(edges, tmp_path / "edges.parquet")
    shares = []
    packed = pack(
        paths[0],
        tmp_path / "graph",
        edges=paths[1],
        features=["age"],
        memory="300MB",
        progress=lambda stage, share: shares.append(share) if stage == "sorting edges" else None,
    )
    assert_same(packed, *paths, features=["age"])
    starts = [share for share in shares if share is not None]
    assert len(starts) > 10
    assert starts == sorted(starts)


@pytest.mark.parametrize("weight", [False, True])
def test_batches_may_cut_equal_edges_apart(tmp_path, monkeypatch, weight):
    monkeypatch.setattr("evengraph.disk.engine.BATCH_ROWS", 1)
    nodes, edges = make_tables(200, 500, weight=weight)
    edges = pd.concat([edges] * 3)
    paths = write(nodes, tmp_path / "nodes.parquet"), write(edges, tmp_path / "edges.parquet")
    packed = pack(paths[0], tmp_path / "graph", edges=paths[1], features=["age"])
    assert_same(packed, *paths, features=["age"])
    assert np.diff(packed.indptr).sum() == packed.num_edges
