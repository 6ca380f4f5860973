import json
from hashlib import sha256

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from evengraph.disk import PackedGraph, PackError
from evengraph.disk.graphs import pack_graph
from evengraph.tables import open_graph


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
    ],
)
def test_what_a_forged_folder_holds_is_refused(folder, name, change, told):
    assert open_graph(folder).graph.num_nodes == 4
    forge(folder, name, change)
    PackedGraph.open(folder, verify=True)  # the checksums fit
    with pytest.raises(PackError, match=told):
        open_graph(folder)


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("indices", lambda array: array.astype(float), "indices must not have dtype"),
        ("x", lambda array: array[:, :1], r"x must have shape \[4, 2\]"),
        ("indptr", lambda array: array[:-1], r"indptr must have shape \[5\]"),
        ("y", lambda array: array[:3], "y must have shape"),
    ],
)
def test_arrays_that_do_not_fit_one_another_are_refused(folder, name, change, told):
    forge(folder, name, change)
    with pytest.raises(PackError, match=told):
        PackedGraph.open(folder)


@pytest.mark.parametrize(
    "changed",
    [
        {"num_nodes": "4"},
        {"num_nodes": -1},
        {"class_names": 3},
        {"class_names": [1, 2]},
        {"arrays": []},
        {"columns": {"hue": 1}},
        {"encoder": {"columns": 3}},
    ],
)
def test_a_header_of_another_kind_is_one_line(folder, changed):
    header = json.loads((folder / "graph.json").read_text())
    (folder / "graph.json").write_text(json.dumps(header | changed))
    with pytest.raises(PackError, match=r"graph\.json") as found:
        open_graph(folder)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("shape", [None, 3, {}])
def test_the_shape_of_ids_is_a_list(folder, shape):
    header = json.loads((folder / "graph.json").read_text())
    header["arrays"]["ids"]["shape"] = shape
    (folder / "graph.json").write_text(json.dumps(header))
    with pytest.raises(PackError, match="the array ids must have a dtype, a shape and a sha256"):
        open_graph(folder)
