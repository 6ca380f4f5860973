"""Checks: hashes before a file is opened, sizes before a graph is returned."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from torch_geometric.data import Data

from evengraph.datasets.registry import Counts, Dataset


class DataMismatch(ValueError):
    """A file exists, but not with the expected content."""


def check_hash(content: bytes, expected: str, name: str) -> None:
    """Compare the SHA-256 of a file's content; an empty expected hash passes."""
    digest = hashlib.sha256(content).hexdigest()
    if expected and digest != expected:
        raise DataMismatch(
            f"{name} is not the expected file: its SHA-256 is {digest[:16]}…, "
            f"it should be {expected[:16]}…. It was not opened."
        )


def check_files(contents: Mapping[str, bytes], files: Mapping[str, str], folder: str) -> None:
    """Compare every file with its expected hash."""
    for name, expected in files.items():
        check_hash(contents[name], expected, f"{folder}/{name}")


def check_counts(data: Data, dataset: Dataset, name: str) -> None:
    """Raise an error if a graph does not have the expected size.

    Shapes:
        data.x: (N, F)
        data.edge_index: (2, E)
        data.y: (N,)
    """
    nodes, features = data.x.shape
    num_classes = int(data.y.max()) + 1 if len(data.y) else 0
    counts = Counts(nodes, data.edge_index.shape[1], features, num_classes)
    if counts != dataset.counts or len(data.y) != nodes or int(data.y.min()) < 0:
        raise DataMismatch(
            f"{name} is not the graph {dataset.title}: it has {counts}; expected {dataset.counts}."
        )
