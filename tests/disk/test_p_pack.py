import errno
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from tables_on_disk import assert_same, make_tables, write

from evengraph.datasets import toy
from evengraph.disk import PackedGraph, is_packed, pack, unpack_graph


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv.gz"])
@pytest.mark.parametrize("weight", [False, True])
def test_tables_are_packed_as_the_reader_of_tables_reads_them(tmp_path, suffix, weight):
    nodes, edges = make_tables(weight=weight)
    paths = write(nodes, tmp_path / f"nodes{suffix}"), write(edges, tmp_path / f"edges{suffix}")
    # the reader of tables makes features of weights, too, unless columns are named
    options = {"features": ["age", "pay", "town", "member"]} if weight else {}
    packed = pack(paths[0], tmp_path / "graph", edges=paths[1], **options)
    assert packed.num_nodes == 60
    assert_same(packed, *paths, **options)
    PackedGraph.open(tmp_path / "graph", verify=True)
    assert not list(tmp_path.glob(".graph*"))


def test_ids_of_different_types_are_compared_by_name(tmp_path):
    nodes = pd.DataFrame({"id": [7, 3, 12], "size": [1.0, 2.0, 4.0], "label": ["a", "b", "a"]})
    nodes = write(nodes, tmp_path / "nodes.parquet")
    for name, ends in {
        "text": (["7", " 3"], ["12", "7"]),
        "numbers": ([7, 3], [12, 7]),
        "reals": ([7.0, 3.0], [12.0, 7.0]),
        "spelt": (["7.0", "3.00"], ["12", "7.0"]),
    }.items():
        path = tmp_path / f"{name}.parquet"
        edges = write(pd.DataFrame({"source": ends[0], "target": ends[1]}), path)
        packed = pack(nodes, tmp_path / name, edges=edges)
        assert_same(packed, nodes, edges)
        assert packed.ids.tolist() == [7, 3, 12]


def test_without_an_id_column_ids_are_row_numbers(tmp_path):
    nodes = write(make_tables()[0].drop(columns=["id"]), tmp_path / "nodes.csv")
    edges = write(pd.DataFrame({"a": [0, 1, 2], "b": [3, 59, 2]}), tmp_path / "edges.csv")
    packed = pack(nodes, tmp_path / "graph", edges=edges)
    assert_same(packed, nodes, edges)
    assert "No id column: ids are row numbers, counted from 0." in packed.header["notes"]


def test_the_id_column_is_the_one_that_the_edges_name(tmp_path):
    nodes, edges = make_tables()
    nodes = nodes.rename(columns={"id": "name"}).assign(id=range(100, 160))
    paths = write(nodes, tmp_path / "nodes.parquet"), write(edges, tmp_path / "edges.parquet")
    packed = pack(paths[0], tmp_path / "graph", edges=paths[1])
    assert packed.header["columns"]["id"] == "name"
    assert_same(packed, *paths)


def test_nodes_without_columns_get_features_from_the_edges(tmp_path):
    nodes, edges = make_tables()
    paths = write(nodes[["id", "label"]], tmp_path / "n.csv"), write(edges, tmp_path / "e.csv")
    assert_same(pack(paths[0], tmp_path / "graph", edges=paths[1]), *paths)


def test_many_files_are_one_table(tmp_path):
    nodes, edges = make_tables()
    whole = write(nodes, tmp_path / "all.parquet"), write(edges, tmp_path / "links.parquet")
    for name, table in (("nodes", nodes), ("edges", edges)):
        (tmp_path / name).mkdir()
        for part in range(4):
            rows = slice(part * len(table) // 4, (part + 1) * len(table) // 4)
            write(table.iloc[rows], tmp_path / name / f"{part}.parquet")
    assert_same(pack(tmp_path, tmp_path / "a"), *whole)
    pattern = str(tmp_path / "nodes" / "*.parquet")
    packed = pack(pattern, tmp_path / "b", edges=tmp_path / "edges")
    assert packed.content_hash == PackedGraph.open(tmp_path / "a").content_hash


def test_columns_and_drop_are_as_those_of_open_graph(tmp_path):
    nodes, edges = make_tables()
    nodes["when"] = pd.date_range("2024-01-01", periods=60).astype(str)
    nodes = nodes.rename(columns={"label": "kind", "split": "part"})
    paths = write(nodes, tmp_path / "nodes.csv"), write(edges, tmp_path / "edges.csv")
    options = {"label": "kind", "unlabelled": ["c"], "split": "part", "time": "when"}
    packed = pack(paths[0], tmp_path / "graph", edges=paths[1], drop=["pay"], **options)
    assert_same(packed, *paths, drop=["pay"], **options)
    assert not any(name.startswith("pay") for name in packed.header["columns"]["features"] or [])


def test_other_columns_of_edges_are_left_out_with_a_note(tmp_path):
    nodes, edges = make_tables()
    edges["amount"] = np.arange(len(edges))
    write(nodes, tmp_path / "nodes.csv")
    write(edges, tmp_path / "edges.csv")
    packed = pack(tmp_path, tmp_path / "graph")
    assert any("Left out columns" in n and "'amount'" in n for n in packed.header["notes"])


def test_a_data_set_by_name_and_graph_files_are_packed(tmp_path):
    expected = toy()
    packed = pack("toy", tmp_path / "toy")
    assert torch.equal(unpack_graph(packed).x, expected.x)
    file = tmp_path / "graph.npz"
    np.savez(file, x=expected.x, edge_index=expected.edge_index, y=expected.y)
    packed = pack(file, tmp_path / "file", dtype="float16")
    assert torch.equal(unpack_graph(packed).edge_index, expected.edge_index)
    assert packed.x.dtype == np.float16
    with pytest.raises(ValueError, match="is packed already"):
        pack(tmp_path / "toy", tmp_path / "again")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory": "1MB"}, "memory must be at least 256MiB, got 1MB"),
        ({"dtype": "int8"}, "dtype must be one of float32, float16, got 'int8'"),
        ({"label": "nothing"}, "has no column 'nothing'"),
        ({"drop": ["nothing"]}, "has no column 'nothing'"),
        ({"id": "town"}, "repeats the id"),
        ({"label": "name"}, "copies the ids"),
    ],
)
def test_wrong_options_are_errors_that_leave_nothing_behind(tmp_path, options, message):
    nodes, edges = make_tables()
    nodes["name"] = nodes["id"]
    paths = write(nodes, tmp_path / "nodes.csv"), write(edges, tmp_path / "edges.csv")
    with pytest.raises(ValueError, match=message):
        pack(paths[0], tmp_path / "graph", edges=paths[1], **options)
    assert {path.name for path in tmp_path.iterdir()} == {"nodes.csv", "edges.csv"}


@pytest.mark.parametrize("stage", ["plan", "edges", "features"])
def test_a_killed_run_resumes_after_the_last_finished_stage(tmp_path, monkeypatch, stage):
    from evengraph.disk.packing import TablePacker

    nodes, edges = make_tables()
    paths = write(nodes, tmp_path / "nodes.csv"), write(edges, tmp_path / "edges.csv")

    def kill(self):
        raise KeyboardInterrupt

    kill.__name__ = f"_{stage}"
    with monkeypatch.context() as patch:
        patch.setattr(TablePacker, f"_{stage}", kill)
        with pytest.raises(KeyboardInterrupt):
            pack(paths[0], tmp_path / "graph", edges=paths[1])
    assert not is_packed(tmp_path / "graph")
    stages = []
    run = TablePacker._run

    def watch(self, stage):
        before = set(self.writer.facts)
        run(self, stage)
        stages.extend(set(self.writer.facts) - before)

    monkeypatch.setattr(TablePacker, "_run", watch)
    packed = pack(paths[0], tmp_path / "graph", edges=paths[1])
    assert stages[0] == stage
    assert_same(packed, *paths)


def test_changed_files_are_read_again(tmp_path):
    nodes, edges = make_tables()
    paths = write(nodes, tmp_path / "nodes.csv"), write(edges, tmp_path / "edges.csv")
    first = pack(paths[0], tmp_path / "graph", edges=paths[1]).content_hash
    shutil.rmtree(tmp_path / "graph")
    write(edges.iloc[:50], tmp_path / "edges.csv")
    packed = pack(paths[0], tmp_path / "graph", edges=paths[1])
    assert packed.content_hash != first
    assert_same(packed, *paths)


@pytest.mark.parametrize("kind", [OSError, RuntimeError])
def test_a_full_disk_names_the_folder(tmp_path, monkeypatch, kind):
    for name, table in zip(("nodes", "edges"), make_tables(), strict=True):
        write(table, tmp_path / f"{name}.csv")

    def full(packer, path):
        raise kind("Could not write: No space left on device")

    monkeypatch.setattr("evengraph.disk.packing.TablePacker.pack", full)
    with pytest.raises(OSError, match=r"No space left on device: .*packed") as found:
        pack(tmp_path / "nodes.csv", tmp_path / "packed", edges=tmp_path / "edges.csv")
    assert found.value.errno == errno.ENOSPC
