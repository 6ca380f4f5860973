import warnings

import numpy as np
import pytest
import torch
from tiny_graphs import Bomb, place, write_npz
from torch_geometric import io

from evengraph.datasets import DATASETS, DataMismatch, load
from evengraph.datasets.readers import _cora_order, read
from evengraph.datasets.registry import FileSet


def test_planetoid_by_hand(tmp_path, tiny):
    place(tmp_path, "citeseer", tiny)
    dataset = DATASETS["citeseer"]
    data = read(dataset.file_sets[0], tiny, "here")
    assert data.x.tolist() == [
        [1, 0, 0],
        [0, 1, 0],
        [0, 0, 1],
        [1, 1, 0],
        [1, 1, 1],
        [0, 0, 0],  # in no list: no words, class 0
        [0, 1, 1],
    ]
    assert data.y.tolist() == [0, 1, 1, 0, 0, 0, 1]
    # no self-loop, no repeat, sorted by target
    assert data.edge_index.tolist() == [[1, 0, 6, 3, 2, 6, 1, 4], [0, 1, 1, 2, 3, 4, 6, 6]]
    assert data.train_mask.tolist() == [True, True, False, False, False, False, False]
    assert data.test_mask.nonzero().flatten().tolist() == [4, 6]


def test_csr_npz_by_hand(tmp_path):
    content = write_npz(tmp_path / "photo.npz").read_bytes()
    data = read(DATASETS["photo"].file_sets[0], {"photo.npz": content}, "here")
    assert data.x.tolist() == [[1, 0], [0, 0], [0, 1]]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.y.tolist() == [0, 1, 0]
    assert (data.x.dtype, data.y.dtype) == (torch.float32, torch.int64)


def read_arrays(tmp_path, reader, **arrays):
    np.savez(tmp_path / "a.npz", **arrays)
    content = (tmp_path / "a.npz").read_bytes()
    return read(FileSet(reader, "", {"a.npz": ""}), {"a.npz": content}, "here")


def test_plain_arrays_by_hand(tmp_path):
    arrays = {"x": np.eye(3), "y": np.array([0, 1, 0])}
    edges = np.array([[0, 2, 2], [1, 2, 1]])
    data = read_arrays(tmp_path, "array_npz", edge_index=edges, **arrays)
    assert data.edge_index.tolist() == [[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]]
    same = read_arrays(
        tmp_path, "edge_list_npz", edges=edges.T, node_features=np.eye(3), node_labels=arrays["y"]
    )
    assert torch.equal(same.edge_index, data.edge_index)
    assert torch.equal(same.x, data.x)


def test_attributed_graphs_by_hand(tmp_path):
    np.savez(
        tmp_path / "attrs.npz", data=[2.0, 1.0], indices=[1, 0], indptr=[0, 1, 1, 2], shape=[3, 2]
    )
    contents = {
        "edgelist.txt": b"0\t1\n2\t1\n1\t0\n",
        "labels.txt": b"0\t3\n2\t1\n1\t2\n",
        "attrs.npz": (tmp_path / "attrs.npz").read_bytes(),
    }
    data = read(DATASETS["blogcatalog"].file_sets[0], contents, "here")
    assert data.x.tolist() == [[0, 2], [0, 0], [1, 0]]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.y.tolist() == [2, 1, 0]


def test_an_edge_to_nowhere_is_refused(tmp_path):
    with pytest.raises(DataMismatch, match="an edge has a node outside 0 to 2"):
        read_arrays(
            tmp_path, "array_npz", x=np.eye(3), y=np.zeros(3), edge_index=np.array([[0], [3]])
        )


@pytest.mark.parametrize("wrong", [{"attr_indices": [0, 1, 2**31]}, {"adj_indptr": [0, 2, 99, 3]}])
def test_parts_of_matrices_are_checked(tmp_path, wrong):
    content = write_npz(tmp_path / "photo.npz", **wrong).read_bytes()
    with pytest.raises(DataMismatch, match=r"here cannot be read as csr_npz: (attr|adj)_ind"):
        read(DATASETS["photo"].file_sets[0], {"photo.npz": content}, "here")


def test_numpy_files_never_unpickle(tmp_path, bomb):
    target = bomb[1]
    hidden = np.empty(1, dtype=object)
    hidden[0] = Bomb(target)
    np.savez(tmp_path / "a.npz", x=hidden, y=hidden, edge_index=hidden)
    with pytest.raises(DataMismatch, match="cannot be read as array_npz"):
        read(
            FileSet("array_npz", "", {"a.npz": ""}),
            {"a.npz": (tmp_path / "a.npz").read_bytes()},
            "here",
        )
    assert not target.exists()


def test_cora_order_is_a_permutation():
    assert sorted(_cora_order().tolist()) == list(range(2708))


SIZES = {
    "cora": [351, 217, 418, 818, 426, 298, 180],
    "citeseer": [264, 590, 668, 701, 596, 508],
    "pubmed": [4103, 7739, 7875],
    "dblp": [7920, 5645, 1982, 2169],
    "cora_ml": [354, 402, 452, 442, 857, 193, 295],
    "minesweeper": [8000, 2000],
    "reddit-user": [10618, 366],
    "blogcatalog": [885, 777, 921, 858, 892, 863],
    "computers": [436, 2142, 1414, 542, 5158, 308, 487, 818, 2156, 291],
}


@pytest.mark.parametrize("name", SIZES)
def test_real_graphs(name, real_root):
    data = load(name, root=real_root)
    assert data.y.bincount().tolist() == SIZES[name]
    assert data.is_undirected()
    assert data.name == name
    assert data.x.dtype == torch.float32
    names = DATASETS[name].class_names
    assert (data.class_names == list(names)) if names else ("class_names" not in data)


@pytest.mark.parametrize("name", ["Cora", "CiteSeer", "PubMed"])
def test_planetoid_equals_pytorch_geometric(name, real_root):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = io.read_planetoid_data(str(real_root / "Planetoid" / name / "raw"), name)
    ours = load(name.lower(), root=real_root)
    for key in ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(ours[key], theirs[key]), key


@pytest.mark.parametrize("name", ["computers", "dblp", "cora_ml"])
def test_npz_equals_pytorch_geometric(name, real_root):
    form = DATASETS[name].file_sets[0]
    theirs = io.read_npz(str(real_root / form.folder / next(iter(form.files))))
    ours = load(name, root=real_root)
    for key in ("x", "edge_index", "y"):
        assert torch.equal(ours[key], theirs[key]), key
