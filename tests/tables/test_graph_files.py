"""Graphs that are graphs already: NetworkX, GraphML, matrices, npz, torch files."""

import io
import pickle
import zipfile

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from tiny_graphs import Bomb
from torch import nn
from torch_geometric.data import Data

from evengraph.core import untrusted as limits
from evengraph.splits import Given
from evengraph.tables import TableColumns, from_matrix, from_networkx, open_graph
from evengraph.tables.graph_files import KEYS, read_graphml, read_npz, read_pyg, read_torch

PATH = [[0, 1, 1, 2], [1, 0, 2, 1]]
X = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]])
Y = np.array([0, 1, -1])


def path_matrix():
    return sp.csr_matrix(([1, 1], ([0, 1], [1, 2])), shape=(3, 3))


def social():
    network = nx.MultiDiGraph()
    for name, age, kind in [("ann", 20, "a"), ("bob", 30, "b"), (("c", 1), 40, "a"), (4, 50, None)]:
        network.add_node(name, age=age, kind=kind, id="?")
    network.add_edge("ann", "bob", w=1.0)
    network.add_edge("ann", "bob", w=2.0)
    network.add_edge("bob", ("c", 1), w=0)
    return network


def test_networkx():
    own = from_networkx(social(), label="kind")
    assert own.ids.tolist() == ["ann", "bob", ("c", 1), 4]
    assert own.graph.edge_index.tolist() == PATH
    assert own.graph.y.tolist() == [0, 1, 0, -1]
    assert own.encoder.names == ("age", "edges.count", "edges.mean(w)", "edges.sum(w)")
    assert own.columns.label == "kind"
    assert own.columns.id is None
    assert "Merged 1 repeated edge." in own.notes
    weighted = from_networkx(social(), label="kind", weight="w").graph
    assert weighted.edge_weight.tolist() == [3, 3]
    own = from_networkx(nx.path_graph(4))
    assert own.graph.x.shape == (4, 3)
    with pytest.raises(ValueError, match="the graph has no rows"):
        from_networkx(nx.Graph())
    with pytest.raises(ValueError, match="the graph has no column 'topic'; its columns are"):
        from_networkx(social(), label="topic")


def test_graphml(tmp_path):
    network = nx.Graph()
    network.add_node("n1", kind="a", size=1.5)
    network.add_node("n2", kind="b", size=2.5)
    network.add_node("n3", size=0.5)
    network.add_edges_from([("n1", "n2"), ("n2", "n3")])
    path = tmp_path / "g.graphml"
    nx.write_graphml(network, path)
    own = read_graphml(path, TableColumns(label="kind"))
    assert own.ids.tolist() == ["n1", "n2", "n3"]
    assert own.graph.y.tolist() == [0, 1, -1]
    keys = '<key id="d0" for="node" attr.name="label"/>'
    nodes = "".join(f'<node id="n{i}"><data key="d0">{"ab"[i % 2]}</data></node>' for i in range(4))
    text = f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{keys}<graph>{nodes}'
    (tmp_path / "a.graphml").write_text(f'{text}<edge source="n0" target="n1"/></graph></graphml>')
    assert open_graph(tmp_path / "a.graphml").graph.y.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.coo_array, np.asarray, sp.csc_array])
def test_matrices(kind):
    matrix = path_matrix().toarray() if kind is np.asarray else path_matrix()
    own = from_matrix(kind(matrix), X, Y, masks={"train": [1, 0, 0], "test": [0, 1, 0]})
    assert own.graph.edge_index.tolist() == PATH
    assert own.graph.x.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert own.graph.y.tolist() == [0, 1, -1]
    assert own.class_names == ("0", "1")
    assert own.graph.train_mask.tolist() == [True, False, False]
    assert own.encoder.input_columns == ("x0", "x1")


def test_matrices_with_names():
    named = {"labels": ["b", None, "a"], "ids": ["u", "v", "w"], "times": [3.0, 2.0, 1.0]}
    own = from_matrix(path_matrix(), **named)
    assert own.graph.y.tolist() == [1, -1, 0]
    assert own.ids.tolist() == ["u", "v", "w"]
    assert own.graph.time.tolist() == [3, 2, 1]
    assert own.graph.x.shape == (3, 3)
    named = from_matrix(path_matrix(), labels=[2, 0, 2], class_names=["zero", "one", "two"])
    assert named.class_names == ("zero", "two")
    listed, plain = (from_matrix(path_matrix(), x, Y).graph.x for x in (X.tolist(), X))
    assert torch.equal(listed, plain)
    sparse = from_matrix(path_matrix(), sp.csr_array(np.nan_to_num(X)), Y)
    assert sparse.graph.x.tolist() == np.nan_to_num(X).tolist()
    features = sp.csr_matrix(np.eye(3, dtype=np.float32))
    features.data = features.data.astype(np.float16)
    graph = from_matrix(np.ones((3, 3)), features).graph
    assert graph.x.tolist() == np.eye(3).tolist()


def csr_parts(prefix, matrix):
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    return {f"{prefix}_{k}": v for k, v in parts.items()} | {f"{prefix}_shape": matrix.shape}


@pytest.mark.parametrize(
    "arrays",
    [
        {"edge_index": np.array(PATH), "x": X, "y": Y},
        {"edge_index": np.array(PATH).T, "x": X, "labels": Y[:, None]},
        {**csr_parts("adj", path_matrix()), "x": X, "y": Y, "class_names": ["0", "1"]},
        {**csr_parts("adj", path_matrix()), **csr_parts("attr", sp.csr_matrix(X)), "labels": Y},
    ],
    ids=["index", "pairs", "csr", "both csr"],
)
def test_npz(tmp_path, arrays):
    np.savez(tmp_path / "g.npz", **arrays)
    own = read_npz(tmp_path / "g.npz")
    assert own.graph.edge_index.tolist() == PATH
    assert own.graph.x.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert own.graph.y.tolist() == [0, 1, -1]
    assert own.class_names == ("0", "1")


def test_files_that_are_no_npz(tmp_path, bomb):
    content, target = bomb
    path = tmp_path / "g.npz"
    for wrong in (b"nothing", content, b"PK\x03\x04"):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match=r"g\.npz cannot be read as npz"):
            read_npz(path)
    assert not target.exists()


def pyg_graph():
    return Data(
        x=torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]]),
        edge_index=torch.tensor(PATH),
        y=torch.tensor([0, 1, 0, 1, 0]),
        train_mask=torch.tensor([[1, 0], [1, 0], [1, 1], [0, 1], [0, 1]], dtype=torch.bool),
        test_mask=torch.tensor([0, 0, 0, 1, 1], dtype=torch.bool),
        class_names=["ant", "bee"],
    )


@pytest.mark.parametrize("form", [lambda graph: graph, lambda graph: graph.to_dict()])
def test_pyg(tmp_path, form):
    torch.save(form(pyg_graph()), tmp_path / "g.pt")
    own = read_pyg(tmp_path / "g.pt")
    assert own.graph.x.flatten().tolist() == [1, 2, 3, 4, 5]
    assert own.class_names == ("ant", "bee")
    assert own.graph.train_mask.tolist() == [True, True, True, False, False]
    assert "train_mask holds several splits: using the first." in own.notes
    assert Given()(own.graph, seed=0).test.tolist() == [False] * 3 + [True] * 2


def test_bad_pyg_files(tmp_path):
    path = tmp_path / "g.pt"
    torch.save([1, 2], path)
    with pytest.raises(ValueError, match=r"g\.pt must hold a Data or a dict .*, got list"):
        read_pyg(path)
    target = tmp_path / "exploded"
    graph = pyg_graph()
    graph.extra = Bomb(target)
    torch.save(graph, path)
    with pytest.raises(ValueError, match=r"safe mode rejects; write it again with") as caught:
        read_pyg(path)
    assert "\n" not in str(caught.value)
    path.write_bytes(pickle.dumps(Bomb(target)))
    with pytest.raises(ValueError, match=r"g\.pt"):
        read_pyg(path)
    assert not target.exists()


def test_weights_are_those_of_edge_weight_before_those_of_edge_attr(tmp_path):
    arrays = {"edge_index": np.array([[0, 1], [1, 2]]), "y": np.array([0, 1, 0])}
    path = tmp_path / "g.npz"
    np.savez(path, **arrays, edge_weight=[1.0, 2.0], edge_attr=[3.0, 4.0])
    assert sorted(set(read_npz(path).graph.edge_weight.tolist())) == [1, 2]
    np.savez(path, **arrays, edge_attr=[3.0, 4.0])
    assert sorted(set(read_npz(path).graph.edge_weight.tolist())) == [3, 4]
    np.savez(path, **arrays, edge_attr=[3, 4])  # kinds rather than weights
    assert "edge_weight" not in read_npz(path).graph


EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
DENSE = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])

# of torch, about sparse and quantized tensors
quiet = pytest.mark.filterwarnings("ignore")


def coo(indices=((0, 1, 2), (0, 1, 0))):
    return torch.sparse_coo_tensor(indices, [1.0, 2.0, 3.0], (3, 2), check_invariants=False)


def written(tmp_path, **parts):
    torch.save({"edge_index": EDGES, **parts}, tmp_path / "g.pt")
    return tmp_path / "g.pt"


@quiet
@pytest.mark.parametrize(
    "x",
    [
        lambda: DENSE.clone().requires_grad_(),
        lambda: nn.Parameter(DENSE),
        lambda: DENSE.bfloat16(),
        lambda: DENSE.half(),
        lambda: DENSE.int(),
        lambda: coo(),
        lambda: coo().coalesce(),
        lambda: DENSE.to_sparse_csr(),
        lambda: DENSE.t().contiguous().t(),
    ],
    ids=["grad", "parameter", "bfloat16", "half", "int", "coo", "coalesced", "csr", "strides"],
)
def test_ordinary_tensors_are_read(tmp_path, x):
    assert read_pyg(written(tmp_path, x=x())).graph.x.tolist() == DENSE.tolist()


@quiet
@pytest.mark.parametrize("count", [4, torch.tensor(4), torch.tensor([4]), torch.tensor([[4]])])
def test_numbers_of_nodes(tmp_path, count):
    assert read_pyg(written(tmp_path, num_nodes=count)).graph.num_nodes == 4


@quiet
@pytest.mark.parametrize("wrong", [[[0, 1, 9], [0, 1, 0]], [[0, 1, 2], [0, 1, 9]]])
def test_indices_of_sparse_tensors_are_checked(tmp_path, wrong):
    path = written(tmp_path, x=coo(wrong))
    with pytest.raises(ValueError, match=r"g\.pt"):
        read_pyg(path)


@quiet
def test_a_compressed_file_that_unpacks_to_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "FREE_BYTES", 10**4)
    stored, packed = io.BytesIO(), tmp_path / "g.pt"
    torch.save({"edge_index": EDGES, "x": torch.zeros(3, 10**5)}, stored)
    with zipfile.ZipFile(stored) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for item in old.infolist():
            new.writestr(item.filename, old.read(item))
    with pytest.raises(ValueError, match=r"g\.pt unpacks to 1\.1 MiB"):
        read_torch(packed, KEYS)


@quiet
def test_damaged_files_get_one_line(tmp_path):
    path = written(tmp_path, x=DENSE)
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


@quiet
@pytest.mark.parametrize("zipped", [True, False])
def test_a_quantized_tensor_is_refused_before_memory_is_taken_for_it(tmp_path, zipped):
    huge = torch.quantize_per_tensor(torch.ones(1), 0.1, 0, torch.qint8).expand(10**11)
    path = tmp_path / "graph.pt"
    torch.save({"edge_index": huge}, path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(ValueError, match=r"graph\.pt holds a quantized tensor"):
        read_torch(path, ["edge_index"])
