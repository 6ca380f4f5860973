"""Nothing is opened before its hash fits, nothing is handed out before its counts fit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from torch_geometric.data import Data

from evengraph.datasets.registry import Counts, Dataset

__all__ = ["DataMismatch", "check_counts", "check_files", "check_hash"]


class DataMismatch(ValueError):
    """A file exists but does not hold what the table of graphs says."""


def check_hash(content: bytes, expected: str | None, where: str) -> None:
    """Compare the SHA-256 of some bytes; an expected hash of None passes."""
    found = hashlib.sha256(content).hexdigest()
    if expected is not None and found != expected:
        raise DataMismatch(
            f"{where} is not the expected file: its SHA-256 is {found[:16]}…, "
            f"it should be {expected[:16]}…. It was not opened."
        )


def check_files(contents: Mapping[str, bytes], files: Mapping[str, str | None], where: str) -> None:
    """Compare every file of a graph with its hash in the table."""
    for name, expected in files.items():
        check_hash(contents[name], expected, f"{where}/{name}")


def check_counts(data: Data, dataset: Dataset, where: str) -> None:
    """Refuse a graph whose sizes differ from the table's.

    Shapes:
        data.x: (N, F)
        data.edge_index: (2, E)
        data.y: (N,)
    """
    nodes, features = data.x.shape
    num_classes = int(data.y.max()) + 1 if len(data.y) else 0
    found = Counts(nodes, data.edge_index.shape[1], features, num_classes)
    if found != dataset.counts or len(data.y) != nodes or int(data.y.min()) < 0:
        raise DataMismatch(
            f"{where} holds another graph than {dataset.title}: found {found}; "
            f"expected {dataset.counts}."
        )
