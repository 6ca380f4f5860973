"""Packed graphs: arrays, damage, writing in stages, and reading into memory."""

import json
import os
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

import evengraph as eg
from evengraph.datasets import toy
from evengraph.disk import (
    PackedGraph,
    PackError,
    PackWriter,
    is_packed,
    pack,
    pack_graph,
    unpack_graph,
)
from evengraph.disk.packed_graph import ArrayFile, TextArray, fitting_rows
from evengraph.tables import FeatureEncoder, open_graph
from evengraph.tables.open import is_graph_file, open_graph_file, read_nodes_table


@pytest.fixture
def packed(tmp_path):
    """A star of one hub and six leaves, and two more nodes that form a pair."""
    edges = torch.tensor([[0] * 6 + [7], [1, 2, 3, 4, 5, 6, 8]])
    graph = Data(x=torch.arange(18.0).reshape(9, 2), edge_index=edges, y=torch.arange(9) % 3 - 1)
    return pack_graph(graph, tmp_path / "graph")


def test_counts_and_arrays_are_as_documented(packed):
    assert (packed.num_nodes, packed.num_edges, packed.num_features) == (9, 14, 2)
    assert packed.class_names == ("0", "1")
    assert packed.num_classes == 2
    assert packed.indptr.tolist() == [0, 6, 7, 8, 9, 10, 11, 12, 13, 14]
    assert packed.indices.tolist() == [1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0, 8, 7]
    assert packed.y.tolist() == [-1, 0, 1] * 3
    assert packed.ids.tolist() == list(range(9))
    dtypes = [array.dtype for array in (packed.indptr, packed.indices, packed.x, packed.y)]
    assert dtypes == [np.int64, np.int32, np.float32, np.int32]
    assert isinstance(packed.x, np.memmap)
    assert not packed.x.flags.writeable
    assert packed.edge_weight is None
    assert packed.mask("train") is None


def test_blocks_cover_all_rows_within_the_limit_or_are_one_row(packed):
    blocks = list(fitting_rows(packed.indptr, 40, 4, 4))
    assert [(block.start, block.stop) for block in blocks] == [(0, 2), (2, 7), (7, 9)]
    blocks = list(fitting_rows(packed.indptr, 8, 4, 4))
    assert [block.start for block in blocks] == list(range(9))


def replaced(before, after):
    return lambda content: content.replace(before, after, 1)


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("graph.json", replaced(b'"format": 1', b'"format": 99'), "must have format 1, got 99"),
        ("graph.json", lambda content: b"{", "is damaged"),
        ("y.npy", replaced(b"(9,)", b"(8,)"), r"y.npy must have shape \[9\], got \[8\]"),
        ("x.npy", lambda content: content[:-4], "x.npy is missing or damaged"),
        ("x.npy", lambda content: b"", "x.npy is missing or damaged"),
        ("y.npy", replaced(b"(9,), }  ", b"(9L,), } "), "is missing or damaged: Reading `.npy`"),
        ("y.npy", replaced(b"'<i4'", b"'|a4'"), "y.npy (is missing or damaged|must have dtype)"),
        (
            "y.npy",
            replaced(b"(9,), }" + b" " * 30, b"(" + b"9" * 31 + b",), }"),
            "y.npy is missing or damaged",
        ),
    ],
)
def test_a_changed_header_or_array_is_an_error_not_a_warning(packed, name, change, told):
    file = packed.path / name
    content = file.read_bytes()
    file.write_bytes(change(content))
    assert file.read_bytes() != content
    with pytest.raises(PackError, match=told):
        PackedGraph.open(packed.path)


def test_checksums_find_a_flipped_bit_on_request(packed):
    PackedGraph.open(packed.path, verify=True)
    file = packed.path / "indices.npy"
    content = bytearray(file.read_bytes())
    content[-4] ^= 1
    file.write_bytes(content)
    PackedGraph.open(packed.path)
    with pytest.raises(PackError, match=r"indices.npy was changed after packing"):
        PackedGraph.open(packed.path, verify=True)


def test_is_packed_tells_a_packed_graph_from_other_folders(packed, tmp_path):
    assert is_packed(packed.path)
    assert is_packed(str(packed.path))
    assert not is_packed(tmp_path)
    assert not is_packed(packed)
    with pytest.raises(FileNotFoundError, match="is no packed graph"):
        PackedGraph.open(tmp_path)


def test_rows_are_appended(tmp_path):
    values = np.arange(30.0).reshape(10, 3)
    with ArrayFile(tmp_path / "x.npy", np.float16, 3) as file:
        for start in (0, 4, 8, 10):
            file.append(values[start : start + 4])
        with pytest.raises(ValueError, match=r"rows must have width 3, got shape \(2, 4\)"):
            file.append(np.ones((2, 4)))
    read = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert read.dtype == np.float16
    assert np.array_equal(read, values)
    with ArrayFile(tmp_path / "y.npy", np.int32) as file:  # the header has room for many rows
        file.append(np.arange(100_000))
    assert np.load(tmp_path / "y.npy")[-1] == 99_999
    with ArrayFile(tmp_path / "x.npy", np.float32, 3):
        pass
    assert np.load(tmp_path / "x.npy").shape == (0, 3)


TEXTS = ["a", "", "zürich", "x" * 300, "b,c", "日本"]


def test_rows_slices_and_lists_give_the_texts():
    content = [text.encode() for text in TEXTS]
    offsets = np.cumsum([0, *map(len, content)])
    array = TextArray(np.frombuffer(b"".join(content), np.uint8), offsets)
    for rows in (slice(1, 4), slice(None, None, 2), slice(4, 4), slice(None)):
        assert array[rows].tolist() == TEXTS[rows]
    assert array[[5, 0]].tolist() == ["日本", "a"]
    assert array[np.arange(6) > 3].tolist() == TEXTS[4:]
    with pytest.raises(IndexError):
        array[[6]]


@pytest.fixture
def folder(tmp_path):
    graph = Data(
        x=torch.rand(4, 2),
        edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        y=torch.tensor([0, 1, -1, 1]),
        edge_weight=torch.ones(4),
    )
    pack_graph(graph, tmp_path / "graph")
    return tmp_path / "graph"


def forge(folder, name, change):
    """Change an array, and make the header fit it."""
    path = folder / f"{name}.npy"
    array = change(np.load(path))
    np.save(path, array)
    header = json.loads((folder / "graph.json").read_text())
    header["arrays"][name] = {
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "sha256": sha256(path.read_bytes()).hexdigest(),
    }
    (folder / "graph.json").write_text(json.dumps(header))


def put(index, value):
    def change(array):
        array[index] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("indices", put(0, 4), "indices must lie between 0 and 3"),
        ("indices", put(3, -1), "indices must lie"),
        ("y", put(0, 2), "y must lie between -1 and 1"),
        ("y", put(0, -2), "y must lie"),
        ("indptr", put(1, 9), "indptr must run upwards"),
        ("indptr", put(0, 1), "indptr must run from 0 to 4"),
        ("indptr", put(4, 3), "indptr must run from 0 to 4"),
        ("x", put(0, np.nan), "x must be finite"),
        ("edge_weight", put(0, np.inf), "edge_weight must be finite"),
        ("indices", lambda array: array.astype(float), "indices.dtype must not be"),
        ("x", lambda array: array[:, :1], r"x.shape must be \[4, 2\]"),
        ("indptr", lambda array: array[:-1], r"indptr.shape must be \[5\]"),
        ("y", lambda array: array[:3], "y.shape must be"),
    ],
)
def test_what_a_forged_folder_holds_is_refused(folder, name, change, told):
    assert open_graph(folder).graph.num_nodes == 4
    forge(folder, name, change)
    if "lambda" in change.__qualname__:  # arrays that do not fit one another cannot be opened
        with pytest.raises(PackError, match=told):
            PackedGraph.open(folder)
    else:
        PackedGraph.open(folder, verify=True)  # the checksums fit
    with pytest.raises(PackError, match=told):
        open_graph(folder)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"num_nodes": "4"}, "num_nodes must be"),
        ({"num_nodes": -1}, "num_nodes.* must be at least 0"),
        ({"class_names": 3}, "class_names must be"),
        ({"class_names": [1, 2]}, r"class_names\[0\] must be"),
        ({"arrays": []}, "lacks the array indptr"),
        ({"columns": {"hue": 1}}, "is damaged: columns.hue is unknown"),
        ({"notes": [3]}, r"is damaged: notes\[0\] must be"),
        ({"class_counts": "3"}, "is damaged: class_counts must be"),
        ({"encoder": {"columns": 3}}, "is damaged: encoder.version must be 2"),
        *(({"shape": shape}, "arrays.ids.shape must be") for shape in (None, 3, {})),
    ],
)
def test_a_header_of_another_kind_is_one_line(folder, changed, told):
    header = json.loads((folder / "graph.json").read_text())
    if "shape" in changed:
        header["arrays"]["ids"] |= changed
    else:
        header |= changed
    (folder / "graph.json").write_text(json.dumps(header))
    with pytest.raises(PackError, match=rf"graph\.json .*{told}") as found:
        open_graph(folder)
    assert "\n" not in str(found.value)


def test_a_graph_comes_back_as_it_was(tmp_path):
    graph = toy(200, 800, 16, 3)
    graph.train_mask = torch.arange(200) < 50
    graph.class_names = ["a", "b", "c"]
    read = unpack_graph(pack_graph(graph, tmp_path / "graph"))
    for name in ("x", "edge_index", "y", "train_mask"):
        assert torch.equal(read[name], graph[name]), name
        assert read[name].dtype == graph[name].dtype, name
    assert read.class_names == ["a", "b", "c"]
    assert "val_mask" not in read
    opened = eg.open_graph(str(tmp_path / "graph"))  # features are used as they are
    assert torch.equal(opened.graph.x, graph.x)
    assert opened.encoder.names[:3] == ("x0", "x1", "x2")
    assert opened.ids.tolist() == list(range(200))


def test_edges_become_undirected_without_loops_and_repeats(tmp_path):
    edges = torch.tensor([[0, 0, 1, 2, 2], [1, 1, 0, 2, 1]])
    packed = pack_graph(Data(x=torch.ones(4, 1), edge_index=edges), tmp_path / "graph")
    assert unpack_graph(packed).edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert packed.y.tolist() == [-1] * 4
    assert packed.class_names == ()
    edges, weight = torch.tensor([[0, 1, 1], [1, 0, 2]]), torch.tensor([0.5, 2.0, 3.0])
    graph = Data(x=torch.ones(3, 1), edge_index=edges, edge_weight=weight)
    read = unpack_graph(pack_graph(graph, tmp_path / "weighted"))
    assert read.edge_weight.tolist() == [2.0, 2.0, 3.0, 3.0]


@pytest.mark.parametrize("ids", [["a", "ü", "10"], [5, 3, 2**40]])
def test_ids_are_numbers_or_text(ids, tmp_path):
    graph = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0], [1]]))
    pack_graph(graph, tmp_path / "graph", ids=np.array(ids, dtype=object if "a" in ids else None))
    assert PackedGraph.open(tmp_path / "graph").ids[:].tolist() == ids


def write_all(writer):
    writer.write("indptr", np.array([0, 1, 2]))
    writer.write("indices", np.array([1, 0], dtype=np.int32))
    writer.write("x", np.ones((2, 3), dtype=np.float32))
    writer.write("y", np.array([0, -1], dtype=np.int32))
    writer.write("ids", np.arange(2))


def test_the_folder_appears_only_when_it_is_complete(tmp_path):
    with PackWriter(tmp_path / "graph", {}) as writer:
        write_all(writer)
        assert not (tmp_path / "graph").exists()
        packed = writer.publish(class_names=["a"])
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]
    names = {path.name for path in packed.path.iterdir()}
    assert names == {f"{name}.npy" for name in packed.header["arrays"]} | {"graph.json"}
    assert packed.header["arrays"]["x"]["shape"] == [2, 3]


def begin(path, error):
    """Write one stage and end with an error."""
    with PackWriter(path, {"a": 1}) as writer:
        writer.write("x", np.full((2, 3), 7, np.float32))
        writer.finish("features", scale=0.1 + 0.2)
        raise error


def test_finished_stages_survive_a_kill_and_bad_input_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="bad cell"):
        begin(tmp_path / "graph", ValueError("bad cell"))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(KeyboardInterrupt):
        begin(tmp_path / "graph", KeyboardInterrupt())
    assert not is_packed(tmp_path / "graph")
    with PackWriter(tmp_path / "graph", {"a": 1}) as writer:
        assert writer.is_done("features")
        assert not writer.is_done("edges")
        assert writer.facts["features"]["scale"] == 0.1 + 0.2
        assert (writer.read("x") == 7).all()


def test_other_inputs_or_a_damaged_journal_start_afresh(tmp_path):
    for name, options in (("a", {"a": 2}), ("b", {"a": 1})):
        with pytest.raises(KeyboardInterrupt):
            begin(tmp_path / name, KeyboardInterrupt())
        if name == "b":
            (tmp_path / ".b.partial" / "journal.json").write_text("{")
        with PackWriter(tmp_path / name, options) as writer:
            assert not writer.facts
            assert not list(writer.folder.glob("*.npy"))


def test_two_writers_of_one_folder_exclude_each_other(tmp_path, monkeypatch):
    rename = os.rename

    def renamed(*paths):  # when a graph is complete, another process has not begun
        with pytest.raises(PackError, match="another process"), PackWriter(tmp_path / "graph", {}):
            pass
        rename(*paths)

    monkeypatch.setattr(os, "rename", renamed)
    with PackWriter(tmp_path / "graph", {}) as first:
        write_all(first)
        with pytest.raises(PackError, match="another process"), PackWriter(tmp_path / "graph", {}):
            pass
        first.publish(class_names=[])
    with pytest.raises(FileExistsError, match="exists; remove it"):
        PackWriter(tmp_path / "graph", {})
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


def test_a_pipe_among_the_files_is_refused(tmp_path):
    pack_graph(toy(30, 60, 4, 2), tmp_path / "graph")
    (tmp_path / "graph" / "y.npy").unlink()
    os.mkfifo(tmp_path / "graph" / "y.npy")
    with pytest.raises(PackError, match=r"y\.npy is missing or damaged: it is no file"):
        PackedGraph.open(tmp_path / "graph")


@pytest.fixture
def shops(tmp_path):
    nodes = pd.DataFrame({"id": list("abcd"), "size": [1.0, 2, 4, 8], "label": list("xyxy")})
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    edges = pd.DataFrame({"source": list("abc"), "target": list("bcd")})
    edges.to_csv(tmp_path / "edges.csv", index=False)
    pack(tmp_path, tmp_path / "graph")
    return tmp_path


def test_a_packed_graph_is_opened_like_its_tables(shops):
    packed, tables = eg.open_graph(shops / "graph"), eg.open_graph(shops)
    for name in ("x", "edge_index", "y"):
        assert torch.equal(packed.graph[name], tables.graph[name]), name
    assert list(packed.ids) == list(tables.ids) == list("abcd")
    assert packed.class_names == tables.class_names
    assert replace(packed.encoder, notes=()) == replace(tables.encoder, notes=())
    assert packed.columns == tables.columns


def test_it_counts_as_a_file_of_a_whole_graph(shops):
    with pytest.raises(ValueError, match="graph does not take label: it is packed"):
        eg.open_graph(shops / "graph", label="size")
    assert is_graph_file(shops / "graph")
    assert not is_graph_file(shops)
    assert read_nodes_table(shops / "graph") is None
    assert read_nodes_table(shops) is not None


def test_a_model_takes_the_features_that_it_was_trained_on(shops, monkeypatch):
    tables = eg.open_graph(shops)
    opened = open_graph_file(shops / "graph", tables.columns, tables.encoder)
    assert opened.graph.num_nodes == 4
    other = FeatureEncoder.passthrough(["a"], np.ones((4, 1)))
    with pytest.raises(ValueError, match="must hold the features that the model was trained on"):
        open_graph_file(shops / "graph", tables.columns, other)
    monkeypatch.setattr("evengraph.disk.graphs.available_memory", lambda: 100)
    with pytest.raises(ValueError, match=r"needs about .* and 100 B are free"):
        eg.open_graph(shops / "graph")
