"""Tables, data sets and generated graphs as packed ones."""

import errno
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from tables_on_disk import assert_same, make_tables, write

from evengraph.datasets import toy
from evengraph.disk import PackedGraph, is_packed, pack, unpack_graph
from evengraph.disk.engine import find_files
from evengraph.disk.pack_nodes import NodeTable, fitting_stride
from evengraph.tables import UnknownNodeError, open_graph


def packed_tables(folder, nodes, edges, suffix=".csv", **options):
    """Write and pack both tables; returns the packed graph and the files."""
    paths = write(nodes, folder / f"nodes{suffix}"), write(edges, folder / f"edges{suffix}")
    return pack(paths[0], folder / "graph", edges=paths[1], **options), paths


def same_tables(folder, nodes, edges, suffix=".csv", **options):
    """As `packed_tables`; the graph must be the one that the reader of tables reads."""
    packed, paths = packed_tables(folder, nodes, edges, suffix, **options)
    assert_same(packed, *paths, **options)
    return packed


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv.gz"])
@pytest.mark.parametrize("weight", [False, True])
def test_tables_are_packed_as_the_reader_of_tables_reads_them(tmp_path, suffix, weight):
    # the reader of tables makes features of weights, too, unless columns are named
    options = {"features": ["age", "pay", "town", "member"]} if weight else {}
    packed = same_tables(tmp_path, *make_tables(weight=weight), suffix, **options)
    assert packed.num_nodes == 60
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
    edges = pd.DataFrame({"a": [0, 1, 2], "b": [3, 59, 2]})
    packed = same_tables(tmp_path, make_tables()[0].drop(columns=["id"]), edges)
    assert "No id column: ids are row numbers, counted from 0." in packed.header["notes"]


def test_the_id_column_is_the_one_that_the_edges_name(tmp_path):
    nodes, edges = make_tables()
    nodes = nodes.rename(columns={"id": "name"}).assign(id=range(100, 160))
    packed = same_tables(tmp_path, nodes, edges, ".parquet")
    assert packed.header["columns"]["id"] == "name"


def test_nodes_without_columns_get_features_from_the_edges(tmp_path, monkeypatch):
    nodes, edges = make_tables()
    same_tables(tmp_path, nodes[["id", "label"]], edges)
    shutil.rmtree(tmp_path / "graph")
    monkeypatch.setattr("evengraph.disk.pack_nodes.EDGE_BYTES", 2**30)
    with pytest.raises(ValueError, match=r"memory must be at least .* from the edges"):
        packed_tables(tmp_path, nodes[["id", "label"]], edges, memory="1GB")


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
    edges["amount"] = np.arange(len(edges))
    options = {"label": "kind", "unlabelled": ["c"], "split": "part", "time": "when"}
    packed = same_tables(tmp_path, nodes, edges, drop=["pay", "amount"], **options)
    assert not any(name.startswith("pay") for name in packed.header["columns"]["features"] or [])
    shutil.rmtree(tmp_path / "graph")
    packed, _ = packed_tables(tmp_path, nodes, edges)
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
        ({"memory": "1MB"}, "memory must be at least 300MB, got 1MB"),
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
    with pytest.raises(ValueError, match=message):
        packed_tables(tmp_path, nodes, edges, **options)
    assert {path.name for path in tmp_path.iterdir()} == {"nodes.csv", "edges.csv"}


@pytest.mark.parametrize("stage", ["plan", "edges", "features"])
def test_a_killed_run_resumes_after_the_last_finished_stage(tmp_path, monkeypatch, stage):
    from evengraph.disk.packing import TablePacker

    nodes, edges = make_tables()

    def kill(self):
        raise KeyboardInterrupt

    kill.__name__ = f"_{stage}"
    with monkeypatch.context() as patch:
        patch.setattr(TablePacker, f"_{stage}", kill)
        with pytest.raises(KeyboardInterrupt):
            packed_tables(tmp_path, nodes, edges, ".csv")
    paths = tmp_path / "nodes.csv", tmp_path / "edges.csv"
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


@pytest.mark.parametrize("kind", [OSError, RuntimeError])
def test_a_full_disk_names_the_folder(tmp_path, monkeypatch, kind):
    def full(packer, path):
        raise kind("Could not write: No space left on device")

    monkeypatch.setattr("evengraph.disk.packing.TablePacker.pack", full)
    with pytest.raises(OSError, match=r"No space left on device: .*graph") as found:
        packed_tables(tmp_path, *make_tables())
    assert found.value.errno == errno.ENOSPC


def test_every_stage_reports_its_progress(tmp_path):
    reports = []
    packed_tables(tmp_path, *make_tables(), progress=lambda *r: reports.append(r))
    stages = list(dict.fromkeys(stage for stage, _ in reports))
    assert (len(stages), stages[0], stages[-1]) == (8, "reading nodes", "writing checksums")
    assert ("encoding features", 1.0) in reports


def pack_edges(tmp_path, edges, nodes=None, **options):
    nodes = pd.DataFrame({"id": list("abc"), "size": [1.0, 2, 4]}) if nodes is None else nodes
    return packed_tables(tmp_path, nodes, edges, **options)[0]


ENDS = {"source": ["a", "b"], "target": ["b", "c"]}


@pytest.mark.parametrize(
    ("changed", "ids", "told"),
    [
        (
            {"target": ["b", "x"]},
            "abc",
            r"'target' names 'x', which is not the id of a node; 1 of 2",
        ),
        ({"source": ["a", None]}, "abc", r"'source' is empty in 1 row; an edge needs both ends"),
        ({}, ["a", None, "c"], r"every node needs an id \(empty ids: 1\)"),
        *(
            ({"w": ["1", weight]}, "abc", "'w': a weight must be a number from 0 on")
            for weight in ("-1", "inf", "much", "")
        ),
    ],
)
def test_wrong_ends_ids_and_weights_are_errors(tmp_path, changed, ids, told):
    nodes = pd.DataFrame({"id": list(ids), "size": [1, 2, 4]})
    options = {"id": "id"} | ({"weight": "w"} if "w" in changed else {})
    kind = UnknownNodeError if "names" in told else ValueError
    with pytest.raises(kind, match=told):
        pack_edges(tmp_path, pd.DataFrame(ENDS | changed), nodes, **options)


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
    assert packed.indptr.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("weight", [False, True])
@pytest.mark.parametrize(("limit", "value"), [("SORT_BYTES", 2**22), ("BATCH_ROWS", 1)])
def test_edges_are_sorted_in_ranges_that_fit_and_batches_may_cut_equal_ones_apart(
    tmp_path, monkeypatch, weight, limit, value
):
    monkeypatch.setattr(f"evengraph.disk.engine.{limit}", value)
    nodes, edges = make_tables(200, 500, weight=weight)
    shares = []
    packed, paths = packed_tables(
        tmp_path,
        nodes,
        pd.concat([edges] * 3),
        ".parquet",
        features=["age"],
        memory="300MB",
        progress=lambda stage, share: shares.append(share) if stage == "sorting edges" else None,
    )
    assert_same(packed, *paths, features=["age"])
    starts = [share for share in shares if share is not None]
    assert (len(starts) > 10) == (limit == "SORT_BYTES")
    assert starts == sorted(starts)


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


def test_half_precision_is_close_or_an_error(paths, tmp_path, monkeypatch):
    packed = pack(paths[0], tmp_path / "graph", edges=paths[1], dtype="float16")
    exact = open_graph(paths[0], edges=paths[1]).graph.x.numpy()
    assert packed.x.dtype == np.float16
    np.testing.assert_allclose(packed.x, exact, atol=2e-3, rtol=2e-3)
    huge = lambda self, values, table: np.full((len(values), 1), 1e9)  # noqa: E731
    monkeypatch.setattr("evengraph.tables.encoders.Number.transform", huge)
    with pytest.raises(ValueError, match="features must fit into float16; use float32"):
        pack(paths[0], tmp_path / "other", edges=paths[1], dtype="float16")


def test_a_table_of_files_reads_as_the_frame(tmp_path):
    frame = make_tables()[0]
    frame.iloc[:25].to_parquet(tmp_path / "0.parquet", row_group_size=7)
    frame.iloc[25:].to_parquet(tmp_path / "1.parquet")
    files = find_files(tmp_path)
    table = NodeTable(files, "nodes", drop=["pay"])
    assert table.columns == [name for name in frame.columns if name != "pay"]
    assert len(table) == table.num_rows == 60
    for column in table.columns:
        pd.testing.assert_series_equal(table[column], frame[column])
    assert table.iloc[0].to_dict()["id"] == frame["id"][0]
    blocks = list(table.blocks(["town", "id"], 10))
    assert [len(block) for block in blocks] == [10, 10, 5, 10, 10, 10, 5]
    pd.testing.assert_frame_equal(pd.concat(blocks, ignore_index=True), frame[["town", "id"]])
    assert blocks[0].attrs["file"] == "nodes"
    strided = NodeTable(files, "nodes", stride=7)
    assert len(strided) == 9
    assert list(strided["id"]) == list(frame["id"][::7])
    pd.DataFrame({"short": [1.0, 2.0], "long": ["a" * 999] * 2}).to_parquet(tmp_path / "t.parquet")
    table = NodeTable(find_files(tmp_path / "t.parquet"), "nodes")
    assert table.cell_bytes(["long"]) > 900 > 100 > table.cell_bytes(["short"])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("evengraph.disk.pack_nodes.BLOCK_ROWS", 7)
    monkeypatch.setattr("evengraph.disk.pack_nodes.MAX_CELLS", 9)


LABELS = {
    "text": lambda rng: rng.choice([" a", "b", "", "NA"], 60),
    "numbers": lambda rng: rng.choice([10.0, 9.0, np.nan], 60),
    "integers": lambda rng: rng.integers(0, 4, 60),
    "truth": lambda rng: rng.random(60) < 0.3,
}


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("kind", LABELS)
def test_labels_in_blocks_are_those_of_the_column(tmp_path, kind, suffix):
    nodes, edges = make_tables()
    nodes["label"] = LABELS[kind](np.random.default_rng(1))
    packed = same_tables(tmp_path, nodes, edges, suffix)
    assert sum(packed.header["class_counts"]) == (packed.y[:] >= 0).sum()


def test_nodes_have_a_limited_number_of_labels_or_none(tmp_path, monkeypatch):
    nodes, edges = make_tables()
    packed, _ = packed_tables(tmp_path, nodes[["id", "age"]], edges)
    assert (packed.y[:] == -1).all()
    shutil.rmtree(tmp_path / "graph")
    monkeypatch.setattr("evengraph.disk.pack_nodes.MAX_VALUES", 20)
    with pytest.raises(ValueError, match="column 'label'"):
        packed_tables(tmp_path, nodes.assign(label=np.repeat(np.arange(30), 2)), edges)
