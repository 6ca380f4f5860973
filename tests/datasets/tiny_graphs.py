"""Graphs small enough to check by hand, in the file formats of the real ones."""

import hashlib
import pickle
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from evengraph.datasets.loading import DATASETS, FileSet


def tiny_planetoid() -> dict[str, bytes]:
    """Four known nodes, tests at 6 and 4; node 5 is in no list, as with CiteSeer's gaps."""
    allx = sp.csr_matrix(np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]], dtype=np.float64))
    ally = np.array([[1, 0], [0, 1], [0, 1], [1, 0]])
    graph = {0: [1, 1, 0], 1: [0, 6], 2: [3], 3: [2], 4: [6], 5: [], 6: [1, 4]}
    parts = {
        "x": allx[:2],
        "tx": sp.csr_matrix(np.array([[0.0, 1, 1], [1, 1, 1]])),
        "allx": allx,
        "y": ally[:2],
        "ty": np.array([[0, 1], [1, 0]]),
        "ally": ally,
        "graph": graph,
    }
    files = {f"ind.citeseer.{name}": pickle.dumps(value) for name, value in parts.items()}
    return {**files, "ind.citeseer.test.index": b"6\n4\n"}


def write_npz(path: Path, **changes) -> Path:
    """Write a directed path 0 -> 1 -> 2 with a self-loop and a repeated word."""
    arrays = {
        "adj_data": np.ones(3, dtype=np.float32),
        "adj_indices": np.array([0, 1, 2], dtype=np.int32),
        "adj_indptr": np.array([0, 2, 3, 3], dtype=np.int32),
        "adj_shape": np.array([3, 3]),
        "attr_data": np.array([2, 0, 1], dtype=np.float32),
        "attr_indices": np.array([0, 1, 1], dtype=np.int32),
        "attr_indptr": np.array([0, 1, 2, 3], dtype=np.int32),
        "attr_shape": np.array([3, 2]),
        "labels": np.array([0, 1, 0], dtype=np.int32),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **{**arrays, **changes})
    return path


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def place(root: Path, name: str, contents: dict[str, bytes], form: FileSet | None = None) -> Path:
    """Write files where the table expects them below a root."""
    folder = root / (form or DATASETS[name].file_sets[0]).folder
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in contents.items():
        (folder / file).write_bytes(content)
    return folder


def snapshot(root: Path) -> dict[str, tuple[int, str]]:
    """Everything below a folder: times and hashes."""
    return {
        str(path.relative_to(root)): (
            path.stat().st_mtime_ns,
            sha256(path.read_bytes()) if path.is_file() else "",
        )
        for path in sorted(root.rglob("*"))
    }


class Bomb:
    """Unpickling this writes a file, which no test must ever see."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))
