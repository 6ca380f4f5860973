"""Fitting to a part of the rows, half precision; the rest is in test_pack.py."""

import numpy as np
import pytest
from tables_on_disk import make_tables, write

from evengraph.disk import pack
from evengraph.disk.engine import find_files
from evengraph.disk.pack_nodes import NodeTable, fitting_stride
from evengraph.tables import open_graph


@pytest.fixture
def paths(tmp_path):
    nodes, edges = make_tables(500)
    return write(nodes, tmp_path / "nodes.parquet"), write(edges, tmp_path / "edges.parquet")


def test_encoders_of_a_large_table_are_fitted_to_a_part_of_the_rows(paths, tmp_path, monkeypatch):
    monkeypatch.setattr("evengraph.disk.pack_nodes.FIT_ROWS", 100)
    packed = pack(paths[0], tmp_path / "graph", edges=paths[1])
    assert "Encoders are fitted to 100 of 500 rows." in packed.header["notes"]
    exact = open_graph(paths[0], edges=paths[1])
    pay = packed.header["encoder"]["columns"][1]
    assert pay["column"] == "pay"
    assert pay != exact.encoder.as_dict()["columns"][1]
    assert 0.5 < packed.x[:, 1].std() / exact.graph.x[:, 1].std() < 2


def test_less_memory_means_fewer_rows(paths):
    table = NodeTable(find_files(paths[0]), "nodes")
    assert fitting_stride(table, ["age"], 2**40) == 1
    table.num_rows = 10_000_000
    assert fitting_stride(table, ["age"], 2**40) == 10
    assert fitting_stride(table, ["age"], 2**28) > 30


def test_half_precision_is_close(paths, tmp_path):
    packed = pack(paths[0], tmp_path / "graph", edges=paths[1], dtype="float16")
    exact = open_graph(paths[0], edges=paths[1]).graph.x.numpy()
    assert packed.x.dtype == np.float16
    np.testing.assert_allclose(packed.x, exact, atol=2e-3, rtol=2e-3)


def test_features_that_do_not_fit_half_precision_are_an_error(paths, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "evengraph.tables.encoders.Number.transform",
        lambda self, values, table: np.full((len(values), 1), 1e9),
    )
    with pytest.raises(ValueError, match="features must fit into float16; use float32"):
        pack(paths[0], tmp_path / "graph", edges=paths[1], dtype="float16")


def test_features_from_the_edges_need_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("evengraph.disk.pack_nodes.EDGE_BYTES", 2**30)
    nodes, edges = make_tables()
    paths = write(nodes[["id", "label"]], tmp_path / "n.csv"), write(edges, tmp_path / "e.csv")
    with pytest.raises(ValueError, match=r"memory must be at least .* from the edges"):
        pack(paths[0], tmp_path / "graph", edges=paths[1], memory="1GB")
