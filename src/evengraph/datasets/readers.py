"""Read a graph from bytes whose hashes were checked; edges are in the order of PyG's classes."""

from __future__ import annotations

import io
import pickle
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from evengraph.core.untrusted import csr_matrix, read_npz
from evengraph.datasets.registry import DATASETS, DataMismatch, FileSet

Contents = Mapping[str, bytes]
Ints = NDArray[np.int64]


def read(file_set: FileSet, contents: Contents, name: str) -> Data:
    """Read a graph from the checked bytes of each file; errors call the files `name`."""
    try:
        return READERS[file_set.reader](contents)
    except (KeyError, IndexError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataMismatch(f"{name} cannot be read as {file_set.reader}: {error}.") from error


def _planetoid(contents: Contents) -> Data:
    """Eight files by Yang et al.: known part, test part, adjacency lists, test indices."""
    parts = {name.split(".", 2)[2]: content for name, content in contents.items()}
    test = np.array(parts.pop("test.index").split(), dtype=np.int64)
    with warnings.catch_warnings():
        # written by Python 2 with module names that SciPy and NumPy have since moved
        warnings.simplefilter("ignore")
        part = {name: pickle.loads(text, encoding="latin1") for name, text in parts.items()}
    num_known, num_features = part["allx"].shape
    # CiteSeer's test indices have gaps: 15 papers without words, links and label. They keep a
    # zero row, whose argmax makes them class 0, as everywhere else in the literature.
    num_nodes = int(test.max()) + 1
    x = np.zeros((num_nodes, num_features), dtype=np.float32)
    x[:num_known] = part["allx"].toarray()
    x[test] = part["tx"].toarray()
    one_hot = np.zeros((num_nodes, part["ally"].shape[1]), dtype=np.int64)
    one_hot[:num_known] = part["ally"]
    one_hot[test] = part["ty"]

    graph: dict[int, list[int]] = part["graph"]
    degrees = [len(neighbours) for neighbours in graph.values()]
    source = np.repeat(np.fromiter(graph, dtype=np.int64), degrees)
    target = np.fromiter((node for row in graph.values() for node in row), dtype=np.int64)
    edge_index, y = _by_target(source, target, num_nodes), one_hot.argmax(axis=1)
    return _public_split(x, edge_index, y, len(part["y"]), test)


def _linqs_cora(contents: Contents) -> Data:
    """Cora as two text files, reordered as in Planetoid: `cora_order.npy` maps nodes to lines."""
    lines = contents["cora.content"].split(b"\n")
    rows = [line.strip().split(b"\t", 1) for line in lines if line.strip()]
    words_and_label = [rest.rsplit(b"\t", 1) for _, rest in rows]
    # every word is one character, 0 or 1, so words are at even offsets
    words = np.stack([np.frombuffer(words, dtype=np.uint8)[::2] for words, _ in words_and_label])
    number = {name.replace(" ", "_"): i for i, name in enumerate(DATASETS["cora"].class_names)}
    labels = np.array([number[label.decode()] for _, label in words_and_label])

    with resources.files(__package__).joinpath("cora_order.npy").open("rb") as file:
        order: Ints = np.load(file, allow_pickle=False).astype(np.int64)  # Planetoid node -> line
    node_of_line = np.empty_like(order)
    node_of_line[order] = np.arange(len(order))
    node_of = {paper: int(node_of_line[line]) for line, (paper, _) in enumerate(rows)}
    pairs = np.array([node_of[paper] for paper in contents["cora.cites"].split()]).reshape(-1, 2)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    x = (words[order] == ord("1")).astype(np.float32)
    edge_index = _by_target(both[:, 0], both[:, 1], len(order))
    return _public_split(x, edge_index, labels[order], 140, np.arange(1708, 2708))


def _csr_npz(contents: Contents) -> Data:
    """Adjacency and features as two CSR matrices (Shchur et al.; Bojchevski and Günnemann)."""
    part = _arrays(contents, "labels", *(f"{m}_{k}" for m in ("adj", "attr") for k in _CSR_KEYS))
    attributes, adjacency = _csr(part, "attr"), _csr(part, "adj").tocoo()
    attributes.sum_duplicates()
    attributes.data = np.where(attributes.data > 0, 1, attributes.data)  # words count once
    apart = adjacency.row != adjacency.col
    pairs = np.stack([adjacency.row[apart], adjacency.col[apart]])
    edge_index = _undirected(pairs, adjacency.shape[0])
    return _data(attributes.astype(np.float32).toarray(), edge_index, part["labels"])


def _edge_list_npz(contents: Contents) -> Data:
    """Platonov et al.: a list of pairs. Their ten splits are not used."""
    x, y, pairs = _arrays(contents, "node_features", "node_labels", "edges").values()
    return _data(x, _undirected(pairs.T, len(y)), y)


def _array_npz(contents: Contents) -> Data:
    """Arrays x, edge_index and y."""
    x, y, edge_index = _arrays(contents, "x", "y", "edge_index").values()
    return _data(x, _undirected(edge_index, len(y)), y)


def _attributed(contents: Contents) -> Data:
    """Yang et al.: pairs and labels as text, features as one CSR matrix. Labels start at 1."""
    pairs = np.array(contents["edgelist.txt"].split(), dtype=np.int64).reshape(-1, 2)
    labels = np.array(contents["labels.txt"].split(), dtype=np.int64).reshape(-1, 2)
    part = _arrays({"attrs": contents["attrs.npz"]}, *_CSR_KEYS)
    x = _csr({f"attrs_{key}": value for key, value in part.items()}, "attrs").toarray()
    y = np.empty(len(labels), dtype=np.int64)
    y[labels[:, 0]] = labels[:, 1] - labels[:, 1].min()
    return _data(x, _undirected(pairs.T, len(y)), y)


READERS: dict[str, Callable[[Contents], Data]] = {
    "planetoid": _planetoid,
    "linqs_cora": _linqs_cora,
    "csr_npz": _csr_npz,
    "edge_list_npz": _edge_list_npz,
    "array_npz": _array_npz,
    "attributed": _attributed,
}

_CSR_KEYS = ("data", "indices", "indptr", "shape")


def _arrays(contents: Contents, *keys: str) -> dict[str, NDArray[Any]]:
    (content,) = contents.values()
    arrays = read_npz(io.BytesIO(content), "the file", keys.__contains__)
    return {key: arrays[key] for key in keys}


def _csr(part: Mapping[str, NDArray[Any]], matrix: str) -> Any:
    return csr_matrix([part[f"{matrix}_{key}"] for key in _CSR_KEYS], matrix)


def _by_target(source: Ints, target: Ints, num_nodes: int) -> Ints:
    """Drop self-loops and repeats; sort by target, then source, as Planetoid's class does."""
    apart = source != target
    keys = np.unique(target[apart] * num_nodes + source[apart])
    return np.stack([keys % num_nodes, keys // num_nodes])


def _undirected(pairs: NDArray[Any], num_nodes: int) -> Ints:
    """Add reverse edges, drop repeats; sort by source, then target."""
    row, col = pairs.astype(np.int64)
    if pairs.size and not 0 <= pairs.min() <= pairs.max() < num_nodes:
        raise ValueError(f"an edge has a node outside 0 to {num_nodes - 1}")
    keys = np.unique(np.concatenate([row * num_nodes + col, col * num_nodes + row]))
    return np.stack([keys // num_nodes, keys % num_nodes])


def _data(x: NDArray[Any], edge_index: Ints, y: NDArray[Any]) -> Data:
    return Data(
        x=torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32)),
        edge_index=torch.from_numpy(np.ascontiguousarray(edge_index, dtype=np.int64)),
        y=torch.from_numpy(np.ascontiguousarray(y, dtype=np.int64)),
    )


def _public_split(
    x: NDArray[np.float32], edge_index: Ints, y: Ints, num_train: int, test: Ints
) -> Data:
    """Planetoid's split: the first nodes are training, the next 500 validation, a list is test."""
    data = _data(x, edge_index, y)
    node = torch.arange(len(y))
    data.train_mask = node < num_train
    data.val_mask = (node >= num_train) & (node < num_train + 500)
    data.test_mask = torch.isin(node, torch.from_numpy(test))
    return data
