"""Files of torch: ordinary tensors are read, odd ones get one line."""

import io
import zipfile

import numpy as np
import pytest
import torch
from torch import nn

from evengraph.core import untrusted as limits
from evengraph.tables.graph_files import KEYS, read_pyg, read_torch

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
X = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])

# of torch, about sparse and quantized tensors
pytestmark = pytest.mark.filterwarnings("ignore")


def coo(indices=((0, 1, 2), (0, 1, 0))):
    return torch.sparse_coo_tensor(indices, [1.0, 2.0, 3.0], (3, 2), check_invariants=False)


def written(tmp_path, **parts):
    torch.save({"edge_index": EDGES, **parts}, tmp_path / "g.pt")
    return tmp_path / "g.pt"


@pytest.mark.parametrize(
    "x",
    [
        lambda: X.clone().requires_grad_(),
        lambda: nn.Parameter(X),
        lambda: X.bfloat16(),
        lambda: X.half(),
        lambda: X.int(),
        lambda: coo(),
        lambda: coo().coalesce(),
        lambda: X.to_sparse_csr(),
        lambda: X.t().contiguous().t(),
    ],
    ids=["grad", "parameter", "bfloat16", "half", "int", "coo", "coalesced", "csr", "strides"],
)
def test_ordinary_tensors_are_read(tmp_path, x):
    assert read_pyg(written(tmp_path, x=x())).graph.x.tolist() == X.tolist()


@pytest.mark.parametrize("count", [4, torch.tensor(4), torch.tensor([4]), torch.tensor([[4]])])
def test_numbers_of_nodes(tmp_path, count):
    assert read_pyg(written(tmp_path, num_nodes=count)).graph.num_nodes == 4


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            lambda: {"x": X.cfloat()},
            "x must be a dense or sparse tensor .* got complex numbers",
        ),
        (lambda: {"x": X.to("meta")}, "got one without data"),
        (
            lambda: {"x": torch.quantize_per_tensor(X, 0.1, 0, torch.qint8)},
            "holds a quantized tensor",
        ),
        (lambda: {"x": X.to_sparse_csc()}, "the layout torch.sparse_csc is not"),
        (
            lambda: {"x": torch.ones(2, 2, 2).to_sparse()},
            "must have two dimensions, got 3",
        ),
        (lambda: {"x": [[1.0], [2.0], [3.0]]}, "x must be a tensor or a list of values, got list"),
        (lambda: {"x": torch.tensor(1.0)}, "features must be an array"),
        (lambda: {"class_names": 5}, "class_names must be an array, got '5'"),
        (
            lambda: {"num_nodes": torch.tensor([3, 4])},
            r"must be a whole number, got \[3 4\]",
        ),
        (lambda: {"num_nodes": "many"}, "num_nodes must be a whole number, got many"),
        (
            lambda: {"num_nodes": 10**12},
            "4 edges .* may name at most 1,000,400 nodes",
        ),
        (lambda: {"num_nodes": 10**400}, "num_nodes must be a whole number, got 1000"),
        (
            lambda: {"edge_index": torch.tensor([[0], [3 * 10**8]])},
            "at most 1,000,100 nodes",
        ),
        (lambda: {"edge_index": coo()}, "edge_index must be integers"),
        (lambda: {"x": torch.ones(1, 1).expand(3, 10**9)}, "unpacks to 11.2 GiB; .* after clone"),
    ],
)
def test_odd_tensors_get_one_line(tmp_path, parts, message):
    with pytest.raises(ValueError, match=rf"g\.pt.*{message}") as caught:
        read_pyg(written(tmp_path, **parts()))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", [[[0, 1, 9], [0, 1, 0]], [[0, 1, 2], [0, 1, 9]]])
def test_indices_of_sparse_tensors_are_checked(tmp_path, wrong):
    path = written(tmp_path, x=coo(wrong))
    with pytest.raises(ValueError, match=r"g\.pt"):
        read_pyg(path)


def test_a_compressed_file_that_unpacks_to_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "FREE_BYTES", 10**4)
    stored, packed = io.BytesIO(), tmp_path / "g.pt"
    torch.save({"edge_index": EDGES, "x": torch.zeros(3, 10**5)}, stored)
    with zipfile.ZipFile(stored) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for item in old.infolist():
            new.writestr(item.filename, old.read(item))
    with pytest.raises(ValueError, match=r"g\.pt unpacks to 1\.1 MiB"):
        read_torch(packed, KEYS)


def test_damaged_files_get_one_line(tmp_path):
    path = written(tmp_path, x=X)
    content = path.read_bytes()
    for seed in range(60):
        stream = np.random.default_rng(seed)
        damaged = bytearray(content)
        for index in stream.integers(0, len(content), 5):
            damaged[index] = stream.integers(256)
        path.write_bytes(damaged)
        try:
            read_pyg(path)
        except ValueError as error:
            assert "g.pt" in str(error)  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize("zipped", [True, False])
def test_a_quantized_tensor_is_refused_before_memory_is_taken_for_it(tmp_path, zipped):
    huge = torch.quantize_per_tensor(torch.ones(1), 0.1, 0, torch.qint8).expand(10**11)
    path = tmp_path / "graph.pt"
    torch.save({"edge_index": huge}, path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(ValueError, match=r"graph\.pt holds a quantized tensor"):
        read_torch(path, ["edge_index"])
